// KC-5: stacks and records that are kept for the next task, and what goes back to the system.
// ctest: serial
#include <gtest/gtest.h>

#include <algorithm>
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

// Uses `bytes` of its stack.
[[gnu::noinline]] void touch(std::size_t bytes) {
  auto* room = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t i = 0; i < bytes; i += 1024) room[i] = 1;
}

// So many tasks at once, each with 64 KiB of its stack in use. They are parked until all are there. If they yielded
// meanwhile, they would keep the others from starting.
void many_at_once(weft::runtime& rt, std::size_t count) {
  weft::latch all_here(count);
  std::vector<weft::join_handle<void>> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back(rt.spawn([&] {
      touch(64 << 10);
      all_here.arrive_and_wait();
    }));
  for (auto& h : all) h.join();
}

// req: KC-5
TEST(StackCache, beyond_its_bound_stacks_go_back_to_the_system_after_idleness_NoAsan_NoTsan) {
  support::watchdog guard(100s, "stacks are trimmed");
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = 1 << 20, .elastic = false});
  rt->run([] {});
  const std::size_t before = support::rss();
  std::size_t during = 0;
  {
    support::latch all_here(501);
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < 500; ++i)
      all.push_back(rt->spawn([&] {
        touch(64 << 10);
        all_here.arrive_and_wait();
      }));
    support::until([&] { return support::rss() > before + (500 * std::size_t{60} << 10); });
    during = support::rss();
    all_here.count_down();
    for (auto& h : all) h.join();
  }
  EXPECT_GT(during, before + (500 * std::size_t{60} << 10));
  support::until([&] { return rt.core().stacks().surplus_bytes() == 0; });
  support::until([&] { return support::rss() < before + (12u << 20); });
}

// It works whichever thread trims, also if there is only one worker.
TEST(StackCache, with_one_worker_stacks_and_records_go_back_after_idleness_too_NoAsan_NoTsan) {
  support::watchdog guard(100s, "stacks are trimmed with one worker");
  support::watched_runtime rt({.workers = 1, .stack_cache_bytes = 1 << 20, .elastic = false});
  rt->run([] {});
  const std::size_t before = support::rss();
  for (int round = 0; round < 2; ++round) {  // idle again after more work
    many_at_once(rt, 300);
    support::until([&] { return rt.core().stacks().surplus_bytes() == 0; });
    support::until([&] { return support::rss() < before + (12u << 20); });
  }
}

// Tasks come at any moment of the pause after which memory is given back, and of the giving back: each is run.
// req: KC-5 BZ-5
TEST(StackCache, work_that_comes_while_memory_is_given_back_is_done) {
  support::watchdog guard(100s, "work against trimming");
  for (const std::size_t workers : {1u, 2u}) {
    support::watched_runtime rt({.workers = workers, .stack_cache_bytes = 0, .elastic = false});
    for (int round = 0; round < 10; ++round) {
      many_at_once(rt, 200);
      const std::size_t surplus = rt.core().stacks().surplus_bytes();
      support::until([&] { return rt.core().stacks().surplus_bytes() < surplus || surplus == 0; });
      for (int i = 0; i < 20; ++i) EXPECT_EQ(rt->spawn([i] { return i; }).join(), i);
    }
  }
}

// The task is over before the monitor has looked, and nobody has asked its worker yet for what it keeps.
TEST(StackCache, a_short_task_in_a_runtime_at_rest_leaves_nothing_behind) {
  support::watchdog guard(100s, "short tasks now and then");
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = 0, .elastic = false});
  for (int round = 0; round < 12; ++round) {
    rt->spawn([] {}).join();
    support::until([&] { return rt.core().stacks().in_use() == 0 && rt.core().stacks().surplus_bytes() == 0; });
  }
}

// The next burst may come soon.
// req: KC-5
TEST(StackCache, what_is_kept_stays_for_a_while_after_the_last_task) {
  if (weft::sched::force_migration) GTEST_SKIP() << "a pool that cannot grow does not count looks";
  support::watchdog guard(100s, "stacks after a burst");
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = 0});
  std::chrono::steady_clock::time_point worked;
  rt->run([&] {
    many_at_once(*rt, 200);
    const std::uint64_t looks = rt->elasticity().samples;
    support::hold_worker_until([&] { return rt->elasticity().samples >= looks + 2; });  // the monitor has seen it
    worked = std::chrono::steady_clock::now();
  });
  support::until([&] { return rt.core().stacks().in_use() == 0 && rt.core().stacks().surplus_bytes() == 0; });
  EXPECT_GE(std::chrono::steady_clock::now() - worked,
            std::chrono::nanoseconds(weft::sched::monitor_limits::rest_after));
}

// Some task works for a moment every few milliseconds, so that the runtime is never at rest.
// req: KC-5
TEST(StackCache, a_task_that_works_now_and_then_does_not_keep_memory_from_going_back) {
  support::watchdog guard(100s, "memory beside a heartbeat");
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = 0, .elastic = false});
  weft::base::atomic<bool> over{false};
  auto heart = rt->spawn([&] {
    while (!over.load()) weft::sleep_for(5ms);
  });
  many_at_once(rt, 200);
  const std::size_t surplus = rt.core().stacks().surplus_bytes();
  support::until([&] { return rt.core().stacks().surplus_bytes() < surplus / 4; });
  over.store(true);
  heart.join();
}

