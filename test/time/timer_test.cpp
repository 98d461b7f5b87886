// Timers as things to wait for, alone and as arms of a select: never early, never lost, gone when they lose.
// ctest: channels
#include <algorithm>
#include <thread>

#include "base/clock.hpp"
#include "chan/channels.hpp"
#include "sched/scheduler.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace chan_test;
using clock = std::chrono::steady_clock;
namespace sched = weft::sched;

// How many timers would fire in the next day, on all workers, and how many wheels expect one.
std::pair<std::size_t, std::size_t> left_behind(watched_runtime& rt) {
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
  return {fired, pending};
}

// req: BZ-11 CSP-8
TEST(Timer, none_expires_early_alone_or_as_an_arm) {
  support::watchdog guard(60s);
  const auto check = [](std::size_t i) {
    const auto time = std::chrono::nanoseconds(i * 7'919 % 3'000'000);
    const auto from = clock::now();
    auto t = weft::after(time);
    t.wait();
    EXPECT_GE(clock::now() - from, time);
    auto [out, in] = weft::make_channel<int>(i % 2);
    int v = 0;
    const auto again = clock::now();
    auto limit = weft::after(time);
    EXPECT_EQ(weft::alt(in >> v, limit, ~in).index(), 1u);
    EXPECT_GE(clock::now() - again, time);
    EXPECT_TRUE(limit.is_expired());
    EXPECT_TRUE(nobody_waits(in));
  };
  for (std::size_t i = 0; i < 20; ++i) check(i * 37);
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < scaled(500); ++i) all.push_back(rt->spawn([&, i] { check(i); }));
    for (auto& h : all) h.join();
  });
}

// req: BZ-11
TEST(Timer, a_tenth_of_a_millisecond_is_not_rounded_to_a_whole_one) {
  watched_runtime rt(2);
  rt->run([] {
    auto best = clock::duration::max();
    for (int i = 0; i < 200; ++i) {
      const auto from = clock::now();
      weft::after(100us).wait();
      best = std::min(best, clock::now() - from);
    }
    EXPECT_LT(best, support::under_tsan || support::under_asan ? 20ms : 1'300us);
  });
}

// req: CSP-8
TEST(Timer, one_that_has_expired_stays_so_until_it_is_restarted) {
  auto t = weft::after(-1h);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(weft::alt(t, weft::otherwise).index(), 0u);
  t.restart(1h);
  EXPECT_FALSE(t.is_expired());
  EXPECT_EQ(weft::alt(t, weft::otherwise).index(), 1u);
  t.restart(clock::now());
  t.wait();
  EXPECT_TRUE(t.is_expired());
}

// req: CSP-8 BZ-11
TEST(Timer, one_that_nobody_waits_for_is_on_no_wheel) {
  watched_runtime rt(2);
  rt->run([] {
    for (int i = 0; i < 10'000; ++i) (void)weft::after(1ms);
    auto kept = weft::after(1ms);
    EXPECT_EQ(weft::alt(kept, weft::otherwise).index(), kept.is_expired() ? 0u : 1u);
  });
  EXPECT_EQ(left_behind(rt), std::pair(std::size_t{0}, std::size_t{0}));
}

// req: BZ-11 CC-11
TEST(Timer, one_that_loses_a_select_is_removed_at_once) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    const std::size_t n = scaled(2'000);
    auto receiver = rt->spawn([&] {
      for (std::size_t i = 0; i < n; ++i) {
        auto limit = weft::after(1h + std::chrono::microseconds(i * 997));
        int v = 0;
        ASSERT_EQ(weft::alt(in >> v, limit).index(), 0u);
      }
    });
    auto limited = rt->spawn([&] {
      for (std::size_t i = 0; i < n; ++i) ASSERT_TRUE(out.send_for(1, 2h));
    });
    receiver.join();
    limited.join();
    EXPECT_EQ(left_behind(rt), std::pair(std::size_t{0}, std::size_t{0}));
  });
}

// req: BZ-11 LS-P3
TEST(Timer, one_whose_select_was_cancelled_is_removed_at_once) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    const std::size_t n = scaled(1'000);
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < n; ++i)
      all.push_back(rt->spawn([&, i] { (void)in.recv_for(1h + std::chrono::microseconds(i * 997)); }));
    until_receivers_wait(in, n);
    for (auto& h : all) h.cancel();
    for (auto& h : all) EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_TRUE(nobody_waits(in));
    EXPECT_EQ(left_behind(rt), std::pair(std::size_t{0}, std::size_t{0}));
  });
}

// Each wait ends by its timer, by a value, or by cancellation: once, and not early.
// req: BZ-11 CC-10
TEST(Timer, timers_values_and_cancels_race_and_each_wait_ends_once) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    const std::size_t n = scaled(6'000);
    base::atomic<std::size_t> values{0};
    base::atomic<std::size_t> expired{0};
    base::atomic<std::size_t> early{0};
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < n; ++i)
      all.push_back(rt->spawn([&, i] {
        const auto time = std::chrono::microseconds(i * 131 % 5'000);
        const auto from = clock::now();
        auto limit = weft::after(time);
        int v = 0;
        if (weft::alt(limit, in >> v).index() == 1) {
          ++values;
        } else {
          ++expired;
          if (clock::now() - from < time) ++early;
        }
      }));
    std::size_t sent = 0;
    std::size_t cancelled = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (i % 3 == 0 && out.try_send(1)) ++sent;
      if (i % 2 == 0) all[i].cancel();
    }
    for (auto& h : all) try {
        h.join();
      } catch (const weft::task_cancelled&) {
        ++cancelled;
      }
    EXPECT_EQ(values.load(), sent);
    EXPECT_EQ(values.load() + expired.load() + cancelled, n);
    EXPECT_EQ(early.load(), 0u);
    EXPECT_TRUE(nobody_waits(in));
    EXPECT_EQ(left_behind(rt), std::pair(std::size_t{0}, std::size_t{0}));
  });
}

