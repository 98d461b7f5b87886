// park_if and unpark.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace support::usual;
using weft::task::phase;
using weft::task::state_word;
namespace waits = weft::waits;

// req: CC-5
TEST(Permit, an_unpark_before_park_if_makes_it_return_at_once) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    base::atomic<bool> closed{true};
    weft::unpark(weft::this_task::ref());
    weft::park_if(closed, true);
  });
}

// req: CC-5
TEST(Permit, an_unpark_after_the_park_wakes) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  base::atomic<bool> closed{true};
  base::atomic<weft::task::record*> who{nullptr};
  auto h = rt->spawn([&] {
    who = waits::current_task();
    while (closed.load()) weft::park_if(closed, true);
  });
  until([&] { return is_parked(who.load()); });
  closed = false;
  weft::unpark(h.ref());
  h.join();
}

// req: CC-5
TEST(Permit, park_if_does_not_park_when_the_flag_is_another) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    base::atomic<int> flag{3};
    weft::park_if(flag, 4);
  });
  EXPECT_EQ(rt->statistics().parks, 0u);
}

// req: CC-5
TEST(Permit, two_unparks_leave_one_permit) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  base::atomic<bool> closed{true};
  base::atomic<weft::task::record*> who{nullptr};
  base::atomic<int> passed{0};
  auto h = rt->spawn([&] {
    weft::unpark(weft::this_task::ref());
    weft::unpark(weft::this_task::ref());
    weft::park_if(closed, true);
    passed = 1;
    who = waits::current_task();
    weft::park_if(closed, true);
    passed = 2;
  });
  until([&] { return is_parked(who.load()); });
  EXPECT_EQ(passed.load(), 1);
  h.ref().unpark();
  h.join();
  EXPECT_EQ(passed.load(), 2);
}

// req: CC-5
TEST(Permit, a_stale_permit_neither_cuts_a_sleep_short_nor_makes_it_spin_and_is_not_lost) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([&] {
    weft::unpark(weft::this_task::ref());
    const auto parks = rt->statistics().parks;
    const auto started = std::chrono::steady_clock::now();
    weft::sleep_for(30ms);
    EXPECT_GE(std::chrono::steady_clock::now() - started, 30ms);
    EXPECT_EQ(rt->statistics().parks, parks + 1) << "one park for one sleep";
    base::atomic<bool> closed{true};
    weft::park_if(closed, true);  // takes it
    EXPECT_EQ(rt->statistics().parks, parks + 1);
  });
}

// req: CC-5
TEST(Permit, unparks_during_a_join_neither_end_nor_repeat_it) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  base::atomic<bool> go{false};
  base::atomic<bool> over{false};
  base::atomic<weft::task::record*> who{nullptr};
  auto joined = rt->spawn([&] {
    until([&] { return go.load(); });
    over = true;
    return 5;
  });
  auto joiner = rt->spawn([&] {
    weft::unpark(weft::this_task::ref());
    who = waits::current_task();
    const int got = joined.join();
    EXPECT_TRUE(over.load());
    base::atomic<bool> closed{true};
    weft::park_if(closed, true);  // the permit is still there
    return got;
  });
  until([&] { return is_parked(who.load()); });
  for (int i = 0; i < 100; ++i) joiner.ref().unpark();
  EXPECT_TRUE(is_parked(who.load()));
  go = true;
  EXPECT_EQ(joiner.join(), 5);
}

// Two tasks hand a turn to each other: every unpark is for a wait that is just about to begin, begins, or has begun.
// req: CC-5
TEST(Permit, two_tasks_hand_over_turns_without_losing_one) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    const int turns = static_cast<int>(scaled(20'000));
    watched_runtime rt(workers);
    base::atomic<int> turn{0};
    base::atomic<bool> known{false};
    weft::task_ref refs[2];
    std::vector<weft::join_handle<int>> players;
    for (int me = 0; me < 2; ++me)
      players.push_back(rt->spawn([&, me] {
        until([&] { return known.load(); });
        int mine = 0;
        for (int t = turn.load(); t < turns; t = turn.load()) {
          if (t % 2 != me) {
            weft::park_if(turn, t);
            continue;
          }
          ++mine;
          for (int spin = t % 97; spin > 0; --spin) base::cpu_relax();
          turn.store(t + 1);
          refs[1 - me].unpark();
        }
        return mine;
      }));
    refs[0] = players[0].ref();
    refs[1] = players[1].ref();
    known = true;
    const int first = players[0].join();
    const int second = players[1].join();
    EXPECT_EQ(first + second, turns);
    EXPECT_EQ(first, second);
  });
}

// req: CC-5
TEST(Permit, any_type_with_load_is_a_flag) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  struct door {
    [[nodiscard]] int load() const { return 7; }
  };
  rt->run([] {
    weft::park_if(door{}, 8);
    weft::unpark(weft::this_task::ref());
    weft::park_if(door{}, 7);
  });
}

// req: CC-5
TEST(Permit, a_flag_whose_load_throws_leaves_the_task_as_it_was) {
  support::watchdog guard(20s);
  for (int when = 1; when <= 2; ++when) {
    watched_runtime rt(1);
    struct trap {
      int when;
      mutable int asked = 0;
      [[nodiscard]] bool load() const {
        if (++asked == when) throw 42;
        return true;
      }
    };
    rt->run([when] {
      EXPECT_THROW(weft::park_if(trap{when}, true), int) << "at the " << when << ". question";
      EXPECT_EQ(state_word::phase_of(waits::current_task()->word.load()), phase::active);
      weft::sleep_for(1ms);  // it can still park
    });
  }
}

// req: CC-5
TEST(Permit, unpark_of_a_task_that_has_ended_does_nothing) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  auto h = rt->spawn([] {});
  h.wait();
  const weft::task_ref ref = h.ref();
  for (int i = 0; i < 10; ++i) ref.unpark();
  h.join();
  for (int i = 0; i < 10; ++i) ref.unpark();
}

// req: CC-5
TEST(Permit, park_if_on_an_outside_thread_is_refused_with_the_place) {
  base::atomic<bool> closed{true};
  try {
    weft::park_if(closed, true);
    ADD_FAILURE() << "no complaint";
  } catch (const weft::usage_error& e) {
    EXPECT_NE(std::string(e.what()).find("park_if needs a task"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("permit_test.cpp:"), std::string::npos) << e.what();
  }
}

// req: CC-5
TEST(Permit, a_cancellation_that_follows_does_not_swallow_it) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    base::atomic<bool> closed{true};
    bool returned = false;
    auto waiting = weft::spawn([&] {
      weft::park_if(closed, true);
      returned = true;
      weft::this_task::check();
    });
    weft::yield();  // it parks
    waiting.ref().unpark();
    waiting.cancel();
    waiting.wait();
    EXPECT_TRUE(returned) << "what was handed over is kept; the cancellation is met at the next point";
    EXPECT_THROW(waiting.join(), weft::task_cancelled);
  });
}

// req: CC-5 BZ-6
TEST(Permit, one_who_always_has_a_permit_still_gives_way) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    const base::atomic<bool> closed{true};
    base::atomic<bool> ran{false};
    auto other = weft::spawn([&] { ran = true; });
    while (!ran.load()) {
      weft::unpark(weft::this_task::ref());
      weft::park_if(closed, true);
    }
    other.join();
  });
}
}  // namespace