// The sleeping workers that are asked for what they keep get a processor late, because others compute. The trim waits
// for them.
TEST(StackCache, on_a_busy_machine_nothing_is_kept_either) {
  support::watchdog guard(100s, "trimming on a busy machine");
  std::vector<std::jthread> busy;
  for (unsigned i = 0; i < std::min(2 * std::thread::hardware_concurrency(), 16u); ++i)
    busy.emplace_back([](const std::stop_token& over) {
      while (!over.stop_requested()) {}
    });
  support::watched_runtime rt({.workers = 4, .stack_cache_bytes = 0, .elastic = false});
  for (int round = 0; round < 10; ++round) {
    many_at_once(rt, 200);
    support::until([&] { return rt.core().stacks().in_use() == 0 && rt.core().stacks().surplus_bytes() == 0; });
  }
}

// The stacks are given back while somebody walks the records, so the first attempt to give back records fails.
TEST(StackCache, records_that_a_walk_kept_go_back_after_it) {
  support::watchdog guard(100s, "a walk while memory is given back");
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = 0, .elastic = false});
  many_at_once(rt, 2000);
  const auto& records = rt.core().records();
  const std::size_t reserved = rt.core().stacks().reserved_bytes();
  std::size_t during = 0;
  records.walk([&](const weft::task::record&) {
    if (during++ != 0) return;
    support::until([&] { return rt.core().stacks().reserved_bytes() < reserved; });
    std::this_thread::sleep_for(200ms);  // the records come after the stacks
  });
  support::until([&] {
    std::this_thread::sleep_for(50ms);  // a walk is what it waits for the end of
    std::size_t after = 0;
    records.walk([&](const weft::task::record&) { ++after; });
    return after < during;
  });
}

// req: KC-5
TEST(StackCache, within_its_bound_stacks_stay_for_the_next_tasks) {
  support::watchdog guard(100s, "stacks are kept");
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = std::size_t{1} << 30});
  many_at_once(rt, 200);
  support::until([&] { return rt.core().idle().sleeping() == 2; });
  const std::size_t reserved = rt.core().stacks().reserved_bytes();
  EXPECT_EQ(rt.core().stacks().surplus_bytes(), 0u);
  for (int i = 0; i < 5; ++i) many_at_once(rt, 200);
  EXPECT_EQ(rt.core().stacks().reserved_bytes(), reserved);
}

// req: KC-5
TEST(StackCache, tasks_one_after_the_other_use_the_same_few_stacks) {
  support::watchdog guard(100s, "stacks are reused");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] { weft::spawn([] {}).join(); });
    const std::size_t reserved = rt.core().stacks().reserved_bytes();
    rt->run([] {
      for (std::size_t i = 0; i < support::scaled(20'000); ++i) weft::spawn([] { weft::yield(); }).join();
    });
    // Each worker's own cache is filled in batches; that is all that may be added.
    EXPECT_LE(rt.core().stacks().reserved_bytes(), reserved * 4 + workers * 64 * (std::size_t{256} << 10));
    EXPECT_LE(rt.core().stacks().in_use(), workers * 64);
  });
}

// req: KC-5
TEST(StackCache, stacks_of_other_sizes_are_trimmed_too_NoAsan_NoTsan) {
  support::watchdog guard(100s, "stacks of another size are trimmed");
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = 1 << 20, .elastic = false});
  rt->run([] {});
  const std::size_t before = support::rss();
  support::latch all_here(100);
  std::vector<weft::join_handle<void>> all;
  for (std::size_t i = 0; i < 100; ++i)
    all.push_back(rt->spawn({.stack_size = 1 << 20}, [&] {
      touch(512 << 10);
      all_here.arrive_and_wait();
    }));
  for (auto& h : all) h.join();
  support::until([&] { return rt.core().stacks().surplus_bytes() == 0; });
  support::until([&] { return support::rss() < before + (12u << 20); });
}

// req: KC-5 LS-M1
TEST(RecordSlabs, of_a_burst_go_back_to_the_system_after_idleness_NoAsan_NoTsan) {
  support::watchdog guard(100s, "records are trimmed");
  support::watched_runtime rt(2);
  rt->run([] {});
  const std::size_t before = support::rss();
  constexpr std::size_t count = 200'000;
  const std::size_t bytes = count * weft::task::fiber_size;  // 64 MB
  std::size_t during = 0;
  rt->run([&] {
    std::vector<weft::join_handle<void>> all;
    all.reserve(count);
    for (std::size_t i = 0; i < count; ++i) all.push_back(weft::spawn([] {}));
    during = support::rss();
    for (auto& h : all) h.join();
  });
  EXPECT_GT(during, before + bytes / 2);
  support::until([&] { return support::rss() < before + bytes / 4; });
}

}  // namespace
