// What the short ways through a channel have in common, and the one of a rendezvous.
#pragma once

#include <source_location>

#include "chan/core.hpp"
#include "sched/worker.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::chan {

// Of a channel without a buffer. Cancellation points.
[[nodiscard]] status meet_receiver(core& c, void* value, std::source_location where);
[[nodiscard]] status meet_sender(core& c, void* target, std::source_location where);

// Outside threads, cancelled tasks, spent budgets, and whoever has to look again.
template <class Operation>
[[gnu::noinline]] status complete_slowly(core& c, void* slot, bool admitted, std::source_location where) {
  Operation op(&c);
  op.aim(slot, admitted);
  if (wait::fiber_wait(op, op.node(), {.interruptible = true, .where = where}) == wait::outcome::cancelled)
    wait::throw_cancelled();
  return op.result();
}

// The running task's worker, if the task may go on without a look at cancellation and budget.
inline sched::worker* undisturbed() noexcept {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) [[unlikely]]
    return nullptr;
  if ((on->current()->word.peek() & task::state_word::cancel_requested) != 0) [[unlikely]]
    return nullptr;
  return on->spend_budget() ? on : nullptr;
}

}  // namespace weft::inline v1::chan
