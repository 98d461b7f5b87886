#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "time/wheel.hpp"

namespace weft::inline v1::timing {

// A task parks with an entry in the wheel of its worker. An outside thread has no wheel: select sleeps until the
// deadline and then claims itself (wait/select.cpp), so publish() has nothing to do.
void timer_operation::prepare() noexcept {
  sched::worker* on = sched::this_worker();
  const bool in_task = on != nullptr && on->current() != nullptr;
  timers_ = in_task ? &on->timers() : nullptr;
}

bool timer_operation::try_complete() noexcept { return base::now() >= entry_.deadline; }

bool timer_operation::publish(waits::node&) noexcept {
  if (timers_ == nullptr) return true;
  timers_->insert(entry_);
  return true;
}

void timer_operation::unpublish(waits::node&) noexcept {
  if (timers_ != nullptr) timers_->remove(entry_);
}
base::lock* timer_operation::own_lock() noexcept { return timers_ != nullptr ? &timers_->own_lock() : nullptr; }
waits::subject timer_operation::what() const noexcept {
  static constexpr waits::wait_kind timer_kind{"timer", waits::kind_number::timer};
  return {&timer_kind, nullptr};
}

}  // namespace weft::inline v1::timing
