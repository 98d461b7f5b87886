// A batch spreads over all workers; how many search for it; how many workers there can be.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int rounds = 20;

// All workers but the caller's. Who falls asleep is counted as sleeping a moment before it is no longer counted as
// searching. In between nobody is woken for new work: it looks at the queues once more before it sleeps.
bool all_others_sleep(support::watched_runtime& rt) {
  return rt.core().idle().sleeping() == rt->workers() - 1 && rt.core().idle().searching() == 0;
}

void until_all_sleep(support::watched_runtime& rt) {
  support::until([&] { return rt.core().idle().sleeping() == rt->workers(); });
}

// req: CC-3
TEST(Spread, a_batch_spawned_by_one_task_runs_on_all_workers_before_the_first_ends) {
  support::watchdog guard(100s, "a batch from a task");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    for (int round = 0; round < rounds; ++round) {
      until_all_sleep(rt);
      support::latch all_running(workers);
      rt->run([&] {
        std::vector<weft::join_handle<void>> batch;
        // Each keeps its worker until all of them run: only one at a time would never end.
        for (std::size_t i = 0; i < workers; ++i) batch.push_back(weft::spawn([&] { all_running.arrive_and_hold(); }));
        for (auto& h : batch) h.join();
      });
    }
  });
}

// req: CC-3
TEST(Spread, a_batch_spreads_to_the_others_while_its_spawner_goes_on_computing) {
  support::watchdog guard(100s, "a batch from a task that does not stop");
  for (const std::size_t workers : {2u, 4u, 8u}) {
    support::watched_runtime rt(workers);
    for (int round = 0; round < rounds; ++round) {
      until_all_sleep(rt);
      support::latch all_running(workers);
      rt->run([&] {
        std::vector<weft::join_handle<void>> batch;
        for (std::size_t i = 1; i < workers; ++i) batch.push_back(weft::spawn([&] { all_running.arrive_and_hold(); }));
        all_running.arrive_and_hold();
        for (auto& h : batch) h.join();
      });
    }
  }
}

// Without it the watch would find the batch, a millisecond later.
// req: CC-3
TEST(Spread, the_second_task_of_a_batch_wakes_a_sleeper_at_once) {
  if (weft::sched::force_migration) GTEST_SKIP() << "every task is sent to another worker in this build";
  support::watchdog guard(100s, "a batch of two");
  support::watched_runtime rt(4);
  for (int round = 0; round < 5 * rounds; ++round) {
    support::latch over;
    rt->run([&] {
      support::hold_worker_until([&] { return all_others_sleep(rt); });
      auto first = weft::spawn([&] { over.hold(); });
      auto second = weft::spawn([&] { over.hold(); });
      EXPECT_LT(rt.core().idle().sleeping(), 3u);  // whoever is awake now finds one of them and does not sleep again
      over.count_down();
      first.join();
      second.join();
    });
  }
}

// req: CC-3
TEST(Spread, a_batch_spawned_from_outside_runs_on_all_workers_before_the_first_ends) {
  support::watchdog guard(100s, "a batch from outside");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    for (int round = 0; round < rounds; ++round) {
      until_all_sleep(rt);
      support::latch all_running(workers);
      std::vector<weft::join_handle<void>> batch;
      for (std::size_t i = 0; i < workers; ++i) batch.push_back(rt->spawn([&] { all_running.arrive_and_hold(); }));
      for (auto& h : batch) h.join();
    }
  });
}

// req: CC-3
TEST(Spread, a_larger_batch_of_woken_tasks_spreads_too) {
  support::watchdog guard(100s, "a batch of wakes");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    const std::size_t count = 3 * workers;
    weft::base::atomic<std::size_t> parked{0};
    weft::base::atomic<bool> go{false};
    support::latch all_running(workers);
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < count; ++i)
      all.push_back(rt->spawn([&] {
        parked.fetch_add(1);
        while (!go.load()) weft::park_if(go, false);
        if (!all_running.is_open()) all_running.count_down();
        all_running.hold();
      }));
    support::until([&] { return parked.load() == count; });
    until_all_sleep(rt);
    rt->run([&] {
      go.store(true);
      for (auto& h : all) h.ref().unpark();
    });
    for (auto& h : all) h.join();
  });
}

// req: BZ-4
TEST(Spread, a_hundred_thirty_workers_all_run_at_once) {
  support::watchdog guard(100s, "130 workers");
  constexpr std::size_t workers = 130;
  support::watched_runtime rt(workers);
  EXPECT_EQ(rt->workers(), workers);
  until_all_sleep(rt);
  support::latch inside(workers);
  rt->run([&] {
    std::vector<weft::join_handle<void>> batch;
    for (std::size_t i = 0; i < workers; ++i) batch.push_back(weft::spawn([&] { inside.arrive_and_hold(); }));
    for (auto& h : batch) h.join();
  });
  until_all_sleep(rt);
  support::latch outside(workers);
  std::vector<weft::join_handle<void>> batch;
  for (std::size_t i = 0; i < workers; ++i) batch.push_back(rt->spawn([&] { outside.arrive_and_hold(); }));
  for (auto& h : batch) h.join();
}

// req: BZ-4
TEST(Spread, never_more_than_half_of_the_workers_search) {
  if (weft::sched::force_migration) GTEST_SKIP() << "every resume is elsewhere in this build";
  support::watchdog guard(100s, "searchers");
  support::watched_runtime rt(2);
  weft::sched::idle_set& idle = rt.core().idle();
  support::latch other_runs;
  support::latch one_searches;
  weft::base::atomic<bool> over{false};
  std::size_t most = 0;
  rt->run([&] {
    auto other = weft::spawn([&] {
      other_runs.count_down();
      one_searches.hold();
      for (int i = 0; i < 200; ++i) weft::sleep_for(50us);  // each time its worker has nothing to do
      over.store(true);
    });
    other_runs.hold();  // on the other worker, since we keep ours
    support::hold_worker_until([&] { return idle.start_searching(); });  // we are the one of two that may
    one_searches.count_down();
    while (!over.load()) most = std::max(most, idle.searching());
    if (idle.stop_searching()) rt.core().notifying().notify();
    other.join();
  });
  EXPECT_EQ(most, 1u);
}

// req: BZ-4
TEST(Spread, when_all_are_asleep_nobody_searches) {
  support::watchdog guard(60s, "no searchers left over");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    for (int i = 0; i < 200; ++i) rt->run([] { weft::spawn([] {}).join(); });
    until_all_sleep(rt);
    support::until(
        [&] { return rt.core().idle().searching() == 0; });  // the last one leaves the searchers a moment later
  });
}

}  // namespace
