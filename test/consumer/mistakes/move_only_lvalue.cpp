// expect: cannot be copied; give it away: spawn\(std::move\(f\)\)
#include <weft/weft.hpp>
#include <memory>
#include <utility>

int main() {
  weft::runtime rt({.workers = 1});
  auto f = [p = std::make_unique<int>(3)] { return *p; };
#ifdef MISTAKE
  return rt.spawn(f).join();
#else
  return rt.spawn(std::move(f)).join();
#endif
}
