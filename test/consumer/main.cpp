#include <weft/weft.hpp>

int answer();  // in other.cpp: two translation units see the headers

int main() {
  int result = 0;
  int status = weft::run([&] { result = weft::spawn([] { return answer(); }).join(); });
  return status == 0 && result == 42 ? 0 : 1;
}
