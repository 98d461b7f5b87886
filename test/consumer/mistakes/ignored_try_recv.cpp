// expect: ignoring return value|ignoring returned value
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    auto [out, in] = weft::make_channel<int>(1);
#ifdef MISTAKE
    in.try_recv();
#else
    (void)in.try_recv();
#endif
  });
}
