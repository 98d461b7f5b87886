// Wakes a worker when something was queued: one sleeper, unless somebody searches already. idle_set.hpp has the
// argument that this is enough. This class carries out its choice.
#pragma once

#include "sched/idle_set.hpp"
#include "sched/worker_set.hpp"

namespace weft::inline v1::sched {

class notifier {
 public:
  notifier(worker_set& workers, idle_set& idle) noexcept : workers_(workers), idle_(idle) {}
  notifier(const notifier&) = delete;
  notifier& operator=(const notifier&) = delete;

  // Something was queued where others find it. This contains the fence e2 of idle_set.hpp. The preferred worker is
  // woken if it sleeps.
  void notify(int preferred = idle_set::nobody) noexcept;
  // The same for a worker that has queued something with itself. If it is the only worker, it will find the task
  // itself, or the monitor will.
  void notify_others() noexcept {
    if (!workers_.is_alone()) notify();
  }
  // Something was queued that only this worker may take. Returns false if the worker does not sleep; it will look by
  // itself. There is a fence in either case.
  [[nodiscard]] bool notify_only(std::size_t worker) noexcept;

 private:
  worker_set& workers_;
  idle_set& idle_;
};

}  // namespace weft::inline v1::sched
