// Waiting for the end of a task: by tasks, by threads, by many, before and after.
#include <gtest/gtest.h>

#include <set>
#include <string>
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

// req: CC-6
TEST(Join, a_task_joins_a_task_before_and_after_its_end) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([] {
      auto later = weft::spawn([] {
        for (int i = 0; i < 10; ++i) weft::yield();
        return 1;
      });
      EXPECT_EQ(later.join(), 1);
      auto before = weft::spawn([] { return 2; });
      until([&] { return before.is_finished(); });
      EXPECT_EQ(before.join(), 2);
    });
  });
}

// req: CC-6 W-7
TEST(Join, an_outside_thread_joins_a_task_before_and_after_its_end) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    auto later = rt->spawn([] {
      weft::sleep_for(5ms);
      return std::string("late");
    });
    EXPECT_EQ(later.join(), "late");
    auto before = rt->spawn([] { return std::string("early"); });
    until([&] { return before.is_finished(); });
    EXPECT_EQ(before.join(), "early");
  });
}

// req: CC-6
TEST(Join, every_one_of_many_waiters_returns_after_the_end_and_none_before) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    for (std::size_t round = 0; round < scaled(40); ++round) {
      watched_runtime rt(workers);
      base::atomic<bool> go{false};
      base::atomic<bool> over{false};
      base::atomic<std::size_t> returned{0};
      auto target = rt->spawn([&] {
        until([&] { return go.load(); });
        over = true;
        return 11;
      });
      const auto body = [&] {
        target.wait();
        EXPECT_TRUE(over.load());
        EXPECT_TRUE(target.is_finished());
        ++returned;
      };
      std::vector<weft::join_handle<void>> tasks;
      std::vector<std::thread> threads;
      for (int i = 0; i < 12; ++i) tasks.push_back(rt->spawn(body));
      for (int i = 0; i < 3; ++i) threads.emplace_back(body);
      if (round % 2 == 0)
        until([&] {
          std::size_t parked = 0;
          rt.core().records().walk([&](weft::task::record& t) { parked += is_parked(&t) ? 1u : 0u; });
          return parked == 12;
        });
      EXPECT_EQ(returned.load(), 0u);
      go = true;
      for (auto& t : tasks) t.join();
      for (auto& t : threads) t.join();
      EXPECT_EQ(returned.load(), 15u);
      EXPECT_EQ(target.join(), 11);
    }
  });
}

// req: CC-6
TEST(Join, a_joining_task_leaves_its_only_worker_to_others) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  base::atomic<int> beats{0};
  rt->run([&] {
    auto heart = weft::spawn([&] {
      for (int i = 0; i < 100; ++i) {
        ++beats;
        weft::yield();
      }
    });
    auto slow = weft::spawn([&] {
      until([&] { return beats.load() == 100; });
      return beats.load();
    });
    EXPECT_EQ(slow.join(), 100);
    heart.join();
  });
}

// What is joined last was spawned first, so nearly every joiner parks.
// req: CC-6
TEST(Join, a_chain_of_a_thousand_joiners_unwinds_from_its_end) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    base::atomic<bool> go{false};
    constexpr std::size_t length = 1'000;
    auto last = rt->spawn([&] {
      until([&] { return go.load(); });
      return std::size_t{0};
    });
    for (std::size_t i = 0; i < length; ++i)
      last = rt->spawn([before = std::move(last)]() mutable { return before.join() + 1; });
    go = true;
    EXPECT_EQ(last.join(), length);
  });
}

// The end and the join meet at every offset; a lost wake hangs, a wake too early gives a wrong result.
// req: CC-6
TEST(Join, a_join_that_races_with_the_end_gets_the_result) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(100s);
    const std::size_t n = scaled(20'000);
    watched_runtime rt(workers);
    std::size_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      base::atomic<bool> running{false};
      auto h = rt->spawn([&running, i] {
        running.store(true, base::release);
        for (std::size_t spin = i % 61; spin > 0; --spin) base::cpu_relax();
        return i;
      });
      if (i % 4 != 0) {
        while (!running.load(base::acquire)) std::this_thread::yield();
        for (std::size_t spin = i % 83; spin > 0; --spin) base::cpu_relax();
      }
      sum += h.join();
    }
    EXPECT_EQ(sum, n * (n - 1) / 2);
    const weft::runtime_statistics s = rt->statistics();
    EXPECT_EQ(s.spawned, n);
  });
}

