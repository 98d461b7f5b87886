#include <new>
#include <thread>

#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "time/wheel.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/this_task.hpp>

namespace weft::inline v1 {
namespace timing {
namespace {

constexpr waits::wait_kind sleep_kind{"sleep", waits::kind_number::sleep};

// The wait of sleep_until(). The entry is in the wheel of the worker on which the task parks. Whoever fires that wheel
// claims the task, and remove() takes the entry out if the task is cancelled first.
class sleep_wait final : public waits::waitable {
 public:
  sleep_wait(entry& t, sched::worker& on) noexcept : timer_(t), timers_(on.timers()) {}

  bool try_complete() noexcept override { return base::now() >= timer_.deadline; }
  bool publish(waits::node&) noexcept override {
    timers_.insert(timer_);
    return true;
  }
  void unpublish(waits::node&) noexcept override {
    base::step<"wheel.remove">([&] { timers_.remove(timer_); });
  }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &timers_.own_lock(); }
  [[nodiscard]] waits::subject what() const noexcept override { return {&sleep_kind, nullptr}; }

 private:
  entry& timer_;
  sched::timer_source& timers_;
};

}  // namespace
}  // namespace timing

void sleep_until(std::chrono::steady_clock::time_point when, std::source_location where) {
  sched::worker* w = sched::this_worker();
  if (w == nullptr || w->current() == nullptr) return std::this_thread::sleep_until(when);
  static_assert(sizeof(timing::entry) <= task::record::wait_room_size);
  // The entry lies in the record and not in this frame, for the reason given in task/fiber.hpp.
  timing::entry& t = *::new (w->current()->wait_room()) timing::entry;
  t.deadline = when.time_since_epoch().count();
  timing::sleep_wait waiting(t, *w);
  if (waits::fiber_wait(waiting, t.waiter, {.interruptible = true, .where = where}) == waits::outcome::cancelled)
    waits::throw_cancelled();
}

}  // namespace weft::inline v1
