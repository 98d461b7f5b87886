// Channels: send, receive, close, deaths and cancellation at every step (src/chan).
// sources: chan/core.cpp chan/calls.cpp chan/rendezvous.cpp chan/operation.cpp chan/buffer.cpp sched/environment.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// chan.C1. Nobody waits beside what it waits for (a deadlock here).
// chan.C2. What is received was sent, once, and what was done before the send is seen (a data race here).
// chan.C3. A send either took effect or left the value with its sender.
#include "channel.hpp"
#include "channel_pairs.hpp"

using namespace model;
using explore::join_all;
using explore::thread;

namespace {

void two_receivers(std::size_t capacity, path p) {
  channel c(capacity, p);
  u64 got[2] = {};
  fiber first([&] { got[0] = c.receive(); });
  fiber second([&] { got[1] = c.receive(); });
  fiber sender([&] {
    model_assert(c.send(1) == status::done);
    model_assert(c.send(2) == status::done);
  });
  join_all();
  model_assert(got[0] + got[1] == 3 && got[0] != got[1]);
  model_assert(c.nobody_waits());
}

// A send that is admitted is received, whatever the close does; one that is not leaves nothing behind (LS-C1, CC-9).
void send_against_close(std::size_t capacity, path p) {
  channel c(capacity, p);
  status sent{};
  u64 got = 0;
  fiber sender([&] { sent = c.send(1); });
  fiber receiver([&] {
    got = c.receive();
    if (got != 0) model_assert(c.receive() == 0);
  });
  thread([&] { c.close(); });
  join_all();
  model_assert(sent == status::done || sent == status::closed);
  model_assert((sent == status::done) == (got == 1));
  model_assert(c.nobody_waits());
}

void send_against_reader_death(std::size_t capacity, path p) {
  channel c(capacity, p);
  status sent[2] = {};
  fiber sender([&] {
    sent[0] = c.send(1);
    sent[1] = c.send(2);
  });
  thread([&] { c.abandon(); });
  join_all();
  for (status s : sent) model_assert(s == status::done || s == status::closed);
  model_assert(c.nobody_waits());
}

// The value goes to the receiver or stays with the sender; a wake is not swallowed by the one that was cancelled.
void send_against_cancel(std::size_t capacity, path p) {
  channel c(capacity, p);
  status sent[2] = {};
  u64 got = 0;
  fiber first([&] { sent[0] = c.send(1); });
  fiber second([&] { sent[1] = c.send(2); });
  thread([&] { first.cancel(); });
  fiber receiver([&] {
    got = c.receive();
    c.abandon();
  });
  join_all();
  model_assert(got == 1 || got == 2);
  model_assert((got == 1) == (sent[0] == status::done));
  model_assert((got == 2) == (sent[1] == status::done));
  model_assert(first.cancelled == (sent[0] == status::pending));
  model_assert(c.nobody_waits());
}

void receive_against_cancel(std::size_t capacity, path p) {
  channel c(capacity, p);
  u64 got = 0, left = 0;
  fiber receiver([&] { got = c.receive(); });
  fiber sender([&] {
    model_assert(c.send(1) == status::done);
    c.close();
  });
  fiber other([&] { left = c.receive(); });
  thread([&] { receiver.cancel(); });
  join_all();
  model_assert(got + left == 1);
  if (receiver.cancelled) model_assert(left == 1);
  model_assert(c.nobody_waits());
}

void two_closes(path p) {
  channel c(1, p);
  fiber receiver([&] { model_assert(c.receive() == 0); });
  for (int i = 0; i < 2; ++i) thread([&] { c.close(); });
  join_all();
  model_assert(c.nobody_waits());
}

// Nobody receives again: the room that one receive makes is all a waiting sender gets.
void room_for_a_waiting_sender() {
  channel c(1);
  fiber sender([&] {
    model_assert(c.send(1) == status::done);
    model_assert(c.send(2) == status::done);
  });
  fiber receiver([&] { model_assert(c.receive() == 1); });
  join_all();
  model_assert(c.nobody_waits());
}

// A send that was published before another began is received before it.
void waiting_sender_is_not_overtaken() {
  channel c(1);
  bool waited = false;
  u64 got[3] = {};
  fiber first([&] {
    model_assert(c.send(1) == status::done);
    model_assert(c.send(2) == status::done);
  });
  fiber later([&] {
    for (;;) {
      const chan::counts now = c.core.count();
      waited = now.waiting_senders != 0;
      if (waited || now.received != 0) break;
      base::cpu_relax();
    }
    model_assert(c.send(3) == status::done);
  });
  fiber receiver([&] {
    for (u64& v : got) v = c.receive();
  });
  join_all();
  model_assert(got[0] == 1 && got[1] + got[2] == 5);
  if (waited) model_assert(got[1] == 2);
  model_assert(c.nobody_waits());
}

// An attempt does not miss what its own task sent, also while an earlier position is still being written.
void attempt_finds_what_was_sent(std::size_t capacity, path p) {
  channel c(capacity, p);
  fiber other([&] { model_assert(c.send(1) == status::done); });
  fiber self([&] {
    model_assert(c.send(2) == status::done);
    status how = status::pending;
    (void)c.try_receive(how);
    model_assert(how == status::done);
  });
  join_all();
  model_assert(c.core.count().size == 1);
}

// Mirror: room that its own task made, also while an earlier position is still being read.
void attempt_finds_room_that_was_made() {
  channel c(2);
  model_assert(c.try_send(1) == status::done && c.try_send(2) == status::done);
  fiber other([&] { model_assert(c.receive() != 0); });
  fiber self([&] {
    model_assert(c.receive() != 0);
    model_assert(c.try_send(3) == status::done);
  });
  join_all();
  model_assert(c.core.count().size == 1);
}

// A sender that waits is found by an attempt.
void attempt_finds_a_waiting_sender() {
  channel c(0);
  bool waits = false;
  fiber sender([&] { model_assert(c.send(1) == status::done); });
  fiber receiver([&] {
    waits = c.core.count().waiting_senders != 0;
    status how = status::pending;
    const u64 got = c.try_receive(how);
    model_assert(!waits || got == 1);
    if (got == 0) model_assert(c.receive() == 1);
  });
  join_all();
  model_assert(c.nobody_waits());
}

}  // namespace

