// What the short ways through a channel have in common. Operations that are no arms of a select take them.
#pragma once

#include <source_location>

#include "chan/core.hpp"
#include "sched/worker.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::chan {

// All functions here are cancellation points.

// The short way of a channel without a lock-free ring, which mostly has no buffer at all: rendezvous.cpp.
template <side Side>
[[nodiscard]] status transfer_without_ring(core& c, void* slot, std::source_location where);
// The short way of a channel whose buffer is used under the lock: calls.cpp.
template <side Side>
[[nodiscard]] status transfer_buffered(core& c, void* slot, std::source_location where);

// Completes the operation by a wait like any other (fiber_wait). `before` is what has become of it until now: a send
// that was told to retry has been admitted already.
template <side Side>
[[nodiscard]] status complete(core& c, void* slot, status before, const waits::options& o) {
  transfer_operation<Side> op(&c);
  op.aim(slot, before);
  if (waits::fiber_wait(op, op.node(), o) == waits::outcome::cancelled) waits::throw_cancelled();
  return op.result();
}
// The same for outside threads, cancelled tasks, tasks without budget, and waiters that have to look again. Its
// arguments fit into registers, so a function that calls it last needs no frame on the usual way.
template <side Side>
[[nodiscard]] [[gnu::noinline]] status complete_slowly(core& c, void* slot, status before, std::source_location where) {
  return complete<Side>(c, slot, before, {.where = where});
}

}  // namespace weft::inline v1::chan
