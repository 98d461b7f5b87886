// Who may take whose tasks, and who may not.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/held_monitor.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using support::until;

std::size_t my_worker() { return static_cast<std::size_t>(weft::sched::this_worker()->id()); }

// req: CC-4 KC-3 BZ-15
TEST(Stealing, a_fresh_task_behind_a_long_running_one_is_taken_by_another) {
  support::watchdog guard(60s, "a fresh task is stolen");
  support::watched_runtime rt(2);
  rt->run([&] {
    weft::base::atomic<bool> ran{false};
    auto child = weft::spawn([&] { ran.store(true); });
    support::hold_worker_until([&] { return ran.load(); });
    child.join();
  });
}

// req: CC-4 KC-3 BZ-15
TEST(Stealing, a_woken_task_in_the_ring_behind_a_long_running_one_is_taken_by_another) {
  support::watchdog guard(60s, "woken tasks are stolen");
  support::watched_runtime rt(2);
  constexpr int count = 10;
  weft::base::atomic<int> parked{0};
  weft::base::atomic<int> ran{0};
  weft::base::atomic<bool> go{false};
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < count; ++i)
    all.push_back(rt->spawn([&] {
      parked.fetch_add(1);
      while (!go.load()) weft::park_if(go, false);
      ran.fetch_add(1);
    }));
  until([&] { return parked.load() == count; });
  rt->run([&] {
    go.store(true);
    for (auto& h : all) h.ref().unpark();
    support::hold_worker_until([&] { return ran.load() == count; });
  });
  for (auto& h : all) h.join();
}

// req: CC-4 BZ-15
TEST(Stealing, a_task_in_the_inbox_of_a_busy_worker_is_taken_by_another) {
  support::watchdog guard(60s, "tasks from outside are stolen");
  support::watched_runtime rt(2);
  weft::base::atomic<int> ran{0};
  support::latch kept;
  auto busy = rt->spawn([&] {
    kept.count_down();
    support::hold_worker_until([&] { return ran.load() == 10; });
  });
  kept.wait();
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < 10; ++i) all.push_back(rt->spawn([&] { ran.fetch_add(1); }));  // to the inboxes in turn
  busy.join();
  for (auto& h : all) h.join();
}

// req: BZ-15 BZ-3
TEST(Stealing, the_rest_of_a_batch_fetched_from_the_global_queue_is_within_a_thiefs_reach) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nothing stays in the local queues in this build";
  support::watchdog guard(60s, "a fetched batch behind a long-running task");
  support::watched_runtime rt({.workers = 2, .queue_capacity = 8, .elastic = false});
  constexpr int count = 200;  // at a capacity of 8 most of them go to the global queue
  weft::base::atomic<int> ran{0};
  support::latch other_kept;
  support::latch other_free;
  rt->run([&] {
    auto keeper = weft::spawn([&] {
      other_kept.count_down();
      other_free.hold();
    });
    other_kept.hold();  // on the other worker, since we keep ours
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < count; ++i)
      all.push_back(weft::spawn([&, i] {
        if (i == 0) {
          // The oldest task is the first of the first batch that is fetched. It keeps its worker until all the others
          // are done. The other worker must do them, also those of that batch.
          other_free.count_down();
          support::hold_worker_until([&] { return ran.load() == count - 1; });
        }
        ran.fetch_add(1);
      }));
    for (auto& h : all) h.join();
    keeper.join();
  });
  EXPECT_EQ(ran.load(), count);
  EXPECT_GT(rt->statistics().overflow_batches, 0u);
}

// req: KC-3
TEST(Stealing, work_is_found_whatever_the_bound_of_the_scan) {
  support::watchdog guard(60s, "a scan of one victim");
  for (const std::size_t scan : {1u, 2u, 4u, 100u}) {
    support::watched_runtime rt({.workers = 8, .steal_scan = scan, .elastic = false});
    support::latch all_run(8);
    rt->run([&] {
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 8; ++i) all.push_back(weft::spawn([&] { all_run.arrive_and_wait(); }));
      for (auto& h : all) h.join();
    });
  }
}

// One worker of seven has something to steal. A thief that looks at two of eight workers, from a random one on, finds
// it now and then.
TEST(Stealing, a_search_looks_at_a_few_random_victims_and_gives_up) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nothing is stolen in this build";
  support::watchdog guard(60s, "bounded scans");
  constexpr std::size_t workers = 8;
  support::watched_runtime rt({.workers = workers, .steal_scan = 1, .elastic = false});
  weft::base::atomic<bool> over{false};
  support::latch all_busy(workers);
  support::latch preys_are_there;
  std::vector<weft::join_handle<void>> all;
  for (std::size_t i = 1; i < workers; ++i)
    all.push_back(rt->spawn([&] {
      all_busy.count_down();
      support::hold_worker_until([&] { return over.load(); });
    }));
  constexpr std::size_t looks = 400;
  std::size_t found = 0;
  all.push_back(rt->spawn([&] {
    all_busy.count_down();
    preys_are_there.hold();
    weft::sched::worker& self = *weft::sched::this_worker();
    weft::sched::worker& victim = *rt.core().workers()[self.id() == 3 ? 4 : 3];
    for (std::size_t others = workers - 1; others > 0;)  // of what lies in the other inboxes one stays in the game
      if (weft::task::record* t = self.search().steal()) (--others > 0 ? self : victim).queues().inbox.push(t);
    for (std::size_t i = 0; i < looks; ++i)
      if (weft::task::record* t = self.search().steal()) {
        ++found;
        victim.queues().inbox.push(t);
      }
    over.store(true);
  }));
  all_busy.wait();  // nobody else searches from here on
  // The monitor does not move anything either, because there is no other worker to move it to.
  support::until([&] {
    const auto everybody = rt.core().workers();
    return std::none_of(everybody.begin(), everybody.end(), [](const auto* w) { return !w->is_stuck(); });
  });
  for (std::size_t i = 0; i < workers; ++i) all.push_back(rt->spawn([] {}));  // one for each inbox
  preys_are_there.count_down();
  for (auto& h : all) h.join();
  EXPECT_GT(found, 0u);
  EXPECT_LT(found, looks * 3 / 4) << "it looks at all of them";
}

