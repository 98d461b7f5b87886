// Select over two channels: against sends, other selects, closes and cancellation (src/wait/select.cpp).
// sources: chan/core.cpp chan/calls.cpp chan/rendezvous.cpp chan/operation.cpp chan/buffer.cpp sched/environment.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// wait.E1. Exactly one arm completes, and its peer's operation with it; the losers have left no trace.
// wait.E2. No send is missed between the last look and the park (a deadlock here).
// wait.E3. Overlapping selects do not deadlock, in whatever order they name the channels.
#include <chrono>

#include "base/clock.hpp"
#include "channel.hpp"
#include <weft/detail/channel_arms.hpp>
#include <weft/select.hpp>
#include <weft/timer.hpp>

using namespace model;
using explore::join_all;
using explore::thread;

namespace {

using receive_arm = weft::receive_arm<u64>;
using send_arm = weft::send_arm<u64>;

// Receives from whichever channel has something.
u64 receive_either(channel& a, channel& b, bool b_first) {
  u64 v = 0;
  receive_arm from_a(&a.core, v), from_b(&b.core, v);
  const weft::selected s =
      b_first ? weft::selected(weft::prialt(from_b, from_a)) : weft::selected(weft::prialt(from_a, from_b));
  return s.ok() ? v : 0;
}

// The same, in whichever order it looks.
u64 receive_fairly(channel& a, channel& b) {
  u64 v = 0;
  receive_arm from_a(&a.core, v), from_b(&b.core, v);
  return weft::selected(weft::alt(from_a, from_b)).ok() ? v : 0;
}

// One of two senders gets rid of its value, the other learns that nobody wants it.
template <class Receive>
void against_two_senders(Receive receive) {
  channel a(0), b(0);
  u64 got = 0;
  status sent[2] = {};
  fiber selector([&] {
    got = receive(a, b);
    (got == 1 ? a : b).abandon();
    (got == 1 ? b : a).abandon();
  });
  fiber to_a([&] { sent[0] = a.send(1); });
  fiber to_b([&] { sent[1] = b.send(2); });
  join_all();
  model_assert((sent[0] == status::done) == (got == 1));
  model_assert((sent[1] == status::done) == (got == 2));
  model_assert(a.nobody_waits() && b.nobody_waits());
}

// Two selects meet on one of two channels. `send` returns the number of the one it sent to, which is what it sent.
template <class Send, class Receive>
void against_select(Send send, Receive receive) {
  channel a(0), b(0);
  u64 sent_to = 0, got = 0;
  fiber sending([&] {
    u64 one = 1, two = 2;
    send_arm to_a(&a.core, one), to_b(&b.core, two);
    sent_to = send(to_a, to_b) + 1;
  });
  fiber receiving([&] { got = receive(a, b); });
  join_all();
  model_assert(got != 0 && got == sent_to);
  model_assert(a.nobody_waits() && b.nobody_waits());
}

}  // namespace

// req: CC-11 LS-F4
MODEL_TEST(select_against_two_senders) {
  against_two_senders([](channel& a, channel& b) { return receive_either(a, b, false); });
}

// req: CC-11 CSP-4
MODEL_TEST(select_fair_against_two_senders) { against_two_senders(receive_fairly); }

// req: CSP-5 CC-11
MODEL_TEST(select_against_select_in_both_orders) {
  against_select([](send_arm& to_a, send_arm& to_b) { return weft::prialt(to_a, to_b).index(); },
                 [](channel& a, channel& b) { return receive_either(a, b, true); });
}

// req: CSP-5 CC-11
MODEL_TEST(select_fair_against_select) {
  against_select([](send_arm& to_a, send_arm& to_b) { return weft::alt(to_a, to_b).index(); }, receive_fairly);
}

// One side has a fast path, which goes past the select's locks until it waits there.
// req: CC-11 CSP-4
MODEL_TEST(select_fair_from_a_buffer_and_a_sender) {
  channel a(1), b(0);
  u64 got[2] = {};
  fiber selector([&] {
    got[0] = receive_fairly(a, b);
    got[1] = receive_fairly(a, b);
  });
  fiber to_a([&] { model_assert(a.send(1) == status::done); });
  fiber to_b([&] { model_assert(b.send(2) == status::done); });
  join_all();
  model_assert(got[0] + got[1] == 3 && got[0] != 0 && got[1] != 0);
  model_assert(a.nobody_waits() && b.nobody_waits());
}

