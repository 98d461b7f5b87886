#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "time/wheel.hpp"

namespace weft::inline v1::timing {

void timer_operation::prepare() noexcept {
  sched::worker* on = sched::this_worker();
  const bool in_task = on != nullptr && on->current() != nullptr;
  wheel_ = in_task ? static_cast<wheel*>(&on->timers()) : nullptr;
}

bool timer_operation::try_complete() noexcept { return base::now() >= entry_.deadline; }

bool timer_operation::publish(waits::node&) noexcept {
  if (wheel_ == nullptr) return true;
  wheel_->insert(entry_);
  return true;
}

void timer_operation::unpublish(waits::node&) noexcept {
  if (wheel_ != nullptr) wheel_->remove(entry_);
}
void timer_operation::lock() noexcept {
  if (wheel_ != nullptr) wheel_->lock();
}
void timer_operation::unlock() noexcept {
  if (wheel_ != nullptr) wheel_->unlock();
}
base::lock* timer_operation::own_lock() noexcept { return wheel_ != nullptr ? &wheel_->own_lock() : nullptr; }

}  // namespace weft::inline v1::timing
