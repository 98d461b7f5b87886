// A rendezvous whose channel's lock others want as well: the ways it takes then (src/chan/rendezvous.cpp).
// sources: chan/core.cpp chan/calls.cpp chan/rendezvous.cpp chan/operation.cpp chan/buffer.cpp sched/environment.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// A program of its own: what it asks of the lock holds for all of its tests.
#include "channel.hpp"

using namespace model;
using explore::join_all;

namespace {

void contend() noexcept { weft::base::lock::halves_say_anything = true; }

}  // namespace

MODEL_TEST(contended_rendezvous) {
  contend();
  channel c(0, path::locked);
  fiber sender([&] {
    model_assert(c.send(1) == status::done);
    model_assert(c.send(2) == status::done);
    c.close();
  });
  fiber receiver([&] {
    model_assert(c.receive() == 1);
    model_assert(c.receive() == 2);
    model_assert(c.receive() == 0);
  });
  join_all();
  model_assert(c.nobody_waits());
}

MODEL_TEST(contended_senders) {
  contend();
  channel c(0, path::locked);
  fiber first([&] { model_assert(c.send(1) == status::done); });
  fiber second([&] { model_assert(c.send(2) == status::done); });
  fiber receiver([&] {
    const u64 a = c.receive();
    const u64 b = c.receive();
    model_assert(a + b == 3 && a != b);
  });
  join_all();
  model_assert(c.nobody_waits());
}