// req: CC-6
TEST(Join, a_join_by_a_task_that_races_with_the_end_gets_the_result) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(100s);
    const std::size_t n = scaled(50'000);
    watched_runtime rt(workers);
    constexpr std::size_t joiners = 4;
    std::vector<weft::join_handle<std::size_t>> all;
    for (std::size_t k = 0; k < joiners; ++k)
      all.push_back(rt->spawn([] {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < n; ++i) {
          auto h = weft::spawn([i] {
            if (i % 3 == 0) weft::yield();
            return i;
          });
          if (i % 2 == 0) weft::yield();
          sum += h.join();
        }
        return sum;
      }));
    for (auto& h : all) EXPECT_EQ(h.join(), n * (n - 1) / 2);
    rt->shutdown();
    const weft::runtime_statistics s = rt->statistics();
    EXPECT_EQ(s.spawned, joiners * (n + 1));
    EXPECT_EQ(s.finished, joiners * (n + 1));
  });
}

// req: CC-6 BZ-7
TEST(Join, the_record_of_a_finished_task_stays_while_its_handle_does) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  std::vector<weft::join_handle<std::string>> kept;
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 50; ++i) {
    kept.push_back(rt->spawn({.name = "kept " + std::to_string(i)}, [i] { return "result " + std::to_string(i); }));
    ids.push_back(kept.back().id());
  }
  for (auto& h : kept) h.wait();
  rt->run([] {
    for (std::size_t i = 0; i < scaled(20'000); ++i) weft::spawn({.name = "other"}, [] { return 1; }).join();
  });
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(kept[i].id(), ids[i]);
    EXPECT_EQ(kept[i].name(), "kept " + std::to_string(i));
    EXPECT_EQ(kept[i].join(), "result " + std::to_string(i));
  }
}

// req: CC-6 LS-M1
TEST(Join, records_live_again_once_joined) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  const auto burst = [&] {
    rt->run([] {
      for (std::size_t i = 0; i < scaled(50'000); ++i) weft::spawn([] {}).join();
    });
  };
  burst();
  const std::size_t slabs = rt.core().records().slab_count();
  burst();
  burst();
  EXPECT_LE(rt.core().records().slab_count(), slabs + 1);
}

// req: CC-6 LS-P3
TEST(Join, a_cancelled_joiner_leaves_and_the_handle_can_still_be_joined) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    base::atomic<bool> go{false};
    base::atomic<weft::task::record*> who[3] = {};
    auto target = rt->spawn([&] {
      until([&] { return go.load(); });
      return 3;
    });
    std::vector<weft::join_handle<void>> joiners;
    for (int i = 0; i < 3; ++i)
      joiners.push_back(rt->spawn([&, i] {
        who[i] = waits::current_task();
        target.wait();
      }));
    for (auto& w : who) until([&] { return is_parked(w.load()); });
    joiners[1].cancel();
    EXPECT_THROW(joiners[1].join(), weft::task_cancelled);
    EXPECT_TRUE(is_parked(who[0].load()));
    EXPECT_TRUE(is_parked(who[2].load()));
    EXPECT_FALSE(target.is_finished());
    go = true;
    joiners[0].join();
    joiners[2].join();
    EXPECT_EQ(target.join(), 3);
  });
}

// req: CC-6
TEST(Join, a_join_given_up_by_cancellation_keeps_the_handle) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  auto h = rt->spawn([] {
    auto child = weft::spawn([] {
      weft::sleep_for(20ms);
      return 8;
    });
    weft::this_task::ref().cancel();
    EXPECT_THROW((void)child.join(), weft::cancelled);
    EXPECT_TRUE(child.joinable());
    weft::this_task::shield until_the_child_has_ended;
    EXPECT_EQ(child.join(), 8);
  });
  h.join();
}

// req: CC-6 CC-10
TEST(Join, it_is_a_cancellation_point_even_if_the_task_has_ended) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  auto h = rt->spawn([] {
    auto child = weft::spawn([] { return 8; });
    child.wait();
    weft::this_task::ref().cancel();
    EXPECT_THROW(child.wait(), weft::cancelled);
    EXPECT_THROW((void)child.join(), weft::cancelled);
    EXPECT_EQ(child.try_join(), 8);
  });
  h.join();
}

// req: CC-6 BZ-6
TEST(Join, one_who_joins_what_has_ended_again_and_again_still_gives_way) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    auto ended = weft::spawn([] {});
    ended.wait();
    base::atomic<bool> ran{false};
    auto other = weft::spawn([&] { ran = true; });
    while (!ran.load()) ended.wait();
    other.join();
    ended.join();
  });
}
}  // namespace