// req: LS-C1 LS-C4 CC-8
MODEL_TEST(channel_pair_rendezvous) { a_pair(0, path::locked); }
MODEL_TEST(channel_pair_capacity_1_locked) { a_pair(1, path::locked); }
MODEL_TEST(channel_pair_capacity_1) { a_pair(1, path::lock_free); }
MODEL_TEST(channel_pair_capacity_2) { a_pair(2, path::lock_free); }

MODEL_TEST(channel_two_senders_rendezvous) { two_senders(0, path::locked); }
MODEL_TEST(channel_two_senders_capacity_1) { two_senders(1, path::lock_free); }
MODEL_TEST(channel_two_senders_capacity_2) { two_senders(2, path::lock_free); }

MODEL_TEST(channel_two_receivers_rendezvous) { two_receivers(0, path::locked); }
MODEL_TEST(channel_two_receivers_capacity_1) { two_receivers(1, path::lock_free); }

// req: LS-C1 LS-C2 LS-C3 CC-9
MODEL_TEST(channel_close_rendezvous) { send_against_close(0, path::locked); }
MODEL_TEST(channel_close_capacity_1_locked) { send_against_close(1, path::locked); }
MODEL_TEST(channel_close_capacity_1) { send_against_close(1, path::lock_free); }
MODEL_TEST(channel_close_capacity_2) { send_against_close(2, path::lock_free); }
MODEL_TEST(channel_two_closes) { two_closes(path::lock_free); }

// req: LS-C3 CSP-2
MODEL_TEST(channel_reader_death_rendezvous) { send_against_reader_death(0, path::locked); }
MODEL_TEST(channel_reader_death_capacity_1) { send_against_reader_death(1, path::lock_free); }

// req: CC-10 LS-P3
MODEL_TEST(channel_send_cancel_rendezvous) { send_against_cancel(0, path::locked); }
MODEL_TEST(channel_receive_cancel_rendezvous) { receive_against_cancel(0, path::locked); }
MODEL_TEST(channel_receive_cancel_capacity_1) { receive_against_cancel(1, path::lock_free); }

// req: LS-C4 CC-8
MODEL_TEST(channel_room_wakes_a_waiting_sender) { room_for_a_waiting_sender(); }
MODEL_TEST(channel_waiting_sender_is_not_overtaken, .old_reads = 1) { waiting_sender_is_not_overtaken(); }
MODEL_TEST(channel_attempt_finds_what_was_sent) { attempt_finds_what_was_sent(2, path::lock_free); }
MODEL_TEST(channel_attempt_finds_what_was_sent_locked) { attempt_finds_what_was_sent(2, path::locked); }
MODEL_TEST(channel_attempt_finds_room_that_was_made) { attempt_finds_room_that_was_made(); }
MODEL_TEST(channel_attempt_finds_a_waiting_sender) { attempt_finds_a_waiting_sender(); }
