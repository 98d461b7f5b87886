// Waking: the claim decides who ends a wait, and the winner resumes the waiter, once.
#pragma once

#include "sched/worker.hpp"
#include "task/task.hpp"
#include "wait/node.hpp"

namespace weft::inline v1::waits {

// Called with the object's lock held. Claims the waiter of n and writes the reason. If it returns true, the caller owns
// the waiter and must call resume() once, after it has released the lock; from then on the node is the waiter's again.
[[nodiscard]] inline bool claim(node& n, task::wake_reason why) noexcept {
  if (n.who->word.wake(n.ticket) != task::wake_result::claimed) return false;
  n.who->wake_value = task::wake_value(why, n.arm);
  return true;
}

void resume(task::parkable& who) noexcept;
void resume_joiner(task::parkable& who) noexcept;  // the same, but the task is queued behind other woken tasks
// The same, called by a task that knows on which worker it runs.
inline void resume(sched::worker& on, task::parkable& who) noexcept {
  if (who.what == task::parkable::kind::fiber) [[likely]] {
    task::record& t = static_cast<task::record&>(who);
    if (t.owner == &on.owner()) [[likely]]
      return on.accept_woken(&t);
  }
  resume(who);
}

// Requests the cancellation of a task to which the caller holds a reference. Any thread may call it.
void cancel(task::record& t) noexcept;

}  // namespace weft::inline v1::waits
