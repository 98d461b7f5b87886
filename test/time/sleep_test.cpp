// Sleeping tasks: never early, never lost, cancellable, whatever their worker does. Among those whose time has come together no
// order is promised (wheel.cpp, fire).
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "support/held_monitor.hpp"
#include "support/usual.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace support::usual;
using clock = std::chrono::steady_clock;
namespace sched = weft::sched;

// req: BZ-11
TEST(Sleep, no_sleep_ends_early) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    const std::size_t n = scaled(2'000);
    base::atomic<std::size_t> early{0};
    base::atomic<std::size_t> ended{0};
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < n; ++i)
      all.push_back(rt->spawn([&, i] {
        for (int k = 0; k < 3; ++k) {
          const auto time = std::chrono::nanoseconds(i * 7919 % 15'000'000);
          const auto from = clock::now();
          weft::sleep_for(time);
          if (clock::now() - from < time) ++early;
        }
        ++ended;
      }));
    for (auto& h : all) h.join();
    EXPECT_EQ(early.load(), 0u);
    EXPECT_EQ(ended.load(), n);
  });
}

// req: BZ-11
TEST(Sleep, a_hundred_thousand_sleep_at_once_and_all_wake) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(100s);
    watched_runtime rt(workers);
    const std::size_t n = support::under_tsan ? 2'000 : scaled(100'000);
    base::atomic<std::size_t> sleeping{0};
    base::atomic<std::size_t> early{0};
    base::atomic<std::size_t> woken{0};
    const auto wake_up = clock::now() + (support::under_asan || support::under_tsan ? 1s : 2s);
    rt->run([&] {
      for (std::size_t i = 0; i < n; ++i)
        weft::spawn([&, i] {
          const auto when = wake_up + std::chrono::microseconds(i % 100'000);
          ++sleeping;
          weft::sleep_until(when);
          if (clock::now() < when) ++early;
          ++woken;
        }).detach();
    });
    rt->shutdown();
    EXPECT_EQ(sleeping.load(), n);
    EXPECT_EQ(woken.load(), n);
    EXPECT_EQ(early.load(), 0u);
  });
}

// req: BZ-11
TEST(Sleep, a_time_that_has_passed_does_not_park) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([&] {
    const auto before = rt->statistics();
    weft::sleep_for(0s);
    weft::sleep_for(-1s);
    weft::sleep_for(-5h);
    weft::sleep_for(std::chrono::nanoseconds::min());
    weft::sleep_until(clock::now());
    weft::sleep_until(clock::time_point::min());
    weft::sleep_until(clock::time_point());
    EXPECT_EQ(rt->statistics().parks, before.parks);
  });
}

// As nanoseconds these do not fit into 64 bits.
// req: BZ-11
TEST(Sleep, a_negative_duration_too_long_for_the_clock_does_not_park_either) {
  support::watchdog guard(20s, "sleeps of a negative time");
  watched_runtime rt(1);
  rt->run([&] {
    const auto before = rt->statistics();
    weft::sleep_for(std::chrono::hours(-3'000'000));
    weft::sleep_for(std::chrono::hours::min());
    weft::sleep_for(std::chrono::seconds::min());
    weft::sleep_for(std::chrono::duration<double>(-1e300));
    EXPECT_EQ(rt->statistics().parks, before.parks);
  });
}

// req: BZ-11
TEST(Sleep, one_that_only_passes_the_clock_still_lets_others_run_in_the_end) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    base::atomic<bool> ran{false};
    auto other = weft::spawn([&] { ran = true; });
    while (!ran.load()) weft::sleep_for(0s);
    other.join();
  });
}

// req: BZ-11
TEST(Sleep, the_longest_times_sleep_until_cancelled) {
  support::watchdog guard(60s);
  const auto sleeps = [](auto how) {
    watched_runtime rt(2);
    base::atomic<weft::task::record*> who{nullptr};
    auto h = rt->spawn([&] {
      who = weft::waits::current_task();
      how();
    });
    until([&] { return is_parked(who.load()); });
    EXPECT_FALSE(h.is_finished());
    h.cancel();
    EXPECT_THROW(h.join(), weft::task_cancelled);
  };
  sleeps([] { weft::sleep_for(std::chrono::hours::max()); });
  sleeps([] { weft::sleep_for(std::chrono::nanoseconds::max()); });
  sleeps([] { weft::sleep_for(std::chrono::duration<double>(1e300)); });
  sleeps([] { weft::sleep_until(clock::time_point::max()); });
  sleeps([] { weft::sleep_until(clock::time_point::max() - 1ns); });
  sleeps([] { weft::sleep_for(std::chrono::hours(24) * 365 * 100); });
}

// req: BZ-11
TEST(Sleep, an_outside_thread_sleeps_as_long) {
  const auto from = clock::now();
  weft::sleep_for(5ms);
  weft::sleep_until(from + 10ms);
  EXPECT_GE(clock::now() - from, 10ms);
  weft::sleep_for(-1h);
}

// req: BZ-11 LS-P3
TEST(Sleep, cancelled_sleeps_leave_no_timer_behind) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    const std::size_t n = scaled(2'000);
    base::atomic<std::size_t> started{0};
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < n; ++i)
      all.push_back(rt->spawn([&, i] {
        ++started;
        weft::sleep_for(1h + std::chrono::microseconds(i * 997));
      }));
    until([&] { return started.load() == n; });
    for (auto& h : all) h.cancel();
    for (auto& h : all) EXPECT_THROW(h.join(), weft::task_cancelled);
    // As if it were tomorrow: nothing is there to fire, and the wheels say so.
    std::size_t fired = 0;
    std::size_t pending = 0;
    rt->run([&] {
      sched::fired_timers due;
      for (sched::worker* w : rt.core().workers()) {
        fired += w->timers().fire(base::now() + 86'400'000'000'000, SIZE_MAX, due);
        pending += w->timers().next_deadline() != base::never_ns ? 1 : 0;
      }
      sched::this_worker()->accept_woken_batch(std::move(due.tasks));
    });
    EXPECT_EQ(fired, 0u);
    EXPECT_EQ(pending, 0u);
  });
}

