// expect: name it: the shield ends with this object
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
#ifdef MISTAKE
    weft::this_task::shield();
#else
    weft::this_task::shield until_the_end;
#endif
    weft::yield();
  });
}
