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

class sleep_wait final : public waits::waitable {
 public:
  sleep_wait(entry& t, sched::worker& on) noexcept : timer_(t), wheel_(static_cast<wheel&>(on.timers())) {}

  bool try_complete() noexcept override { return base::now() >= timer_.deadline; }
  bool publish(waits::node&) noexcept override {
    wheel_.insert(timer_);
    return true;
  }
  void unpublish(waits::node&) noexcept override {
    base::step<"wheel.remove">([&] { wheel_.remove(timer_); });
  }
  void lock() noexcept override { wheel_.lock(); }
  void unlock() noexcept override { wheel_.unlock(); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &wheel_.own_lock(); }
  [[nodiscard]] const char* reason() const noexcept override { return "sleep"; }
  [[nodiscard]] const void* object() const noexcept override { return nullptr; }

 private:
  entry& timer_;
  wheel& wheel_;
};

}  // namespace
}  // namespace timing

void sleep_until(std::chrono::steady_clock::time_point when, std::source_location where) {
  sched::worker* w = sched::this_worker();
  if (w == nullptr || w->current() == nullptr) return std::this_thread::sleep_until(when);
  static_assert(sizeof(timing::entry) <= task::record::wait_room_size);
  timing::entry& t = *::new (w->current()->wait_room) timing::entry;
  t.deadline = when.time_since_epoch().count();
  timing::sleep_wait waiting(t, *w);
  if (waits::fiber_wait(waiting, t.waiter, {.interruptible = true, .where = where}) == waits::outcome::cancelled)
    waits::throw_cancelled();
}

}  // namespace weft::inline v1
