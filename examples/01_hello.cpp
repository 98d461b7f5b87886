// The smallest program: a task, its result, and a pause that keeps no thread.
#include <weft/weft.hpp>

#include <chrono>
#include <cstdio>
#include <string>

int main() {
  return weft::run([] {
    auto greeting = weft::spawn([] {
      weft::sleep_for(std::chrono::milliseconds(10));
      return std::string("hello from a fiber");
    });
    std::puts(greeting.join().c_str());
  });
}
