#include "wait/fiber_wait.hpp"

#include <exception>

#include "base/static_init.hpp"
#include "sched/alarm.hpp"
#include "sched/scheduler.hpp"
#include "wait/stop_bridge.hpp"
#include "wait/thread_waiter.hpp"
#include <weft/cancelled.hpp>

namespace weft::inline v1::waits {
namespace {

using task::record;
using task::state_word;
using task::wake_reason;

bool interruptible_now(const record& self) noexcept { return self.shields == 0 && std::uncaught_exceptions() == 0; }

}  // namespace

record* current_task() noexcept {
  sched::worker* w = sched::this_worker();
  return w == nullptr ? nullptr : w->current();
}

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
    static_cast<thread_waiter&>(who).signal();
}

void cancel(record& t) noexcept {
  const bool claimed = t.word.request_cancel() == task::wake_result::claimed;
  // Before it is woken, and so while its bridges stand: after that it may be gone but for the caller's reference.
  if (t.word.is_bridged()) [[unlikely]]
    tell_bridges(t);
  if (!claimed) return;
  t.wake_value = static_cast<std::uint64_t>(wake_reason::cancelled);
  sched::scheduler::schedule(&t);
}

bool cancel_pending(const record& self) noexcept {
  return (self.word.load() & state_word::cancel_requested) != 0 && interruptible_now(self);
}

void throw_cancelled() { throw cancelled(); }

void check_cancelled() {
  record* self = current_task();
  if (self != nullptr && cancel_pending(*self)) throw_cancelled();
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
