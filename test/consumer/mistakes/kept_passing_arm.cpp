// expect: this arm refers to a value that may be gone by now: write .w << std::move\(v\). in the call of select itself, or let the arm have the value: w.on_send\(std::move\(v\)\)
#include <weft/weft.hpp>
#include <string>

int main() {
  auto [out, in] = weft::make_channel<std::string>(1);
#ifdef MISTAKE
  auto arm = out << std::string("gone");
#else
  auto arm = out.on_send(std::string("kept"));
#endif
  weft::select(arm);
}
