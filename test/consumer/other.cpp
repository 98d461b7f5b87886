#include <weft/weft.hpp>

int answer() {
  weft::yield();
  return 42;
}
