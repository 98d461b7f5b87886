// The park and its wakers, one step at a time, on a bare state word and on bare parkables.
#include <gtest/gtest.h>

#include <thread>

#include "support/process.hpp"
#include "support/watchdog.hpp"
#include "task/state.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task::phase;
using weft::task::state_word;
using weft::task::ticket;
using weft::task::wake_result;
namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;

constexpr std::uint64_t a_cancellable_wait = state_word::interruptible;
constexpr std::uint64_t a_permit_wait = state_word::takes_permit | state_word::interruptible;

phase phase_of(const state_word& w) { return state_word::phase_of(w.load()); }
bool has(const state_word& w, std::uint64_t flag) { return (w.load() & flag) != 0; }

struct running : state_word {
  explicit running(ticket first = 7) : state_word(phase::active, first) {}
  ticket park(std::uint64_t flags = 0) { return ticket_of(begin_park(flags)); }
};

// req: LS-T1
TEST(StateSteps, every_park_has_a_ticket_of_its_own) {
  running w;
  ticket last = 7;
  for (int i = 0; i < 1000; ++i) {
    const ticket t = w.park();
    EXPECT_EQ(t, last + 1);
    last = t;
    if (i % 2 == 0) {
      w.abort_park();
    } else {
      ASSERT_TRUE(w.commit_park());
      ASSERT_EQ(w.wake(t), wake_result::claimed);
    }
  }
}

// req: LS-T1
TEST(StateSteps, a_ticket_of_48_bits_wraps_without_touching_the_rest_of_the_word) {
  constexpr ticket last = (ticket{1} << 48) - 1;
  running w(last - 1);
  EXPECT_EQ(w.park(), last);
  w.abort_park();
  ASSERT_NE(w.request_cancel(), wake_result::claimed);
  EXPECT_EQ(w.park(), 0u);
  EXPECT_EQ(phase_of(w), phase::parking);
  EXPECT_TRUE(has(w, state_word::cancel_requested));
  EXPECT_EQ(w.wake(last), wake_result::stale);
  EXPECT_EQ(w.wake(0), wake_result::left_pending);
}

// req: LS-T1
TEST(StateSteps, a_ticket_outlives_the_task_and_is_never_given_again) {
  running w;
  const ticket first = w.park();
  w.abort_park();
  (void)w.finish_unwanted(phase::done);
  w.reset_for_spawn(true);
  w.spawned();
  EXPECT_EQ(w.wake(first), wake_result::stale);
  const ticket second = w.park();
  EXPECT_GT(second, first);
  EXPECT_EQ(w.wake(first), wake_result::stale) << "PARKING under a newer ticket";
  EXPECT_FALSE(has(w, state_word::wake_pending));
  ASSERT_TRUE(w.commit_park());
  EXPECT_EQ(w.wake(first), wake_result::stale) << "PARKED under a newer ticket";
  EXPECT_EQ(phase_of(w), phase::parked);
}

// req: LS-P1 LS-P2
TEST(StateSteps, a_wake_before_the_park_begins_is_stale) {
  running w;
  EXPECT_EQ(w.wake(7), wake_result::stale);
  EXPECT_EQ(w.wake(8), wake_result::stale) << "the ticket of a wait that has not begun";
  const ticket t = w.park();
  EXPECT_FALSE(has(w, state_word::wake_pending));
  EXPECT_EQ(t, 8u);
}

// req: LS-P1 LS-P2 LS-F3
TEST(StateSteps, a_wake_while_PARKING_only_leaves_word_and_the_committer_makes_the_claim) {
  running w;
  const ticket t = w.park(a_cancellable_wait);
  EXPECT_EQ(w.wake(t), wake_result::left_pending);
  EXPECT_EQ(phase_of(w), phase::parking) << "seen, not claimed";
  EXPECT_EQ(w.wake(t), wake_result::left_pending) << "again, by another";
  EXPECT_FALSE(w.commit_park()) << "the committing stack enqueues";
  EXPECT_EQ(phase_of(w), phase::active);
  EXPECT_FALSE(has(w, state_word::per_wait)) << "nothing is left for the next wait";
  EXPECT_EQ(w.wake(t), wake_result::stale) << "only one enqueues";
}

// req: LS-P1
TEST(StateSteps, a_wake_while_PARKING_does_not_reach_the_next_wait_when_the_park_is_given_up) {
  running w;
  const ticket t = w.park(a_permit_wait);
  EXPECT_EQ(w.wake(t), wake_result::left_pending);
  w.abort_park();
  EXPECT_EQ(phase_of(w), phase::active);
  EXPECT_EQ(w.wake(t), wake_result::stale);
  const ticket next = w.park();
  EXPECT_FALSE(has(w, state_word::wake_pending));
  EXPECT_TRUE(w.commit_park());
  EXPECT_EQ(w.wake(next), wake_result::claimed);
}

