// The stacks and records that workers keep for their next task, and how these go back when there is no next task.
//
// A worker that has worked keeps stacks and records of its own. When all workers have slept for a while, the monitor
// asks for them, and the sleepers give them to the pools. Then the monitor makes the pools give back to the system what
// is beyond their limits.
//
// sched.CA1. The trim after keeps_caches() has said no misses nothing that a sleeper gave before. The sleeper clears
//     its flag after it has given (release), and keeps_caches() reads the flag (acquire).
//     test sched/cache_*, model/monitor
// sched.CA2. A sleeper looks at the request after it was woken for it, because ask() makes the request and then wakes.
//     A worker that works meanwhile keeps something again and is asked again.
//     test sched/cache_*
#pragma once

#include "base/atomic.hpp"
#include "context/stack.hpp"
#include "sched/worker.hpp"
#include "sched/worker_set.hpp"
#include "task/record_pool.hpp"

namespace weft::inline v1::sched {

class idle_caches {
 public:
  idle_caches(worker_set& workers, context::stack_pool& stacks, task::record_pool& records) noexcept
      : workers_(workers),
        stacks_(stacks),
        records_(records) {}
  idle_caches(const idle_caches&) = delete;
  idle_caches& operator=(const idle_caches&) = delete;

  // --- the monitor ------------------------------------------------------------------------------------------------
  // Whether some worker that is not dead keeps something for its next task.
  [[nodiscard]] bool are_kept() const noexcept {
    for (const worker* w : workers_.all())
      if (w->keeps_caches()) return true;
    return false;
  }
  // Sleepers give what they keep, until trim() or stop_asking() is called.
  void ask() noexcept {
    asked_.store(true, base::relaxed);  // the wakes publish it
    for (worker* w : workers_.all())
      if (w->keeps_caches()) w->wake();
  }
  void stop_asking() noexcept { asked_.store(false, base::relaxed); }
  // Gives what is cached beyond the limits back to the system. Returns false if some of it has to stay because somebody
  // walks over the records.
  [[nodiscard]] bool trim() noexcept {
    stop_asking();
    stacks_.trim();
    return records_.trim().has_value();
  }

  // --- workers that go to sleep -------------------------------------------------------------------------------------
  [[nodiscard]] bool are_asked_for() const noexcept { return asked_.load(base::relaxed); }

 private:
  worker_set& workers_;
  context::stack_pool& stacks_;
  task::record_pool& records_;
  base::atomic<bool> asked_{false};
};

}  // namespace weft::inline v1::sched