// Each could receive from the other, or send to it: one exchange, and both return.
// req: CSP-5
MODEL_TEST(select_crossing) {
  channel a(0), b(0);
  std::size_t won[2] = {};
  fiber first([&] {
    u64 one = 1, v = 0;
    send_arm out(&a.core, one);
    receive_arm in(&b.core, v);
    won[0] = weft::prialt(out, in).index();
  });
  fiber second([&] {
    u64 two = 2, v = 0;
    send_arm out(&b.core, two);
    receive_arm in(&a.core, v);
    won[1] = weft::prialt(out, in).index();
  });
  join_all();
  model_assert(won[0] != won[1]);
  model_assert(a.nobody_waits() && b.nobody_waits());
}

// req: CSP-4
MODEL_TEST(select_same_channel_on_both_sides) {
  channel a(0);
  u64 got = 0;
  fiber both([&] {
    u64 one = 1, v = 0;
    send_arm out(&a.core, one);
    receive_arm in(&a.core, v);
    model_assert(weft::prialt(in, out).index() == 1);
  });
  fiber receiver([&] {
    chan::words w{{0, 0}};
    model_assert(chan::receive(a.core, &w, {}) == status::done);
    got = w.word[0];
  });
  join_all();
  model_assert(got == 1);
  model_assert(a.nobody_waits());
}

// A cancelled select has left both lists, and what was sent is not lost.
// req: CC-10
MODEL_TEST(select_against_cancel_and_send) {
  channel a(0), b(0);
  u64 got = 0;
  status sent{};
  fiber selector([&] {
    try {
      got = receive_either(a, b, false);
    } catch (...) {
      a.abandon();
      throw;
    }
    a.abandon();
  });
  fiber sender([&] { sent = a.send(1); });
  thread([&] { selector.cancel(); });
  join_all();
  model_assert((sent == status::done) == (got == 1));
  model_assert(selector.cancelled == (got == 0));
  model_assert(a.nobody_waits() && b.nobody_waits());
}

// An outside thread has no wheel: when its deadline has come, it claims itself. If a sender was faster, the thread
// waits until it is told. Before that the value has not arrived, and the waiter must not end.
MODEL_TEST(select_in_a_thread_whose_deadline_meets_a_sender) {
  channel a(0);
  u64 got = 0;
  status sent{};
  thread([&] {
    receive_arm from(&a.core, got);
    weft::timer limit{std::chrono::steady_clock::time_point(std::chrono::nanoseconds(base::now() + 1'000'000))};
    const std::size_t won = weft::prialt(from, limit).index();
    model_assert((won == 0) == (got == 1));
    a.abandon();
  });
  fiber sender([&] { sent = a.send(1); });
  join_all();
  model_assert((sent == status::done) == (got == 1));
  model_assert(a.nobody_waits());
}

// req: CSP-3
MODEL_TEST(select_death_against_send) {
  channel in(0), out(0);
  std::size_t won = 9;
  status sent{};
  fiber filter([&] {
    u64 v = 0;
    weft::death_arm dead(&out.core, side::writer);
    receive_arm from(&in.core, v);
    won = weft::prialt(dead, from).index();
    in.abandon();
  });
  fiber upstream([&] { sent = in.send(1); });
  thread([&] { out.abandon(); });
  join_all();
  model_assert((won == 1) == (sent == status::done));
  model_assert(in.nobody_waits() && out.nobody_waits());
}

// Room is made without the lock while a sender announces that it will wait: it sends then, and does not wait for anybody.
// req: CC-8 CC-11
MODEL_TEST(select_sends_into_room_that_is_made_meanwhile) {
  channel c(1);
  model_assert(c.try_send(1) == status::done);
  u64 first = 0, second = 0;
  fiber sending([&] {
    u64 two = 2;
    send_arm to(&c.core, two);
    model_assert(weft::selected(weft::alt(to)).ok());
  });
  fiber receiving([&] {
    first = c.receive();
    receive_arm from(&c.core, second);
    model_assert(weft::selected(weft::alt(from)).ok());
  });
  join_all();
  model_assert(first == 1 && second == 2 && c.nobody_waits());
}
