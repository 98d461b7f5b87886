#pragma once

#include <chrono>

#include <weft/detail/clock.hpp>

namespace weft::inline v1::detail {

// Returns now plus a duration. A duration that would overflow the clock means "for ever": it gives the clock's last
// time point.
template <class Rep, class Period>
[[nodiscard]] clock::time_point time_after(std::chrono::duration<Rep, Period> time) {
  const auto now = clock_now();
  if (time <= time.zero()) return now;
  const auto rest = std::chrono::duration<double>(clock::time_point::max() - now);
  if (std::chrono::duration<double>(time) >= rest) return clock::time_point::max();
  return now + std::chrono::ceil<clock::duration>(time);
}

}  // namespace weft::inline v1::detail
