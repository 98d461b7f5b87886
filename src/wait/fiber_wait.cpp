#include "wait/fiber_wait.hpp"

#include "base/static_init.hpp"
#include "sched/alarm.hpp"
#include "sched/scheduler.hpp"
#include "wait/stop_bridge.hpp"
#include "wait/thread_waiter.hpp"
#include <weft/cancelled.hpp>

namespace weft::inline v1::waits {

using task::record;
using task::state_word;
using task::wake_reason;

// ---- wakers --------------------------------------------------------------------------------------------------------

void resume(task::parkable& who) noexcept {
  switch (who.what) {
    case task::parkable::kind::fiber: return sched::scheduler::schedule(static_cast<record*>(&who));
    case task::parkable::kind::thread: return static_cast<thread_waiter&>(who).signal();
    case task::parkable::kind::alarm: return static_cast<sched::alarm&>(who).ring();
  }
}

void resume_joiner(task::parkable& who) noexcept {
  if (who.what == task::parkable::kind::fiber)
    sched::scheduler::schedule_joiner(static_cast<record*>(&who));
  else
    resume(who);
}

void cancel(record& t) noexcept {
  const bool claimed = t.word.request_cancel() == task::wake_result::claimed;
  // The bridges are told before the task is woken, while they still exist: once it runs, it may end and only the
  // caller's reference keeps its record.
  if (t.word.is_bridged()) [[unlikely]]
    tell_bridges(t);
  if (!claimed) return;
  t.wake_value = task::wake_value(wake_reason::cancelled, 0);
  sched::scheduler::schedule(&t);
}

// ---- the running task ----------------------------------------------------------------------------------------------

record* current_task() noexcept {
  sched::worker* w = sched::this_worker();
  return w == nullptr ? nullptr : w->current();
}

bool cancel_pending(const sched::worker& on, const record& self) noexcept {
  return (self.word.load() & state_word::cancel_requested) != 0 && can_be_cancelled(on, self);
}

void throw_cancelled() { throw cancelled(); }

void check_cancelled() {
  const sched::worker* on = sched::this_worker();
  if (on != nullptr && on->current() != nullptr && cancel_pending(*on, *on->current())) throw_cancelled();
}

void report_bad_suspension(int locks_allowed, std::source_location where) noexcept {
  if (base::locks_held() > locks_allowed)
    base::fail("a task suspends while it holds one of Weft's internal locks", where);
  if (base::static_initializers_running() > 0)
    base::fail(
        "a task suspends inside the initializer of a function-local static: others that reach it would block their "
        "worker, "
        "and the guard may be released on another thread. Initialize it before, or use a global",
        where);
}

}  // namespace weft::inline v1::waits
