// Workers that have nothing to do.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using support::until;
using weft::sched::worker_state;

bool any_in(support::watched_runtime& rt, worker_state s) {
  for (const weft::sched::worker* w : rt.core().workers())
    if (w->state() == s) return true;
  return false;
}

// For two seconds no other thread of this process runs at all: no system call, no CPU time. After a start-up in which the
// watch looks around and trims once.
testing::AssertionResult becomes_silent() {
  for (int i = 0; i < 12; ++i) {
    const support::activity before = support::activity_of_others();
    std::this_thread::sleep_for(2s);
    const support::activity after = support::activity_of_others();
    if (after == before) return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "threads went on waking up for 24 s";
}

// req: BZ-5
// TSan has a thread of its own that wakes up.
TEST(IdleNoTsan, a_runtime_without_tasks_uses_no_cpu_and_makes_no_system_calls) {
  support::watchdog guard(100s, "an idle runtime");
  support::watched_runtime one(1);
  support::watched_runtime several(4);
  one->run([] {});
  several->run([] {
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 100; ++i) all.push_back(weft::spawn([] { weft::yield(); }));
    for (auto& h : all) h.join();
  });
  EXPECT_TRUE(becomes_silent());
  EXPECT_EQ(several->run([] { return 5; }), 5) << "and wakes up again";
}

// req: BZ-5
TEST(IdleNoTsan, parked_tasks_and_far_away_timers_cost_nothing_either) {
  support::watchdog guard(100s, "a runtime full of waiting tasks");
  support::watched_runtime rt(4);
  weft::base::atomic<bool> never{false};
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < 50; ++i) {
    all.push_back(rt->spawn([&] {
      for (;;) weft::park_if(never, false);
    }));
    all.push_back(rt->spawn([] { weft::sleep_for(24h); }));
  }
  EXPECT_TRUE(becomes_silent());
  for (auto& h : all) h.cancel();
  for (auto& h : all) EXPECT_THROW(h.join(), weft::task_cancelled);
}

// req: LS-K1
TEST(Idle, a_worker_is_active_spins_a_while_and_sleeps) {
  support::watchdog guard(60s, "the states of workers");
  support::watched_runtime rt(2);
  rt->run([&] { EXPECT_EQ(weft::sched::this_worker()->state(), worker_state::active); });
  weft::base::atomic<bool> seen{false};
  std::thread observer([&] {
    until([&] { return any_in(rt, worker_state::idle_spin); });
    seen.store(true);
  });
  while (!seen.load()) rt->run([] { weft::yield(); });  // each time it looks around before it sleeps
  observer.join();
  until([&] { return rt.core().idle().sleeping() == 2; });
  until([&] {
    for (const weft::sched::worker* w : rt.core().workers())
      if (w->state() != worker_state::sleep) return false;
    return true;
  });
}

// req: LS-K1
TEST(Idle, a_worker_that_leaves_is_seen_draining_and_then_dead) {
  support::watchdog guard(100s, "DRAINING is seen");
  bool seen = false;
  for (int round = 0; round < 100 && !seen; ++round) {
    support::watched_runtime rt({.workers = 2, .queue_capacity = 65536, .elastic = false});
    weft::base::atomic<int> ran{0};
    weft::base::atomic<int> leaving{-1};
    std::thread observer([&] {
      until([&] { return leaving.load() >= 0; });
      weft::sched::worker* w = rt.core().workers()[static_cast<std::size_t>(leaving.load())];
      while (w->state() != worker_state::dead)
        if (w->state() == worker_state::draining) seen = true;
    });
    constexpr int many = 60'000;  // so that draining takes a while
    rt->spawn([&] {
        for (int i = 0; i < many; ++i) weft::spawn([&] { ran.fetch_add(1); }).detach();
        const int id = weft::sched::this_worker()->id();
        leaving.store(id);
        rt.core().pool().retire(static_cast<std::size_t>(id));
      }).detach();
    observer.join();
    until([&] { return ran.load() == many; });
  }
  EXPECT_TRUE(seen);
}

// req: LS-K1 BZ-5
TEST(Idle, a_worker_does_not_sleep_while_runnable_work_is_visible) {
  support::watchdog guard(60s, "two tasks for one sleeper");
  support::watched_runtime rt(2);
  // One worker is kept; every other task must be found by the other one, however often it had gone to sleep before.
  support::latch over(1);
  auto keeper = rt->spawn([&] { over.hold(); });
  weft::base::random random(1);
  for (std::size_t i = 0; i < support::scaled(10'000); ++i) {
    // Up to thrice as long as it looks around before it sleeps.
    const weft::base::time_ns then = weft::base::now() + random.below(60'000);
    while (weft::base::now() < then) weft::base::cpu_relax();
    rt->spawn([] {}).join();
  }
  over.count_down();
  keeper.join();
}

}  // namespace
