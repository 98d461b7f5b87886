// The steady clock as a number. The only clock of the runtime.
#pragma once

#include <chrono>

#include "base/atomic.hpp"

namespace weft::inline v1::base {

#if defined(WEFT_MODEL)
// Stands still until a deadline passes or the test moves it.
inline time_ns now() noexcept { return virtual_clock.load(relaxed); }
#else
inline time_ns now() noexcept { return std::chrono::steady_clock::now().time_since_epoch().count(); }
#endif

static_assert(std::chrono::steady_clock::period::den == 1'000'000'000, "time_ns counts the steady clock's own ticks");

}  // namespace weft::inline v1::base