// req: BZ-15
TEST(Stealing, switched_off_a_task_stays_with_the_worker_that_got_it) {
  if (weft::sched::force_migration) GTEST_SKIP() << "every resume is elsewhere in this build";
  support::watchdog guard(60s, "tasks without stealing");
  support::watched_runtime rt({.workers = 4, .stealing = false});
  weft::base::atomic<int> moved{0};
  weft::base::atomic<int> ended{0};
  for (int n = 0; n < 8; ++n)
    rt->spawn([&] {
        const std::size_t home = my_worker();
        std::vector<weft::join_handle<void>> all;
        for (int i = 0; i < 100; ++i)
          all.push_back(weft::spawn([&moved, home] {
            for (int y = 0; y < 5; ++y) {
              if (my_worker() != home) moved.fetch_add(1);
              weft::yield();
            }
          }));
        for (auto& h : all) h.join();
        ended.fetch_add(1);
      }).detach();
  until([&] { return ended.load() == 8; });
  EXPECT_EQ(moved.load(), 0);
  EXPECT_EQ(rt->statistics().steals, 0u);
}

// req: BZ-15
TEST(Stealing, switched_on_the_same_tasks_do_move) {
  support::watchdog guard(60s, "tasks with stealing");
  support::watched_runtime rt(4);
  weft::base::atomic<int> moved{0};
  rt->run([&] {
    const std::size_t home = my_worker();
    support::latch everywhere(4);
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 4; ++i)
      all.push_back(weft::spawn([&, home] {
        if (my_worker() != home) moved.fetch_add(1);
        everywhere.arrive_and_hold();
      }));
    for (auto& h : all) h.join();
  });
  EXPECT_GE(moved.load(), 3);
}

// Three tasks behind one that keeps its worker: the other worker takes all of them, in one visit or more.
// req: BZ-15
TEST(Stealing, what_was_stolen_is_counted) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nothing stays in the local queues in this build";
  support::watchdog guard(60s, "three tasks to steal");
  support::watched_runtime rt(2);
  rt->run([&] {
    const support::held_monitor no_help(rt.core());
    const weft::runtime_statistics before = rt->statistics();
    support::latch taken(3);
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 3; ++i) all.push_back(weft::spawn([&] { taken.count_down(); }));
    taken.hold();
    const weft::runtime_statistics after = rt->statistics();
    EXPECT_EQ(after.stolen_tasks - before.stolen_tasks, 3u);
    EXPECT_GE(after.steals - before.steals, 1u);
    EXPECT_LE(after.steals - before.steals, 3u);
    EXPECT_GE(after.steal_attempts - before.steal_attempts, after.steals - before.steals);
    for (auto& h : all) h.join();
  });
}

// req: BZ-15 BZ-5
TEST(Stealing, switched_off_no_task_from_outside_is_forgotten_by_its_worker) {
  support::watchdog guard(60s, "tasks from outside without stealing");
  for (const std::size_t workers : support::worker_counts) {
    support::watched_runtime rt({.workers = workers, .stealing = false});
    for (int i = 0; i < 3000; ++i) {
      std::vector<weft::join_handle<void>> few;
      for (int n = 0; n <= i % 4; ++n) few.push_back(rt->spawn([] {}));
      for (auto& h : few) h.join();
    }
  }
}

// Another worker could do nothing with it.
// req: BZ-15 BZ-5
TEST(Stealing, switched_off_a_task_from_outside_wakes_nobody_but_its_worker) {
  support::watchdog guard(60s, "tasks from outside without stealing");
  support::watched_runtime rt({.workers = 4, .stealing = false, .elastic = false});
  const auto until_all_sleep = [&] { until([&] { return rt.core().idle().sleeping() == 4; }); };
  until_all_sleep();
  const std::uint64_t before = rt->statistics().sleeps;
  for (int i = 0; i < 50; ++i) {
    rt->spawn([] {}).join();
    until_all_sleep();
  }
  EXPECT_LE(rt->statistics().sleeps - before, 60u) << "one for each";
}

// req: BZ-15 CC-14
TEST(Stealing, a_queue_of_the_capacity_asked_for_overflows_beyond_it) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nothing stays in the local queues in this build";
  support::watchdog guard(60s, "queues of several capacities");
  for (const std::size_t capacity : {8u, 16u, 256u, 1024u}) {
    support::watched_runtime rt({.workers = 1, .queue_capacity = capacity, .elastic = false});
    const auto overflows = [&] { return rt->statistics().overflow_batches; };
    rt->run([&] {
      std::vector<weft::join_handle<void>> all;
      for (std::size_t i = 0; i < 2 * capacity; ++i) all.push_back(weft::spawn([] {}));  // each of the two queues
      EXPECT_EQ(overflows(), 0u) << "capacity " << capacity;
      all.push_back(weft::spawn([] {}));
      EXPECT_EQ(overflows(), 1u) << "capacity " << capacity;
      for (auto& h : all) h.join();
    });
  }
}

}  // namespace