// req: LS-F4
TEST(StateSteps, a_PARKED_task_is_claimed_once) {
  running w;
  const ticket t = w.park(a_permit_wait);
  ASSERT_TRUE(w.commit_park());
  EXPECT_EQ(w.wake(t), wake_result::claimed);
  EXPECT_EQ(w.wake(t), wake_result::stale);
  EXPECT_EQ(w.request_cancel(), wake_result::left_pending) << "kept for the next cancellation point";
  EXPECT_EQ(w.grant_permit(), wake_result::left_pending) << "kept for the next park_if";
  EXPECT_EQ(phase_of(w), phase::active);
}

// req: LS-P3
TEST(StateSteps, cancellation_claims_as_any_other_wake_does) {
  running before;
  EXPECT_EQ(before.request_cancel(), wake_result::left_pending);
  EXPECT_NE(before.begin_park(a_cancellable_wait) & state_word::cancel_requested, 0u) << "seen when the park begins";

  running during;
  (void)during.park(a_cancellable_wait);
  EXPECT_EQ(during.request_cancel(), wake_result::left_pending);
  EXPECT_EQ(phase_of(during), phase::parking);
  EXPECT_FALSE(during.commit_park());

  running after;
  const ticket t = after.park(a_cancellable_wait);
  ASSERT_TRUE(after.commit_park());
  EXPECT_EQ(after.request_cancel(), wake_result::claimed);
  EXPECT_EQ(after.wake(t), wake_result::stale) << "the other wakers have lost";
  EXPECT_EQ(after.request_cancel(), wake_result::left_pending);
}

// req: LS-P3
TEST(StateSteps, cancellation_does_not_wake_a_shielded_wait_and_stays_requested) {
  running w;
  const ticket t = w.park();  // not interruptible
  EXPECT_EQ(w.request_cancel(), wake_result::left_pending);
  EXPECT_TRUE(w.commit_park());
  EXPECT_EQ(w.request_cancel(), wake_result::left_pending);
  EXPECT_EQ(phase_of(w), phase::parked);
  EXPECT_EQ(w.wake(t), wake_result::claimed);
  EXPECT_TRUE(has(w, state_word::cancel_requested));
}

// req: CC-5
TEST(StateSteps, a_permit_wakes_park_if_before_during_and_after_the_park) {
  running before;
  EXPECT_EQ(before.grant_permit(), wake_result::left_pending);
  EXPECT_NE(before.begin_park(a_permit_wait) & state_word::permit, 0u);

  running during;
  (void)during.park(a_permit_wait);
  EXPECT_EQ(during.grant_permit(), wake_result::left_pending);
  EXPECT_FALSE(during.commit_park());

  running after;
  (void)after.park(a_permit_wait);
  ASSERT_TRUE(after.commit_park());
  EXPECT_EQ(after.grant_permit(), wake_result::claimed);
  EXPECT_TRUE(after.consume_permit());
  EXPECT_FALSE(after.consume_permit()) << "there is one";
}

// req: CC-5
TEST(StateSteps, a_permit_neither_wakes_nor_is_lost_in_a_wait_that_does_not_take_it) {
  running w;
  const ticket t = w.park(a_cancellable_wait);
  EXPECT_EQ(w.grant_permit(), wake_result::left_pending);
  EXPECT_TRUE(w.commit_park());
  EXPECT_EQ(w.grant_permit(), wake_result::left_pending);
  EXPECT_EQ(phase_of(w), phase::parked);
  EXPECT_EQ(w.wake(t), wake_result::claimed);
  EXPECT_TRUE(w.consume_permit());
}

// req: LS-P3 CC-5
TEST(StateSteps, what_comes_after_the_end_is_stale) {
  for (const phase end : {phase::done, phase::cancelled}) {
    running w;
    (void)w.finish_unwanted(end);
    EXPECT_EQ(w.request_cancel(), wake_result::stale);
    EXPECT_EQ(w.grant_permit(), wake_result::stale);
    EXPECT_EQ(w.wake(7), wake_result::stale);
    EXPECT_EQ(phase_of(w), end);
  }
}

// req: CC-6
TEST(StateSteps, a_joiner_that_comes_after_the_end_is_told_so_and_one_before_it_is_told_to_the_finisher) {
  running early;
  EXPECT_TRUE(early.add_joiner());
  EXPECT_TRUE(early.finish_unwanted(phase::done).has_joiners);
  running late;
  EXPECT_FALSE(late.finish_unwanted(phase::done).has_joiners);
  EXPECT_FALSE(late.add_joiner());
}

// req: BZ-8
TEST(StateSteps, a_result_has_one_keeper_the_handle_or_the_finisher) {
  for (const bool handle_first : {false, true}) {
    state_word w;
    w.reset_for_spawn(true);
    w.spawned();
    if (handle_first) {
      EXPECT_FALSE(w.drop_result()) << "still running: the finisher disposes of it";
      EXPECT_FALSE(w.finish(phase::done).finished) << "not before the result is disposed of";
      EXPECT_EQ(phase_of(w), phase::active);
      EXPECT_TRUE(w.finish_unwanted(phase::done).finished);
    } else {
      EXPECT_TRUE(w.finish(phase::done).finished);
      EXPECT_TRUE(w.drop_result()) << "ended: the one who drops the handle disposes of it";
    }
  }
}

