// expect: weft::spawn takes a callable without arguments; wrap it: spawn\(\[=\] \{ return f\(x\); \}\)
#include <weft/weft.hpp>

struct server {
  void go() {}
};

int main() {
  weft::runtime rt({.workers = 1});
  server s;
#ifdef MISTAKE
  rt.spawn(&server::go, &s).join();
#else
  rt.spawn([&s] { s.go(); }).join();
#endif
}