// One task keeps its worker from the moment on at which the timer of a select is on that worker's wheel.
// req: BZ-11
TEST(Timer, a_stuck_worker_delays_no_timer_in_a_select) {
  support::watchdog guard(100s);
  for (const std::size_t workers : {2, 4, 8}) {
    watched_runtime rt(workers);
    std::size_t on_the_stuck_one = 0;
    for (std::size_t round = 0; round < scaled(40) || on_the_stuck_one == 0; ++round) {
      rt->run([&] {
        struct {
          base::atomic<int> worker{-1};
          base::atomic<bool> woken{false};
          base::atomic<weft::task::record*> who{nullptr};
        } s;
        auto [out, in] = weft::make_channel<int>(0);
        if (round % 2 == 0)  // the others are fast asleep and know of no deadline
          support::hold_worker_until([&] { return rt.core().idle().sleeping() + 1 == workers; });
        auto sleeper = weft::spawn([&] {
          s.who = weft::waits::current_task();
          s.worker = sched::this_worker()->id();
          EXPECT_EQ(in.recv_for(3ms), std::nullopt);
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

// A select waits several times, each time on the worker it is on by then.
// req: BZ-11
TEST(Timer, one_timer_serves_a_task_that_moves_between_workers) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    std::vector<weft::join_handle<void>> all;
    for (int t = 0; t < 4; ++t)
      all.push_back(rt->spawn([&] {
        auto end = weft::after(30ms);
        auto poll = weft::tick(200us);
        int v = 0;
        while (weft::prialt(end, in >> v, poll).index() != 0) {}
        EXPECT_TRUE(end.is_expired());
      }));
    auto sender = rt->spawn([&] {
      while (out.send_for(1, 100us) || !all[0].is_finished()) {}
    });
    for (std::size_t i = 1; i < all.size(); ++i) all[i].wait();
    all[0].wait();
    sender.join();
    for (auto& h : all) h.join();
    EXPECT_EQ(left_behind(rt), std::pair(std::size_t{0}, std::size_t{0}));
  });
}

// req: BZ-11
TEST(Timer, an_outside_thread_waits_for_the_earliest_of_several) {
  auto late = weft::after(1h);
  auto early = weft::after(2ms);
  auto never = weft::timer(clock::time_point::max());
  auto [out, in] = weft::make_channel<int>(0);
  int v = 0;
  EXPECT_EQ(weft::alt(never, late, in >> v, early).index(), 3u);
  EXPECT_TRUE(early.is_expired());
}

// ---- ticks -------------------------------------------------------------------------------------------------------------

// req: CSP-8
TEST(Ticker, ticks_lie_on_the_grid_of_the_first_however_late_they_are_waited_for) {
  const auto check = [] {
    constexpr auto period = 500us;
    auto t = weft::tick(period);
    const auto first = t.next();
    std::int64_t passed = 0;
    for (int i = 0; i < 20; ++i) {
      const auto expected = t.next();
      t.wait();
      EXPECT_GE(clock::now(), expected);
      passed += 1 + static_cast<std::int64_t>(t.missed());
      EXPECT_EQ(t.next(), first + passed * period);
      if (i % 5 == 0) {  // late on purpose
        const auto late = clock::now() + period / 3 * (i + 1);
        support::hold_worker_until([&] { return clock::now() >= late; });
      }
    }
  };
  check();
  weft::run({.workers = 2}, check);
}

// req: CSP-8
TEST(Ticker, missed_ticks_are_one_tick_that_says_how_many_it_stands_for) {
  auto t = weft::tick(1ms);
  const auto first = t.next();
  support::hold_worker_until([&] { return clock::now() >= first + 4ms; });
  t.wait();
  EXPECT_GE(t.missed(), 4u);
  EXPECT_GT(t.next(), first + 4ms);
  const auto next = t.next();
  t.wait();
  EXPECT_GE(clock::now(), next);
}

// req: CSP-8
TEST(Ticker, a_tick_that_loses_a_select_is_not_lost) {
  auto [out, in] = weft::make_channel<int>(1);
  auto t = weft::tick(2ms);
  const auto first = t.next();
  EXPECT_TRUE(out.send(1));
  support::hold_worker_until([&] { return clock::now() >= first; });
  int v = 0;
  EXPECT_EQ(weft::prialt(in >> v, t).index(), 0u);
  EXPECT_EQ(t.next(), first);
  EXPECT_EQ(weft::prialt(in >> v, t).index(), 1u);
}

// req: CSP-8
TEST(Ticker, a_period_must_be_above_zero_and_may_be_huge) {
  EXPECT_THROW((void)weft::tick(0s), weft::usage_error);
  EXPECT_THROW((void)weft::tick(-1ms), weft::usage_error);
  auto huge = weft::tick(std::chrono::hours::max());
  EXPECT_EQ(weft::alt(huge, weft::otherwise).index(), 1u);
  auto large = weft::tick(std::chrono::hours(24 * 365 * 200));
  EXPECT_EQ(weft::alt(large, weft::otherwise).index(), 1u);
  int ticks = 0;
  auto t = weft::tick(1ms);
  EXPECT_TRUE(weft::select(t.on_tick([&] { ++ticks; })).ok());
  EXPECT_EQ(ticks, 1);
}

}  // namespace
