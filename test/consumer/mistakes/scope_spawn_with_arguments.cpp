// expect: weft::spawn takes a callable without arguments; wrap it: spawn\(\[=\] \{ return f\(x\); \}\)
#include <weft/weft.hpp>

int twice(int x) { return 2 * x; }

int main() {
  return weft::run([] {
    return weft::with_scope([](weft::scope& s) {
#ifdef MISTAKE
      return s.spawn(twice, 3).join();
#else
      return s.spawn([=] { return twice(3); }).join();
#endif
    });
  });
}
