#include <weft/weft.hpp>

int answer();  // in other.cpp: two translation units see the headers

// Built and run three times: against an installed Weft by find_package and by pkg-config, and inside of a tree by FetchContent.
// req: W-10
int main() {
  int result = 0;
  int status = weft::run([&] { result = weft::spawn([] { return answer(); }).join(); });
  return status == 0 && result == 42 ? 0 : 1;
}
