#include "sched/bed.hpp"

#include "base/clock.hpp"
#include "sched/driver.hpp"

namespace weft::inline v1::sched {

void bed::sleep(base::time_ns deadline) noexcept {
  std::uint32_t seen = nothing;
  if (state_.compare_exchange_strong(seen, asleep, base::relaxed, base::relaxed)) {
    do {
      base::futex_wait(state_, asleep, deadline);
      seen = state_.load(base::relaxed);
    } while (seen == asleep && (deadline == base::never_ns || base::now() < deadline));
  }
  // A token that comes between the load and this exchange is taken too. acquire pairs with the release in wake(): the
  // sleeper sees what was queued before the wake.
  state_.exchange(nothing, base::order<"bed.sleep">(base::acquire));
}

void bed::sleep_in_driver(base::time_ns deadline, std::size_t most, chain<task::record>& woken) noexcept {
  std::uint32_t seen = nothing;
  // release pairs with the acquire in wake(): who sees that the worker is in the driver sees what the driver has opened.
  const bool lies = state_.compare_exchange_strong(seen, in_driver, base::release, base::relaxed);
  driver_->poll(base::check<"bed.token">(!lies) ? 0 : deadline, most, woken);
  state_.exchange(nothing, base::order<"bed.sleep_in_driver">(base::acquire));  // acquire as in sleep()
}

void bed::wake() noexcept {
  // release pairs with the acquire of the sleeper, acquire with the release in sleep_in_driver().
  const std::uint32_t found = state_.exchange(token, base::order<"bed.wake">(base::acq_rel));
  if (base::check<"bed.asleep">(found == asleep)) base::futex_wake(&state_, 1);
  if (base::check<"bed.in_driver">(found == in_driver)) driver_->interrupt();
}

}  // namespace weft::inline v1::sched
