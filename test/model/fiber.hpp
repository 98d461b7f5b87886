// Model fibers: tasks that run the real fiber_wait, claim and cancel over the abstract scheduler (`// abstract scheduler`).
//
//   model::fiber reader([&] { got = channel.recv(); });    // a virtual thread of its own, as the task's worker
//   thread([&] { reader.cancel(); });
#pragma once

#include <utility>

#include "event.hpp"
#include "explore/explore.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"

namespace model {

class fiber : public weft::sched::model_task {
 public:
  template <class F>
  explicit fiber(F f, weft::sched::timer_source* sleeps_on = nullptr) : model_task(false) {
    timers = sleeps_on;
    explore::thread([this, f = std::move(f)]() mutable { weft::sched::worker::run(*this, f); });
  }
  void cancel() noexcept { waits::cancel(*this); }
};

}  // namespace model
