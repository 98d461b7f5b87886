// A rendezvous whose channel's lock others want as well: the ways it takes then (src/chan/rendezvous.cpp).
// sources: chan/core.cpp chan/calls.cpp chan/rendezvous.cpp chan/operation.cpp chan/buffer.cpp sched/environment.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// A program of its own: what it asks of the lock holds for all of its tests.
#include "channel_pairs.hpp"

using namespace model;

namespace {

void contend() noexcept { weft::base::lock::halves_say_anything = true; }

}  // namespace

MODEL_TEST(contended_rendezvous) {
  contend();
  a_pair(0, path::locked);
}

MODEL_TEST(contended_senders) {
  contend();
  two_senders(0, path::locked);
}
