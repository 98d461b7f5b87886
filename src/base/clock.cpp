#include "base/clock.hpp"

#include <ctime>

namespace weft::inline v1::detail {

// As std::chrono::steady_clock::now(), without the call in between.
clock::time_point clock_now() noexcept {
  std::timespec t{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &t);
  return clock::time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

}  // namespace weft::inline v1::detail
