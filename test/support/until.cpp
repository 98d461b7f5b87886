#include "support/until.hpp"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include <weft/weft.hpp>

#include "support/watchdog.hpp"

namespace support {

using clock = std::chrono::steady_clock;

waiting::waiting(std::source_location where, std::chrono::seconds limit) noexcept
    : where_(where),
      until_(clock::now() + limit) {}

void waiting::look_at_clock() {
  if (clock::now() < until_) return;
  std::fprintf(stderr, "%s:%u: what was waited for here in %s did not happen\n", where_.file_name(), where_.line(),
               where_.function_name());
  dump_runtimes(stderr);
  std::abort();
}

void waiting::pause() {
  ++rounds_;
  if (weft::this_task::running()) {
    weft::yield();
    if (rounds_ % 64 != 0) return;
    std::this_thread::yield();  // there may be more workers than cores
  } else if (rounds_ < 100) {
    std::this_thread::yield();
    return;
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  look_at_clock();
}

void waiting::hold() {
  std::this_thread::yield();
  if (++rounds_ % 64 == 0) look_at_clock();
}

}  // namespace support
