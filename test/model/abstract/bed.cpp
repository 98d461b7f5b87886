// What a bed promises, one step each; bed_test.cpp explores the real one (sched/bed.cpp). A test file asks for it with `// abstract bed`.
//
// Kept: a wake before the sleep makes it return at once and is taken by it; what the waker did is seen; a deadline ends it too.
#include "sched/bed.hpp"

#include "base/check.hpp"
#include "sched/driver.hpp"

namespace weft::inline v1::sched {

void bed::sleep(base::time_ns deadline) noexcept {
  if (!explore::token_take(&state_, state_.initial_bits(), deadline != base::never_ns, explore::where::current()))
    base::pass_time(deadline);
}

void bed::sleep_in_driver(base::time_ns deadline, std::size_t most, chain<task::record>& woken) noexcept {
  std::uint32_t seen = nothing;
  const bool lies = state_.compare_exchange_strong(seen, in_driver, base::relaxed, base::relaxed);
  driver_->poll(lies ? deadline : 0, most, woken);
  state_.exchange(nothing, base::acquire);
}

void bed::wake() noexcept {
  // Pairs with the acquire in lock_acquire.
  if (state_.exchange(token, base::release) == in_driver) driver_->interrupt();
}

}  // namespace weft::inline v1::sched
