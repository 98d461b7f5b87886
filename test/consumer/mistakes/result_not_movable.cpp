// expect: cannot be moved out of it.*wait\(\).*std::unique_ptr
#include <weft/weft.hpp>
#include <memory>
#include <mutex>

int main() {
  weft::runtime rt({.workers = 1});
#ifdef MISTAKE
  rt.spawn([] { return std::mutex(); }).join();
#else
  (void)rt.spawn([] { return std::make_unique<std::mutex>(); }).join();
#endif
}
