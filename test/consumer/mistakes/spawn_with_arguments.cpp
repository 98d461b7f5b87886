// expect: weft::spawn takes a callable without arguments; wrap it: spawn\(\[=\] \{ return f\(x\); \}\)
#include <weft/weft.hpp>

int twice(int x) { return 2 * x; }

int main() {
  return weft::run([] {
#ifdef MISTAKE
    return weft::spawn(twice, 3).join();
#else
    return weft::spawn([=] { return twice(3); }).join();
#endif
  });
}
