// The steady clock as a number. It is the only clock of the runtime.
#pragma once

#include "base/atomic.hpp"
#include <weft/detail/clock.hpp>

namespace weft::inline v1::base {

#if defined(WEFT_MODEL)
// The clock of the explorer. It stands still until a deadline passes or the test moves it.
inline time_ns now() noexcept { return virtual_clock.load(relaxed); }
#else
inline time_ns now() noexcept { return detail::clock_now().time_since_epoch().count(); }
#endif

static_assert(detail::clock::period::den == 1'000'000'000, "time_ns counts the steady clock's own ticks");

}  // namespace weft::inline v1::base