// req: BZ-11
TEST(Sleep, a_sleep_ends_while_its_worker_never_rests) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  base::atomic<bool> woken{false};
  rt->run([&] {
    auto sleeper = weft::spawn([&] {
      weft::sleep_for(2ms);
      woken = true;
    });
    std::vector<weft::join_handle<void>> busy;
    for (int i = 0; i < 10; ++i)
      busy.push_back(weft::spawn([&] {
        while (!woken.load()) weft::yield();
      }));
    for (auto& h : busy) h.join();
    sleeper.join();
  });
}

// One task keeps its worker from the moment on at which a timer is on that worker's wheel. Somebody else must fire it.
// req: BZ-11
TEST(Sleep, a_stuck_worker_delays_no_timer_of_its_own) {
  support::watchdog guard(100s);
  for (const std::size_t workers : {2, 4, 8}) {
    watched_runtime rt(workers);
    std::size_t on_the_stuck_one = 0;
    for (std::size_t round = 0; round < scaled(40) || on_the_stuck_one == 0; ++round) {
      rt->run([&] {
        struct {
          base::atomic<int> worker{-1};
          base::atomic<bool> parked{false};
          base::atomic<bool> woken{false};
          base::atomic<weft::task::record*> who{nullptr};
        } s;
        if (round % 2 == 0)  // the others are fast asleep and know of no deadline
          support::hold_worker_until([&] { return rt.core().idle().sleeping() + 1 == workers; });
        auto sleeper = weft::spawn([&] {
          s.who = weft::waits::current_task();
          s.worker = sched::this_worker()->id();
          weft::sleep_for(3ms);
          s.woken = true;
        });
        until([&] { return is_parked(s.who.load()) || s.woken.load(); });
        if (!s.woken.load() && s.worker.load() == sched::this_worker()->id()) ++on_the_stuck_one;
        support::hold_worker_until([&] { return s.woken.load(); });
        sleeper.join();
      });
    }
    EXPECT_GT(on_the_stuck_one, 0u);
  }
}

// A worker that fires a timer runs tasks afterwards and may be stuck from then on. Another one must keep the next
// deadline.
TEST(Sleep, timers_fire_one_after_the_other_though_each_task_they_wake_keeps_its_worker) {
  if (weft::sched::force_migration) GTEST_SKIP() << "each task must resume on a worker that is kept until it has";
  support::watchdog guard(100s);
  for (const std::size_t workers : {2, 4, 8})
    for (std::size_t round = 0; round < scaled(20); ++round) {
      watched_runtime rt(workers);
      const std::size_t n = workers - 1;
      base::atomic<std::size_t> woken{0};
      rt->run([&] {
        std::vector<base::atomic<weft::task::record*>> who(n);
        std::vector<weft::join_handle<void>> all;
        const auto start = clock::now() + 5ms;
        for (std::size_t i = 0; i < n; ++i)
          all.push_back(weft::spawn([&, i] {
            who[i] = weft::waits::current_task();
            weft::sleep_until(start + i * 2ms);
            ++woken;
            support::hold_worker_until([&] { return woken.load() == n; });
          }));
        for (auto& w : who) until([&] { return is_parked(w.load()) || woken.load() != 0; });
        support::hold_worker_until([&] { return woken.load() == n; });
        for (auto& h : all) h.join();
      });
      EXPECT_EQ(woken.load(), n);
    }
}

// All timers lie on one worker, which is stuck; the others come and go meanwhile.
// req: BZ-11
TEST(Sleep, many_timers_of_a_stuck_worker_fire_while_the_others_work_and_sleep_in_turns) {
  support::watchdog guard(100s);
  watched_runtime rt(2);
  base::atomic<std::size_t> woken{0};
  constexpr std::size_t n = 200;
  rt->run([&] {
    base::atomic<std::size_t> started{0};
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < n; ++i)
      all.push_back(weft::spawn([&, i] {
        ++started;
        weft::sleep_for(5ms + std::chrono::microseconds(i * 100));
        ++woken;
        weft::sleep_for(1ms);
      }));
    until([&] { return started.load() == n; });
    support::hold_worker_until([&] { return woken.load() == n; });
    for (auto& h : all) h.join();
  });
  EXPECT_EQ(woken.load(), n);
}

// The watcher keeps a deadline that is hours away. A worker that goes to sleep with a nearer one takes over. Otherwise
// nobody would see to the nearer one: nobody is awake, and the monitor does not look.
TEST(SleepNoTsan, one_that_ends_soon_ends_beside_one_that_lasts_for_hours) {
  support::watchdog guard(100s);
  for (std::size_t round = 0; round < 20; ++round) {
    watched_runtime rt(2);
    auto far = rt->spawn([] { weft::sleep_for(5h); });
    until([&] { return rt.core().idle().sleeping() == 2; });
    {
      const support::held_monitor held(rt.core());
      rt->spawn([] { weft::sleep_for(5ms); }).join();
    }
    far.cancel();
    EXPECT_THROW(far.join(), weft::task_cancelled);
  }
}
}  // namespace