// req: LS-F3 LS-P2
TEST(StateSteps, claim_sees_an_entry_that_is_still_PARKING_but_does_not_take_it) {
  task::parkable who(task::parkable::kind::thread, phase::active, 3);
  who.wake_value = 99;
  waits::node n;
  n.who = &who;
  n.ticket = state_word::ticket_of(who.word.begin_park(0));
  EXPECT_FALSE(waits::claim(n, task::wake_reason::data));
  EXPECT_EQ(phase_of(who.word), phase::parking);
  EXPECT_EQ(who.wake_value.get(), 99u) << "the reason belongs to the winner";
  EXPECT_FALSE(who.word.commit_park());
}

// req: LS-F4 LS-T1
TEST(StateSteps, claim_writes_the_reason_only_when_it_wins) {
  task::parkable who(task::parkable::kind::thread, phase::active, 3);
  waits::node n;
  n.who = &who;
  n.ticket = state_word::ticket_of(who.word.begin_park(0));
  waits::node old = n;
  --old.ticket;
  ASSERT_TRUE(who.word.commit_park());
  EXPECT_FALSE(waits::claim(old, task::wake_reason::data));
  EXPECT_TRUE(waits::claim(n, task::wake_reason::cancelled));
  EXPECT_FALSE(waits::claim(n, task::wake_reason::data));
  EXPECT_EQ(who.wake_value.get(), task::wake_value(task::wake_reason::cancelled, 0));
}

// Two threads at once on one word, again and again: everybody does one thing to it per round.
template <class Mine, class Theirs>
void race(std::size_t rounds, Mine&& mine, Theirs&& theirs) {
  base::atomic<std::size_t> round{0};
  base::atomic<std::size_t> done{0};
  std::thread other([&] {
    for (std::size_t i = 1; i <= rounds; ++i) {
      while (round.load(base::acquire) < i) std::this_thread::yield();
      theirs(i);
      done.store(i, base::release);
    }
  });
  for (std::size_t i = 1; i <= rounds; ++i) {
    round.store(i, base::release);
    for (std::size_t spin = i % 64; spin > 0; --spin) base::cpu_relax();
    mine(i);
    while (done.load(base::acquire) < i) std::this_thread::yield();
  }
  other.join();
}

// req: LS-F4 LS-P3
TEST(StateSteps, wake_cancel_and_permit_that_race_on_a_parked_task_have_one_winner) {
  support::watchdog guard(60s, "the race");
  const std::size_t rounds = support::scaled(20'000);
  state_word w(phase::active, 0);
  std::size_t parked = 0;
  base::atomic<std::size_t> claims{0};
  base::atomic<ticket> now{0};
  const auto park = [&] {
    now.store(state_word::ticket_of(w.begin_park(a_permit_wait)));
    if (w.commit_park()) ++parked;
  };
  const auto count = [&](wake_result r) { claims += r == wake_result::claimed ? 1 : 0; };
  race(
      rounds,
      [&](std::size_t i) {
        if (i % 2 == 0) {
          count(w.wake(now.load()));
        } else {
          count(w.grant_permit());
        }
      },
      [&](std::size_t i) {
        if (phase_of(w) == phase::active) park();
        count(i % 3 == 0 ? w.request_cancel() : w.wake(now.load()));
      });
  if (phase_of(w) == phase::parked) count(w.wake(now.load()));
  EXPECT_EQ(claims.load(), parked);
  EXPECT_GT(parked, rounds / 4);
}

// req: LS-P1 LS-P2
TEST(StateSteps, a_wake_that_races_with_the_commit_is_either_a_claim_or_left_for_the_committer) {
  support::watchdog guard(60s, "the race");
  const std::size_t rounds = support::scaled(50'000);
  state_word w(phase::active, 0);
  std::size_t enqueued_by_committer = 0;
  std::size_t enqueued_by_waker = 0;
  base::atomic<ticket> now{0};
  base::atomic<std::size_t> parking{0};
  race(
      rounds,
      [&](std::size_t i) {
        now.store(state_word::ticket_of(w.begin_park(0)), base::relaxed);
        parking.store(i, base::release);
        for (std::size_t spin = i % 37; spin > 0; --spin) base::cpu_relax();
        if (!w.commit_park()) ++enqueued_by_committer;
      },
      [&](std::size_t i) {
        while (parking.load(base::acquire) < i) base::cpu_relax();
        for (std::size_t spin = i % 41; spin > 0; --spin) base::cpu_relax();
        if (w.wake(now.load(base::relaxed)) == wake_result::claimed) ++enqueued_by_waker;
      });
  EXPECT_EQ(enqueued_by_committer + enqueued_by_waker, rounds);
  EXPECT_EQ(phase_of(w), phase::active);
}

}  // namespace
