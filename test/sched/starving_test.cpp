// Fewer stacks than tasks (max_stacks): a fresh task for which there is none waits for one.
#include <gtest/gtest.h>

#include <new>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;

// req: CC-14 W-9
TEST(Starving, more_tasks_than_stacks_all_run_one_after_the_other) {
  support::watchdog guard(100s, "1000 tasks on 4 stacks");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt({.workers = workers, .max_stacks = 4, .elastic = false});
    std::vector<weft::join_handle<int>> all;
    for (int i = 0; i < 1000; ++i)
      all.push_back(rt->spawn([i] {
        weft::yield();
        return i;
      }));
    int refused = 0;
    int sum = 0;
    for (auto& h : all) try {
        sum += h.join();
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    EXPECT_EQ(refused, 0) << "a task must wait, not fail, as long as others will give a stack back";
    EXPECT_EQ(sum, 1000 * 999 / 2);
  });
}

// req: CC-14
TEST(Starving, no_more_tasks_start_than_there_are_stacks_until_one_ends) {
  support::watchdog guard(60s, "10 tasks that wait on 4 stacks");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt({.workers = workers, .max_stacks = 4, .elastic = false});
    weft::base::atomic<bool> closed{true};
    weft::base::atomic<int> started{0};
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 10; ++i)
      all.push_back(rt->spawn([&] {
        started.fetch_add(1);
        while (closed.load()) weft::park_if(closed, true);
      }));
    support::until([&] { return started.load() >= 4 && rt.core().without_stack().any(); });
    EXPECT_EQ(started.load(), 4);
    closed.store(false);
    for (auto& h : all) h.ref().unpark();
    for (auto& h : all) h.join();
    EXPECT_EQ(started.load(), 10);
  });
}

// req: CC-14 W-9
TEST(Starving, a_stack_that_lies_in_another_workers_cache_counts_as_free) {
  support::watchdog guard(60s, "single tasks, each on any worker");
  for (const std::size_t most : {1u, 2u, 3u}) {
    support::watched_runtime rt({.workers = 4, .max_stacks = most, .elastic = false});
    for (int i = 0; i < 200; ++i) {
      EXPECT_NO_THROW(rt->spawn([] {}).join()) << "nobody holds a stack; task " << i << ", max_stacks " << most;
    }
  }
}

// The only stack is handed out when a task wants it, and is back when the worker looks whether anybody has one. The
// task must wait, not fail. Somebody takes and returns the stack all the time, so that one of some hundred tasks meets
// this moment.
TEST(Starving, a_stack_returned_at_that_moment_is_not_overlooked) {
  support::watchdog guard(100s, "a stack that comes and goes");
  support::watched_runtime rt({.workers = 1, .max_stacks = 1, .elastic = false});
  weft::base::atomic<bool> stop{false};
  weft::base::atomic<std::size_t> taken{0};
  std::thread other([&] {
    weft::context::stack_pool& stacks = rt.core().stacks();
    while (!stop.load())
      if (weft::context::stack* s = stacks.acquire(stacks.default_size())) {
        stacks.release(s);
        ++taken;
      }
  });
  std::size_t refused = 0;
  while (refused == 0 && taken.load() < support::scaled(10'000'000)) try {
      rt->spawn([] {}).join();
    } catch (const std::bad_alloc&) {
      ++refused;
    }
  EXPECT_EQ(refused, 0u);
  stop.store(true);
  other.join();
}

// req: CC-14 W-9
TEST(Starving, a_starved_task_runs_when_a_stack_is_freed_though_its_worker_never_sleeps) {
  support::watchdog guard(60s, "a starved task beside a busy one");
  support::watched_runtime rt({.workers = 1, .max_stacks = 2, .elastic = false});
  rt->run([] {
    weft::base::atomic<bool> second_ran{false};
    support::latch first_may_end(1);
    auto first = weft::spawn([&] { first_may_end.wait(); });
    auto second = weft::spawn([&] { second_ran.store(true); });
    for (int i = 0; i < 100'000; ++i) weft::yield();  // one of them has the second stack, the other finds none
    first_may_end.count_down();
    support::until([&] { return second_ran.load(); });  // yields, so the worker never sleeps
    first.join();
    second.join();
  });
}

// req: CC-14 W-9
TEST(Starving, no_free_stack_lies_in_the_cache_of_a_worker_that_computes) {
  support::watchdog guard(60s, "a task that spins until another has run");
  support::watched_runtime rt({.workers = 4, .max_stacks = 8, .elastic = false});
  rt->run([] {
    weft::base::atomic<bool> has_run{false};
    auto other = weft::spawn([&] { has_run.store(true); });
    while (!has_run.load()) weft::base::cpu_relax();
    other.join();
  });
}

// req: CC-14 BZ-5
TEST(Starving, a_starving_task_does_not_keep_the_workers_busy) {
  support::watchdog guard(60s, "a task for which there is no stack");
  support::watched_runtime rt({.workers = 4, .max_stacks = 2, .elastic = false});
  weft::base::atomic<bool> closed{true};
  weft::base::atomic<int> holding{0};
  std::vector<weft::join_handle<void>> holders;
  for (int i = 0; i < 2; ++i)
    holders.push_back(rt->spawn([&] {
      holding.fetch_add(1);
      while (closed.load()) weft::park_if(closed, true);
    }));
  support::until([&] { return holding.load() == 2; });  // fresh tasks start in any order
  auto starved = rt->spawn([] {});
  support::until([&] { return rt.core().without_stack().any(); });
  const std::uint64_t before = rt->statistics().sleeps;
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < 100ms) std::this_thread::yield();
  const auto milliseconds = (std::chrono::steady_clock::now() - start) / 1ms;
  // Each of four workers looks about once a millisecond; handing the task around at full speed makes tens of thousands.
  EXPECT_LT(rt->statistics().sleeps - before, static_cast<std::uint64_t>(20 * milliseconds));
  closed.store(false);
  for (auto& h : holders) {
    h.ref().unpark();
    h.join();
  }
  starved.join();
}

}  // namespace
