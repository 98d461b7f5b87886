// The state word: every phase, every claim, every refusal.
#include "task/state.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "task/task.hpp"

namespace {

using weft::task::phase;
using weft::task::state_word;
using weft::task::wake_result;

phase phase_of(const state_word& w) { return state_word::phase_of(w.peek()); }

// A word brought to `p` by legal steps, with the ticket of its present or last wait.
struct prepared {
  explicit prepared(phase p, std::uint64_t flags = 0) {
    word.reset_for_spawn(true);
    if (p == phase::init) return;
    word.spawned();
    if (p == phase::active) return;
    if (p >= phase::done) {
      (void)word.finish(p);
      return;
    }
    ticket = state_word::ticket_of(word.begin_park(flags));
    if (p == phase::parked) {
      EXPECT_TRUE(word.commit_park());
    }
  }
  state_word word;
  weft::task::ticket ticket = 0;
};

constexpr phase all_phases[] = {phase::init,   phase::active, phase::parking,
                                phase::parked, phase::done,   phase::cancelled};

// req: LS-S
TEST(State, goes_through_every_phase_of_a_life) {
  state_word w;
  w.reset_for_spawn(true);
  EXPECT_EQ(phase_of(w), phase::init);
  w.spawned();
  EXPECT_EQ(phase_of(w), phase::active);
  const std::uint64_t parking = w.begin_park(0);
  EXPECT_EQ(phase_of(w), phase::parking);
  EXPECT_EQ(parking, w.peek());
  EXPECT_TRUE(w.commit_park());
  EXPECT_EQ(phase_of(w), phase::parked);
  EXPECT_EQ(w.wake(state_word::ticket_of(parking)), wake_result::claimed);
  EXPECT_EQ(phase_of(w), phase::active);
  (void)w.finish(phase::done);
  EXPECT_EQ(phase_of(w), phase::done);
  EXPECT_TRUE(state_word::is_final(w.peek()));
}

// req: LS-S
TEST(State, ends_in_cancelled_when_the_task_was_cancelled) {
  prepared p(phase::active);
  (void)p.word.finish(phase::cancelled);
  EXPECT_EQ(phase_of(p.word), phase::cancelled);
  EXPECT_TRUE(state_word::is_final(p.word.peek()));
}

// req: LS-S LS-P2
TEST(State, a_waker_that_meets_parking_leaves_word_and_nothing_else) {
  prepared p(phase::parking);
  const std::uint64_t before = p.word.peek();
  EXPECT_EQ(p.word.wake(p.ticket), wake_result::left_pending);
  EXPECT_EQ(p.word.peek(), before | state_word::wake_pending);
}

// req: LS-S LS-P1
TEST(State, the_committing_stack_makes_the_claim_for_a_wake_that_came_while_parking) {
  prepared p(phase::parking);
  EXPECT_EQ(p.word.wake(p.ticket), wake_result::left_pending);
  EXPECT_FALSE(p.word.commit_park()) << "the caller enqueues";
  EXPECT_EQ(phase_of(p.word), phase::active);
  EXPECT_EQ(p.word.peek() & state_word::per_wait, 0u);
  EXPECT_EQ(p.word.wake(p.ticket), wake_result::stale) << "the claim was made; nobody else gets it";
}

// req: LS-S LS-P1
TEST(State, an_abandoned_park_is_running_again_and_its_wake_is_stale) {
  prepared p(phase::parking);
  EXPECT_EQ(p.word.wake(p.ticket), wake_result::left_pending);
  p.word.abort_park();
  EXPECT_EQ(phase_of(p.word), phase::active);
  EXPECT_EQ(p.word.peek() & state_word::per_wait, 0u);
  EXPECT_EQ(p.word.wake(p.ticket), wake_result::stale);
}

// req: LS-T1
TEST(State, every_wait_has_a_fresh_ticket_and_recycling_keeps_it) {
  prepared p(phase::parked);
  const auto first = p.ticket;
  EXPECT_EQ(p.word.wake(first), wake_result::claimed);
  const auto second = state_word::ticket_of(p.word.begin_park(0));
  EXPECT_EQ(second, first + 1);
  p.word.abort_park();
  (void)p.word.finish(phase::done);
  p.word.reset_for_spawn(true);
  EXPECT_EQ(state_word::ticket_of(p.word.peek()), second);
  p.word.spawned();
  EXPECT_EQ(state_word::ticket_of(p.word.begin_park(0)), second + 1);
  EXPECT_TRUE(p.word.commit_park());
  EXPECT_EQ(p.word.wake(first), wake_result::stale);
  EXPECT_EQ(p.word.wake(second), wake_result::stale);
  EXPECT_EQ(phase_of(p.word), phase::parked);
}

// req: LS-S LS-T1
TEST(State, a_wake_claims_only_parked) {
  for (const phase p : all_phases) {
    prepared t(p);
    const std::uint64_t before = t.word.peek();
    const wake_result got = t.word.wake(t.ticket);
    if (p == phase::parked) {
      EXPECT_EQ(got, wake_result::claimed);
    } else if (p == phase::parking) {
      EXPECT_EQ(got, wake_result::left_pending);
    } else {
      EXPECT_EQ(got, wake_result::stale) << weft::task::name_of(p);
      EXPECT_EQ(t.word.peek(), before) << weft::task::name_of(p);
    }
  }
}

// req: LS-S LS-P3
TEST(State, a_cancel_claims_an_interruptible_wait_and_only_marks_another) {
  for (const phase p : {phase::parking, phase::parked}) {
    prepared deaf(p);
    EXPECT_EQ(deaf.word.request_cancel(), wake_result::left_pending);
    EXPECT_EQ(phase_of(deaf.word), p);
    EXPECT_EQ(deaf.word.peek() & state_word::wake_pending, 0u);
    EXPECT_NE(deaf.word.peek() & state_word::cancel_requested, 0u);
  }
  prepared parked(phase::parked, state_word::interruptible);
  EXPECT_EQ(parked.word.request_cancel(), wake_result::claimed);
  EXPECT_EQ(phase_of(parked.word), phase::active);
  EXPECT_EQ(parked.word.request_cancel(), wake_result::left_pending) << "claimed once";

  prepared parking(phase::parking, state_word::interruptible);
  EXPECT_EQ(parking.word.request_cancel(), wake_result::left_pending);
  EXPECT_NE(parking.word.peek() & state_word::wake_pending, 0u);
  EXPECT_FALSE(parking.word.commit_park());
}

// req: LS-S CC-5
TEST(State, a_permit_wakes_only_the_wait_that_takes_permits) {
  prepared other(phase::parked);
  EXPECT_EQ(other.word.grant_permit(), wake_result::left_pending);
  EXPECT_EQ(phase_of(other.word), phase::parked);
  prepared taker(phase::parked, state_word::takes_permit);
  EXPECT_EQ(taker.word.grant_permit(), wake_result::claimed);
  EXPECT_TRUE(taker.word.consume_permit());
  EXPECT_FALSE(taker.word.consume_permit()) << "one permit, however many unparks";
}

// req: LS-S
TEST(State, nothing_changes_after_the_end) {
  for (const phase p : {phase::done, phase::cancelled}) {
    prepared t(p);
    const std::uint64_t before = t.word.peek();
    EXPECT_EQ(t.word.request_cancel(), wake_result::stale);
    EXPECT_EQ(t.word.grant_permit(), wake_result::stale);
    EXPECT_EQ(t.word.wake(t.ticket), wake_result::stale);
    EXPECT_FALSE(t.word.add_joiner());
    EXPECT_EQ(t.word.peek(), before);
  }
}

// req: LS-S CC-5
TEST(State, begin_park_sees_a_cancel_and_a_permit_that_came_before) {
  prepared p(phase::active);
  (void)p.word.request_cancel();
  (void)p.word.grant_permit();
  const std::uint64_t w = p.word.begin_park(state_word::takes_permit | state_word::interruptible);
  EXPECT_NE(w & state_word::cancel_requested, 0u);
  EXPECT_NE(w & state_word::permit, 0u);
}

// req: BZ-8
TEST(State, a_result_has_one_keeper) {
  prepared kept(phase::active);
  EXPECT_TRUE(kept.word.finish(phase::done).finished);
  EXPECT_TRUE(kept.word.drop_result()) << "ended before: the holder disposes of it";
  prepared dropped(phase::active);
  EXPECT_FALSE(dropped.word.drop_result()) << "still running: the finisher will";
  EXPECT_FALSE(dropped.word.finish(phase::done).finished) << "first disposes of it, still RUNNING";
  EXPECT_EQ(phase_of(dropped.word), phase::active);
  EXPECT_TRUE(dropped.word.finish_unwanted(phase::done).finished);
  EXPECT_EQ(phase_of(dropped.word), phase::done);
}

// req: LS-F4
TEST(State, of_many_wakers_exactly_one_claims) {
  constexpr int rounds = 1000;
  constexpr int wakers = 3;
  state_word w;
  w.reset_for_spawn(true);
  w.spawned();
  std::vector<int> claims(rounds, 0);
  weft::base::atomic<int> round{-1};
  weft::base::atomic<int> done{0};
  weft::base::atomic<weft::task::ticket> ticket{0};
  weft::base::atomic<int> claimed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < wakers; ++i)
    threads.emplace_back([&, i] {
      for (int r = 0; r < rounds; ++r) {
        while (round.load(weft::base::acquire) < r) std::this_thread::yield();
        // One of them is a cancel: the same claim.
        const wake_result got = i == 0 ? w.request_cancel() : w.wake(ticket.load(weft::base::relaxed));
        if (got == wake_result::claimed) claimed.fetch_add(1);
        done.fetch_add(1, weft::base::acq_rel);
      }
    });
  for (int r = 0; r < rounds; ++r) {
    claimed.store(0);
    done.store(0);
    const std::uint64_t parking = w.begin_park(state_word::interruptible);
    ticket.store(state_word::ticket_of(parking), weft::base::relaxed);
    ASSERT_TRUE(w.commit_park());
    round.store(r, weft::base::release);
    while (done.load(weft::base::acquire) != wakers) std::this_thread::yield();
    claims[static_cast<std::size_t>(r)] = claimed.load();
    if (phase_of(w) != phase::active) break;
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(claims, std::vector<int>(rounds, 1));
}

// ---- what the legality matrix forbids ------------------------------------------------------------------------------

struct operation {
  const char* to;
  phase from;  // the only legal one
  void (*apply)(state_word&);
  friend void PrintTo(const operation& o, std::ostream* out) { *out << o.to; }
};

constexpr operation operations[] = {
    {"RUNNABLE", phase::init, [](state_word& w) { w.spawned(); }},
    {"PARKING", phase::active, [](state_word& w) { (void)w.begin_park(0); }},
    {"RUNNING", phase::parking, [](state_word& w) { w.abort_park(); }},
    {"PARKED", phase::parking, [](state_word& w) { (void)w.commit_park(); }},
    {"DONE", phase::active, [](state_word& w) { (void)w.finish(phase::done); }},
    {"CANCELLED", phase::active, [](state_word& w) { (void)w.finish(phase::cancelled); }},
};

class IllegalTransitionDeathTest : public testing::TestWithParam<operation> {
 protected:
  void SetUp() override {
    if (!weft::base::checked_build) GTEST_SKIP() << "the matrix is checked in checked builds";
  }
};

// req: LS-S
TEST_P(IllegalTransitionDeathTest, aborts_with_both_state_names_from_every_other_state) {
  for (const phase from : all_phases) {
    if (from == GetParam().from) continue;
    prepared p(from);
    const std::string both =
        std::string("illegal task transition ") + weft::task::name_of(from) + " -> .*" + GetParam().to;
    EXPECT_DEATH(GetParam().apply(p.word), both);
  }
}

INSTANTIATE_TEST_SUITE_P(To, IllegalTransitionDeathTest, testing::ValuesIn(operations),
                         [](const auto& i) { return std::string(i.param.to); });

// req: LS-S
TEST(MustNotDeathTest, the_parker_itself_makes_a_parked_task_runnable) {
  if (!weft::base::checked_build) GTEST_SKIP() << "the matrix is checked in checked builds";
  prepared p(phase::parked);
  EXPECT_DEATH(p.word.spawned(), "illegal task transition PARKED -> RUNNABLE");
  EXPECT_DEATH(p.word.abort_park(), "illegal task transition PARKED -> RUNNING");
  EXPECT_DEATH((void)p.word.commit_park(), "illegal task transition PARKED -> PARKED");
}

}  // namespace
