// The watch: one sleeping worker, the *watcher*, keeps the earliest deadline of all timers. This class also fires what
// is due.
//
// Every worker has timers of its own (timer_source.hpp). A worker that looks up fires the timers of all workers: at its
// tick, while it searches, and when it leaves sleep. So a stuck worker delays no timer as long as another one is awake.
// When all sleep, the watcher sleeps with a deadline and the others sleep without. While somebody is awake, the monitor
// takes care of timers that are due and to which no worker comes.
//
// sched.V1. The watcher sleeps until the earliest deadline it has seen. A worker that goes to sleep with an earlier one
//     takes over.
//     test time/one_that_ends_soon_*
// sched.V2. A watcher that leaves for work while a timer is due within the longest nap of the monitor wakes another
//     sleeper to become the watcher. Of later timers the monitor takes care, so a server whose requests have time-outs
//     of seconds does not wake a second worker for each event.
//     model/watch, test time/a_stuck_worker_delays_*, sched/a_far_timer_*
#pragma once

#include <cstddef>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "sched/idle_set.hpp"
#include "sched/worker_set.hpp"

namespace weft::inline v1::sched {

class intake;

class watch {
 public:
  watch(worker_set& workers, idle_set& idle) noexcept : workers_(workers), idle_(idle) {}
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;

  // --- a worker that is awake -------------------------------------------------------------------------------------
  // Wakes what is due at `now`, whichever worker's timer it is. `on`, the calling worker, gets the tasks. Returns how
  // many were woken.
  std::size_t fire(base::time_ns now, intake& on) noexcept;
  // Whether some timer is due. Takes no lock.
  [[nodiscard]] bool is_due(base::time_ns now) const noexcept;

  // --- a worker that goes to sleep and comes back -------------------------------------------------------------------
  // Returns until when this sleeper sleeps: never_ns if another worker is the watcher. The sleeper is counted as
  // sleeping already.
  [[nodiscard]] base::time_ns begin(worker& sleeper) noexcept;
  // The sleeper is back from its sleep. Returns true if it was the watcher until now.
  [[nodiscard]] bool end(worker& sleeper) noexcept;
  // The worker goes to work. If nobody is the watcher and a timer is due soon, another sleeper becomes the watcher
  // (sched.V2).
  void hand_on() noexcept;

  // --- anybody ----------------------------------------------------------------------------------------------------
  // Some sleeper looks around, fires what is due and sleeps again. It does not search.
  void wake_a_sleeper() noexcept;

 private:
  [[nodiscard]] base::time_ns earliest_deadline() const noexcept;

  worker_set& workers_;
  idle_set& idle_;
  alignas(base::cache_line) base::lock lock_;
  int watcher_ = idle_set::nobody;  // under lock_
  base::time_ns deadline_ = 0;  // under lock_: the watcher's
};

}  // namespace weft::inline v1::sched
