#include "wait/permit.hpp"

#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "task/name.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::waits {

using task::state_word;

namespace {

// The user's question, asked while PARKING: if it throws, the task must be RUNNING again first.
bool still_or_abort(task::record& self, bool (*still)(const void* context), const void* context) {
  try {
    return still(context);
  } catch (...) {
    self.word.abort_park();
    throw;
  }
}

}  // namespace

void park_if(bool (*still)(const void* context), const void* context, std::source_location where) {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) [[unlikely]]
    weft::detail::throw_usage("park_if needs a task: it parks the one that calls it, and this thread runs none", where);
  task::record& self = *on->current();
  check_may_suspend(0, where);
  const bool interruptible = self.shields == 0 && !on->is_unwinding();
  if (interruptible && (self.word.load() & state_word::cancel_requested) != 0) throw_cancelled();
  const bool had_permit = self.word.consume_permit();
  if (had_permit || !still(context)) {
    WEFT_LOG(park, "task %s does not park: %s", task::label(self).text,
             had_permit ? "it has a permit" : "the condition has changed");
    on = sched::this_worker();
    if (!on->spend_budget()) on->yield();
    return;
  }
  note_site(self, "park_if", context, where);
  const std::uint64_t word =
      self.word.begin_park(state_word::takes_permit | (interruptible ? state_word::interruptible : 0));
  const bool cancelled = interruptible && (word & state_word::cancel_requested) != 0;
  if (cancelled || (word & state_word::permit) != 0 || !still_or_abort(self, still, context))
    self.word.abort_park();
  else
    sched::worker::park(*sched::this_worker(), nullptr, nullptr);  // the question may have moved us: ask who we are now
  // The permit comes first: a cancellation that came after it is met at the next point, and nothing is lost.
  if (self.word.consume_permit()) return;
  if (interruptible && (self.word.load() & state_word::cancel_requested) != 0) throw_cancelled();
}

void unpark(task::record& t) noexcept {
  WEFT_LOG(wake, "unpark of task %s", task::label(t).text);
  if (t.word.grant_permit() == task::wake_result::claimed) sched::scheduler::schedule(&t);
}

}  // namespace weft::inline v1::waits
