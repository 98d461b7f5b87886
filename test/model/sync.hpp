// Tasks for model tests of locks and friends: each with a virtual thread of its own, and a wheel if it waits with a time limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "explore/explore.hpp"
#include "sched/scheduler.hpp"
#include "time/wheel.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/cancelled.hpp>

namespace model {

namespace base = weft::base;
namespace locks = weft::locks;
using explore::join_all;
using explore::thread;

// A task. `cancelled` is true if it ended so.
class fiber : public weft::sched::model_task {
 public:
  template <class F>
  explicit fiber(F f, weft::sched::timer_source* sleeps_on = nullptr) : model_task(false) {
    timers = sleeps_on;
    explore::thread([this, f = std::move(f)]() mutable {
      weft::sched::worker::run(*this, [&] {
        try {
          f();
        } catch (const weft::cancelled&) {
          cancelled = true;
        }
      });
    });
  }
  void cancel() noexcept { weft::waits::cancel(*this); }
  bool cancelled = false;
};

inline constexpr base::time_ns begin = base::time_ns{1} << 40;  // where the clock stands first
inline constexpr base::time_ns tick = base::time_ns{1} << 15;
[[nodiscard]] inline std::chrono::steady_clock::time_point at(base::time_ns t) {
  return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(t));
}
// Time passes, and some worker fires what is due.
inline void fire(weft::timing::wheel& w, base::time_ns now) {
  base::pass_time(now);
  weft::sched::worker on;
  weft::sched::fired_timers due;
  (void)w.fire(now, SIZE_MAX, due);
  on.accept_woken_batch(std::move(due.tasks));
  resume_others(due);
}

}  // namespace model
