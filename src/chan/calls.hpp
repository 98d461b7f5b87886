// What the short ways through a channel have in common, and the one of a rendezvous.
#pragma once

#include <source_location>

#include "chan/core.hpp"
#include "sched/worker.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::chan {

// Of a channel that has no lock-free ring, mostly one without any buffer. Cancellation points.
[[nodiscard]] status send_without_ring(core& c, void* value, std::source_location where);
[[nodiscard]] status receive_without_ring(core& c, void* target, std::source_location where);
// Of a channel whose buffer is used under the lock.
[[nodiscard]] status send_buffered(core& c, void* value, std::source_location where);
[[nodiscard]] status receive_buffered(core& c, void* target, std::source_location where);

// Outside threads, cancelled tasks, spent budgets, and whoever has to look again.
template <class Operation>
[[gnu::noinline]] status complete_slowly(core& c, void* slot, bool admitted, std::source_location where) {
  Operation op(&c);
  op.aim(slot, admitted);
  if (waits::fiber_wait(op, op.node(), {.interruptible = true, .where = where}) == waits::outcome::cancelled)
    waits::throw_cancelled();
  return op.result();
}

}  // namespace weft::inline v1::chan
