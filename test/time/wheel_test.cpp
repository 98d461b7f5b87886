// The timer wheel by itself, against sorted times, over the whole range of the clock.
#include "time/wheel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "base/clock.hpp"
#include "wait/thread_waiter.hpp"

namespace {

using weft::base::time_ns;
using weft::task::phase;
using weft::task::state_word;
using timer = weft::timing::entry;
using weft::timing::wheel;
namespace base = weft::base;
namespace sched = weft::sched;
namespace waits = weft::waits;

constexpr time_ns one_tick = time_ns{1} << 15;

// One who waits for a timer: PARKED, without a thread behind.
struct sleeper {
  waits::thread_waiter who;
  timer t;

  void park(wheel& on, time_ns deadline) {
    t.deadline = deadline;
    t.waiter.who = &who;
    t.waiter.ticket = state_word::ticket_of(who.word.begin_park(0));
    on.own_lock().acquire();
    on.insert(t);
    on.own_lock().release();
    (void)who.word.commit_park();
  }
  void leave(wheel& on) {
    on.own_lock().acquire();
    on.remove(t);
    on.own_lock().release();
  }
  [[nodiscard]] bool is_woken() const { return state_word::phase_of(who.word.load()) == phase::active; }
};

// None of those who sleep here is a task.
std::size_t fire(wheel& w, time_ns now, std::size_t most = SIZE_MAX) {
  sched::fired_timers due;
  const std::size_t fired = w.fire(now, most, due);
  EXPECT_TRUE(due.tasks.empty());
  resume_others(due);
  return fired;
}

// The watcher sleeps until then: a look before it would be in vain.
TEST(Wheel, a_lone_timer_says_when_it_is_due_however_far_away) {
  const time_ns start = base::now() + 60'000'000'000;
  for (const time_ns distance : {time_ns{1'000'000}, time_ns{10'000'000}, time_ns{3'000'000'000}, time_ns{1} << 50}) {
    wheel w;
    sleeper s;
    s.park(w, start + distance);
    EXPECT_GE(w.next_deadline(), start + distance);
    EXPECT_LT(w.next_deadline(), start + distance + one_tick);
    s.leave(w);
  }
}

// req: BZ-11
TEST(Wheel, of_timers_far_away_none_is_overslept) {
  const time_ns start = base::now() + 60'000'000'000;
  wheel w;
  sleeper later;
  sleeper sooner;
  later.park(w, start + 20'000'000'000);
  sooner.park(w, start + 19'999'000'000);
  EXPECT_LE(w.next_deadline(), start + 19'999'000'000);
  sooner.leave(w);
  later.leave(w);
}

// req: BZ-11
TEST(Wheel, each_timer_fires_at_its_time_or_at_most_a_tick_later_whatever_its_distance) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 20; ++round) {
    wheel w;
    const time_ns start = base::now() + 60'000'000'000;  // all of them ahead of the clock while they are put in
    std::vector<std::unique_ptr<sleeper>> all;
    for (int i = 0; i < 300; ++i) {
      all.push_back(std::make_unique<sleeper>());
      const int bits = static_cast<int>(random() % 62);  // distances of every size
      all.back()->park(w, start + static_cast<time_ns>(random() & ((std::uint64_t{1} << bits) - 1)));
    }
    std::vector<time_ns> looks;
    for (const auto& s : all)
      for (const time_ns d : {-one_tick, time_ns{-1}, time_ns{0}, one_tick})
        if (s->t.deadline < base::never_ns - 2 * one_tick) looks.push_back(std::max(start, s->t.deadline + d));
    std::sort(looks.begin(), looks.end());
    std::size_t woken = 0;
    for (const time_ns now : looks) {
        // Sleeping until what the wheel says must not make anybody late.
      const time_ns said = w.next_deadline();
      for (const auto& s : all) ASSERT_TRUE(s->is_woken() || said < s->t.deadline + one_tick);
      woken += fire(w, now);
      for (const auto& s : all) {
        ASSERT_TRUE(s->t.deadline <= now || !s->is_woken()) << "early";
        ASSERT_TRUE(s->t.deadline + one_tick > now || s->is_woken()) << "late";
      }
    }
    EXPECT_EQ(woken, all.size());
    EXPECT_EQ(w.next_deadline(), base::never_ns);
  }
}

// req: BZ-11
TEST(Wheel, one_that_was_removed_is_not_the_next_deadline_when_another_comes) {
  wheel w;
  const time_ns start = base::now() + 60'000'000'000;
  sleeper leaves, stays;
  leaves.park(w, start);
  leaves.leave(w);
  stays.park(w, start + 3'600'000'000'000);
  EXPECT_GT(w.next_deadline(), start + one_tick);
  stays.leave(w);
}

// req: BZ-11
TEST(Wheel, fires_at_most_so_many_at_a_time_and_keeps_the_rest_due) {
  std::mt19937_64 random(3);
  for (const std::size_t most : {1u, 2u, 7u, 64u, 1'000u}) {
    wheel w;
    const time_ns start = base::now() + 60'000'000'000;
    std::vector<std::unique_ptr<sleeper>> all;
    const auto add = [&](time_ns from, int bits) {
      all.push_back(std::make_unique<sleeper>());
      all.back()->park(w, from + static_cast<time_ns>(random() & ((std::uint64_t{1} << bits) - 1)));
    };
    for (int i = 0; i < 500; ++i) add(start, 10 + i % 24);
    std::size_t woken = 0;
    for (time_ns now = start; woken < all.size(); now += 40'000'000) {
      for (;;) {
        const std::size_t n = fire(w, now, most);
        ASSERT_LE(n, most);
        woken += n;
        if (all.size() < 700) add(now, 26);  // into a wheel that stopped half-way
        time_ns earliest_due = base::never_ns;
        for (const auto& s : all) {
          ASSERT_TRUE(s->t.deadline <= now || !s->is_woken()) << "early";
          if (!s->is_woken() && s->t.deadline + one_tick <= now) earliest_due = std::min(earliest_due, s->t.deadline);
        }
        if (earliest_due == base::never_ns && n == 0) break;
        ASSERT_TRUE(earliest_due == base::never_ns || w.next_deadline() <= now) << "due, and the wheel does not say so";
        ASSERT_TRUE(n != 0 || earliest_due == base::never_ns) << "due, and not fired";
      }
    }
    EXPECT_EQ(woken, all.size());
    EXPECT_EQ(w.next_deadline(), base::never_ns);
  }
}

// req: BZ-11
TEST(Wheel, a_removed_timer_never_fires_and_its_slot_stays_usable) {
  std::mt19937_64 random(2);
  wheel w;
  const time_ns start = base::now();
  std::vector<std::unique_ptr<sleeper>> all;
  for (int i = 0; i < 2'000; ++i) {
    all.push_back(std::make_unique<sleeper>());
    all.back()->park(w, start + static_cast<time_ns>(random() % 1'000'000'000));
  }
  std::vector<bool> removed(all.size());
  for (std::size_t i = 0; i < all.size(); i += 2) {
    all[i]->leave(w);
    all[i]->leave(w);  // again changes nothing
    removed[i] = true;
  }
  std::size_t fired = 0;
  for (time_ns now = start; now < start + 1'100'000'000; now += 3'333'333) {
    fired += fire(w, now);
    for (std::size_t i = 1; i < all.size(); i += 100)  // some leave late, after the wheel has turned
      if (!all[i]->is_woken() && !removed[i] && now > start + 500'000'000) {
        all[i]->leave(w);
        removed[i] = true;
      }
  }
  std::size_t expected = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i]->is_woken(), !removed[i]);
    expected += removed[i] ? 0 : 1;
  }
  EXPECT_EQ(fired, expected);
}

// req: BZ-11
TEST(Wheel, timers_that_come_in_while_it_turns_are_not_overtaken) {
  std::mt19937_64 random(3);
  wheel w;
  time_ns now = base::now();
  std::vector<std::unique_ptr<sleeper>> waiting;
  std::size_t in = 0;
  std::size_t out = 0;
  for (int i = 0; i < 50'000; ++i) {
    if (random() % 2 == 0) {
      waiting.push_back(std::make_unique<sleeper>());
      waiting.back()->park(w, now + static_cast<time_ns>(random() % (std::uint64_t{1} << (10 + random() % 24))));
      ++in;
    } else {
      now += static_cast<time_ns>(random() % (std::uint64_t{1} << (random() % 27)));
      out += fire(w, now);
      std::erase_if(waiting, [&](const auto& s) {
        EXPECT_TRUE(s->t.deadline > now ? !s->is_woken() : s->t.deadline + one_tick > now || s->is_woken());
        return s->is_woken();
      });
    }
  }
  out += fire(w, now + (time_ns{1} << 40));
  EXPECT_EQ(in, out);
}

// req: BZ-11
TEST(Wheel, what_was_due_before_it_came_fires_with_the_next_tick) {
  const time_ns start = base::now() + 60'000'000'000;  // ahead of the clock, wherever the wheel begins
  for (const time_ns past : {INT64_MIN, INT64_MIN + 1, -one_tick, time_ns{-1}, time_ns{0}, time_ns{1},
                             start - 3'600'000'000'000, start - one_tick, start}) {
    wheel w;
    sleeper first;
    first.park(w, start);
    ASSERT_EQ(fire(w, start + 2 * one_tick), 1u);
    sleeper near;  // on the lowest level, which comes first
    near.park(w, start + 10 * one_tick);
    sleeper late;
    late.park(w, past);
    EXPECT_LE(w.next_deadline(), start + 4 * one_tick) << past;
    EXPECT_EQ(fire(w, start + 4 * one_tick), 1u) << past;
    EXPECT_TRUE(late.is_woken() && !near.is_woken()) << past;
    late.leave(w);
    EXPECT_EQ(fire(w, start + 12 * one_tick), 1u) << past;
    EXPECT_EQ(w.next_deadline(), base::never_ns) << past;
    near.leave(w);
  }
}

// req: BZ-11
TEST(Wheel, what_is_due_at_the_end_of_time_fires_then_and_not_before) {
  for (const time_ns deadline : {base::never_ns, base::never_ns - 1, base::never_ns - one_tick + 1,
                                 base::never_ns - one_tick, base::never_ns - one_tick - 1}) {
    wheel w;
    sleeper far;
    far.park(w, deadline);
    EXPECT_GT(w.next_deadline(), base::never_ns / 2) << deadline;
    EXPECT_EQ(fire(w, base::now() + 60'000'000'000), 0u) << deadline;
    EXPECT_EQ(fire(w, base::never_ns / 2), 0u) << deadline;
    EXPECT_FALSE(far.is_woken()) << deadline;
    EXPECT_EQ(fire(w, base::never_ns), 1u) << deadline;
    EXPECT_TRUE(far.is_woken()) << deadline;
  }
}

// req: BZ-11
TEST(Wheel, a_waiter_that_was_claimed_by_another_is_passed_over) {
  wheel w;
  const time_ns start = base::now() + 60'000'000'000;  // ahead of the clock while they are put in
  sleeper claimed;
  sleeper other;
  claimed.park(w, start + 1000);
  other.park(w, start + 1000);
  ASSERT_EQ(claimed.who.word.wake(claimed.t.waiter.ticket), weft::task::wake_result::claimed);
  EXPECT_EQ(fire(w, start + 2 * one_tick), 1u);
  EXPECT_TRUE(other.is_woken());
  claimed.leave(w);  // as the woken one does: its node is off the list already
  EXPECT_EQ(w.next_deadline(), base::never_ns);
}

}  // namespace
