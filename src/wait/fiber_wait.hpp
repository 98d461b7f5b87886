// Waiting for one waitable, and what every call that may wait asks first.
//
// fiber_wait follows "Parking" in docs/lifecycle.md: try, PARKING, publish, switch, commit, lost-wake check (wait.hpp).
// The next stack commits the park of a task (sched/task_runner.cpp, arrive). An outside thread commits for itself.
//
// wait.F1. A wake that lands at any point of the park is never lost.
//     model/park, test wait/a_wake_at_each_step_*
// wait.F2. Cancellation, time-out and close claim like any other wake.
//     model/park, model/timer, test wait/cancel_*
// wait.F3. After the park is committed no code of the task runs until somebody resumes it.
//     test wait/after_the_commit_*
#pragma once

#include <concepts>
#include <source_location>

#include "base/log.hpp"
#include "sched/worker.hpp"
#include "task/name.hpp"
#include "task/task.hpp"
#include "wait/wait.hpp"
#include "wait/wake.hpp"

namespace weft::inline v1::waits {

enum class outcome : std::uint8_t { completed, cancelled };

struct options {
  bool interruptible = true;  // this wait is a cancellation point, unless the task is shielded or unwinds
  std::source_location where = std::source_location::current();
  bool keeps_site = false;  // this wait continues another one of the same task, which has noted its place already
};

// Waits on `w` with the caller's node. Works for tasks and for outside threads. On return the node is on no list.
template <std::derived_from<waitable> W>
[[nodiscard]] outcome fiber_wait(W& w, node& n, const options& o);

// The same for an outside thread, which cannot be cancelled. fiber_wait() calls it.
[[nodiscard]] outcome thread_wait(waitable& w, node& n);

// --- the running task -----------------------------------------------------------------------------------------------
// The running task, or nullptr on an outside thread.
[[nodiscard]] task::record* current_task() noexcept;
// The worker of the running task, if a call may complete without a look at anything else: no cancellation was requested
// and the task has budget left, of which this spends one unit. Otherwise nullptr, also on an outside thread.
[[nodiscard]] inline sched::worker* undisturbed() noexcept {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || !on->spend_budget()) [[unlikely]]
    return nullptr;
  // A worker has budget only while it runs a task, so current() is not null here.
  if ((on->current()->word.peek() & task::state_word::cancel_requested) != 0) [[unlikely]] {
    on->return_budget();
    return nullptr;
  }
  return on;
}
// Whether cancellation was requested and a cancellation point would throw it now.
[[nodiscard]] bool cancel_pending(const sched::worker& on, const task::record& self) noexcept;
[[noreturn]] void throw_cancelled();
// Throws if cancellation is pending.
void check_cancelled();
// Aborts with a report if the running task must not suspend here (checked builds).
void report_bad_suspension(int locks_allowed, std::source_location where) noexcept;
inline void check_may_suspend(int locks_allowed, std::source_location where) noexcept {
  if constexpr (base::checked_build) report_bad_suspension(locks_allowed, where);
}

// --- drivers --------------------------------------------------------------------------------------------------------

// How a wait ended, and whether the waiter parked on the way: a task that did has given others their turn.
struct ending {
  step how;  // one of completed, settle and cancelled
  bool parked;
};

// Drives a wait of a task or of an outside thread, from its first look to its end. Inlined, so that the waiter lives in
// registers: a fork tree parks once for every join.
template <class W, class Waiter>
[[nodiscard]] [[gnu::always_inline]] inline ending drive(wait<W>& waiting, W& w, Waiter& self) noexcept {
  bool parked = false;
  for (;;) {
    step next = waiting.look(self);
    if (next == step::park) {
      self.park(w);
      parked = true;
      next = waiting.woken(self.parkable());
    }
    if (next != step::again) return {next, parked};
    self.was_moved();  // retract() may have waited, and the task may have come back on another worker
  }
}

template <std::derived_from<waitable> W>
outcome fiber_wait(W& w, node& n, const options& o) {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) return thread_wait(w, n);
  check_may_suspend(0, o.where);
  task_waiter self(*on, o.where, o.keeps_site);
  w.prepare();
  wait<W> waiting(w, n, o.interruptible && can_be_cancelled(*on, self.parkable()));
  const ending e = drive(waiting, w, self);
  if (e.how == step::cancelled) return outcome::cancelled;
  if (e.how == step::settle) {
    w.settle();
    self.was_moved();  // the user's move constructor of an element may have suspended the task
  }
  if (e.parked) return outcome::completed;
  WEFT_LOG(park, "task %s does not park for %s: already complete", task::label(self.parkable()).text,
           task::wait_text(w.what()).text);
  if (!self.on().spend_budget()) self.on().yield();
  return outcome::completed;
}

}  // namespace weft::inline v1::waits
