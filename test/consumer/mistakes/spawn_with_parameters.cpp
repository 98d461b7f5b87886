// expect: weft::spawn takes a callable without arguments; wrap it: spawn\(\[=\] \{ return f\(x\); \}\)
#include <weft/weft.hpp>

int main() {
  weft::runtime rt({.workers = 1});
#ifdef MISTAKE
  rt.spawn({.name = "it"}, [](int x) { (void)x; }).join();
#else
  rt.spawn({.name = "it"}, [] {}).join();
#endif
}
