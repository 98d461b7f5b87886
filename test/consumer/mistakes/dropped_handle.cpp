// expect: dropping the handle detaches the task: join\(\) it, or say .detach\(\)
#include <weft/weft.hpp>

int main() {
  return weft::run([] {
#ifdef MISTAKE
    weft::spawn([] {});
#else
    weft::spawn([] {}).detach();
#endif
  });
}
