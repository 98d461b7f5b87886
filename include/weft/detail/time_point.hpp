#pragma once

#include <chrono>

namespace weft::inline v1::detail {

// Now plus a duration. One that would overflow the clock means "for ever", as far as the clock knows.
template <class Rep, class Period>
[[nodiscard]] std::chrono::steady_clock::time_point time_after(std::chrono::duration<Rep, Period> time) {
  using clock = std::chrono::steady_clock;
  const auto now = clock::now();
  if (time <= time.zero()) return now;
  const auto rest = std::chrono::duration<double>(clock::time_point::max() - now);
  if (std::chrono::duration<double>(time) >= rest) return clock::time_point::max();
  return now + std::chrono::ceil<clock::duration>(time);
}

}  // namespace weft::inline v1::detail
