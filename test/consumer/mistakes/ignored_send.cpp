// expect: a send fails when nobody will receive
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
    auto [out, in] = weft::make_channel<int>(1);
#ifdef MISTAKE
    out.send(1);
#else
    (void)out.send(1);
#endif
  });
}
