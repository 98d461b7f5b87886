// A worker that is told to leave: DRAINING, then DEAD; its tasks go to the others.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/held_monitor.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using support::until;
using weft::sched::worker_state;

worker_state state_of(support::watched_runtime& rt, std::size_t worker) { return rt.core().workers()[worker]->state(); }

void until_asleep(support::watched_runtime& rt, std::size_t count) {
  until([&] { return rt.core().idle().sleeping() == count; });
}

std::size_t my_worker() { return static_cast<std::size_t>(weft::sched::this_worker()->id()); }

// req: LS-K1 LS-K2
TEST(Draining, a_sleeping_worker_wakes_up_and_dies) {
  support::watchdog guard(60s, "a sleeping worker leaves");
  support::watched_runtime rt(4);
  until_asleep(rt, 4);
  rt.core().pool().retire(2);
  until([&] { return state_of(rt, 2) == worker_state::dead; });
  // It is no longer among those who could be woken, nor among the searchers.
  until_asleep(rt, 3);
  EXPECT_EQ(rt.core().idle().searching(), 0u);
}

// req: LS-K2
TEST(Draining, nothing_is_lost_that_is_spawned_afterwards) {
  support::watchdog guard(60s, "tasks spawned after a worker left");
  for (const std::size_t workers : {2u, 4u, 8u}) {
    support::watched_runtime rt(workers);
    until_asleep(rt, workers);
    for (std::size_t w = 1; w < workers; ++w) rt.core().pool().retire(w);
    for (std::size_t w = 1; w < workers; ++w) until([&] { return state_of(rt, w) == worker_state::dead; });
    // Tasks go to the inboxes in turn, also to the dead worker's. Each time the living worker has gone to sleep before.
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(rt->spawn([] { return my_worker(); }).join(), 0u);
      if (i % 10 == 0) until_asleep(rt, 1);
    }
  }
}

// req: LS-K2
TEST(Draining, the_tasks_in_its_queues_run_elsewhere) {
  support::watchdog guard(60s, "tasks of a draining worker");
  support::watched_runtime rt(2);
  constexpr int parked_count = 20;
  constexpr int fresh_count = 20;
  weft::base::atomic<int> ran{0};
  weft::base::atomic<bool> go{false};
  weft::base::atomic<int> parked{0};
  std::vector<weft::join_handle<void>> all;
  std::vector<weft::task_ref> refs;
  for (int i = 0; i < parked_count; ++i) {
    all.push_back(rt->spawn([&] {
      parked.fetch_add(1);
      while (!go.load()) weft::park_if(go, false);
      ran.fetch_add(1);
    }));
    refs.push_back(all.back().ref());
  }
  until([&] { return parked.load() == parked_count; });
  // Keep the other worker busy while this one fills its slot, its ring and its deque of fresh tasks and is told to leave.
  support::latch other_busy(1);
  support::latch filled(1);
  weft::base::atomic<std::size_t> retired{99};
  auto filler = rt->spawn([&] {
    auto blocker = weft::spawn([&] {
      other_busy.count_down();
      filled.hold();
    });
    other_busy.hold();  // on another worker, since we keep ours
    go.store(true);
    for (const auto& r : refs) r.unpark();
    for (int i = 0; i < fresh_count; ++i) weft::spawn([&] { ran.fetch_add(1); }).detach();
    retired.store(my_worker());
    rt.core().pool().retire(my_worker());
    filled.count_down();
    blocker.join();  // which does not suspend if it has ended
    weft::yield();
    EXPECT_NE(my_worker(), retired.load()) << "went on elsewhere after its slice";
  });
  filler.join();
  for (auto& h : all) h.join();
  until([&] { return ran.load() == parked_count + fresh_count; });
  until([&] { return state_of(rt, retired.load()) == worker_state::dead; });
}

// req: LS-K2
TEST(Draining, a_dead_worker_never_steals_or_runs_anything_again) {
  support::watchdog guard(60s, "work beside a dead worker");
  support::watched_runtime rt(4);
  rt.core().pool().retire(0);
  until([&] { return state_of(rt, 0) == worker_state::dead; });
  const auto before = rt->statistics_of(0);
  weft::base::atomic<std::size_t> on_dead{0};
  rt->run([&] {
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 2000; ++i)
      all.push_back(weft::spawn([&] {
        weft::yield();
        if (my_worker() == 0) on_dead.fetch_add(1);
      }));
    for (auto& h : all) h.join();
  });
  const auto after = rt->statistics_of(0);
  EXPECT_EQ(on_dead.load(), 0u);
  EXPECT_EQ(after.dispatched, before.dispatched);
  EXPECT_EQ(after.steal_attempts, before.steal_attempts);
  EXPECT_EQ(state_of(rt, 0), worker_state::dead);
}

// req: LS-K2
TEST(Draining, a_dead_worker_is_sent_nothing) {
  support::watchdog guard(60s, "tasks from outside beside a dead worker");
  support::watched_runtime rt(2);
  rt.core().pool().retire(1);
  until([&] { return state_of(rt, 1) == worker_state::dead; });
  support::latch kept;
  support::latch free;
  std::vector<weft::join_handle<void>> all;
  all.push_back(rt->spawn([&] {
    kept.count_down();
    free.hold();
  }));
  kept.wait();  // nobody takes anything out of an inbox now
  for (int i = 0; i < 10; ++i) all.push_back(rt->spawn([] {}));
  EXPECT_FALSE(rt.core().workers()[1]->queues().has_visible_work());
  EXPECT_TRUE(rt.core().workers()[0]->queues().has_visible_work());
  free.count_down();
  for (auto& h : all) h.join();
}

// All remaining workers have said that they may block. One of them gets the task.
TEST(Draining, a_dead_worker_is_sent_nothing_though_the_others_may_block) {
  support::watchdog guard(60s, "tasks from outside beside a dead worker and one that may block");
  support::watched_runtime rt(2);
  rt.core().pool().retire(1);
  until([&] { return state_of(rt, 1) == worker_state::dead; });
  const support::held_monitor no_help(rt.core());
  support::latch kept;
  support::latch free;
  std::vector<weft::join_handle<void>> all;
  all.push_back(rt->spawn([&] {
    weft::blocking([&] {
      kept.count_down();
      free.hold();
    });
  }));
  kept.wait();
  for (int i = 0; i < 10; ++i) all.push_back(rt->spawn([] {}));
  EXPECT_FALSE(rt.core().workers()[1]->queues().has_visible_work());
  EXPECT_TRUE(rt.core().workers()[0]->queues().has_visible_work());
  free.count_down();
  for (auto& h : all) h.join();
}

// req: LS-K2
TEST(Draining, a_worker_leaves_in_the_midst_of_work_and_all_of_it_is_done) {
  support::watchdog guard(100s, "workers leave while tasks spawn, yield and join");
  for (const std::size_t workers : {2u, 4u, 8u}) {
    for (int round = 0; round < 20; ++round) {
      support::watched_runtime rt(workers);
      weft::base::atomic<std::size_t> ran{0};
      auto root = rt->spawn([&] {
        std::vector<weft::join_handle<void>> all;
        for (int i = 0; i < 300; ++i)
          all.push_back(weft::spawn([&] {
            auto child = weft::spawn([&] { ran.fetch_add(1); });
            weft::yield();
            child.join();
            ran.fetch_add(1);
          }));
        for (auto& h : all) h.join();
      });
      for (std::size_t w = 0; w + 1 < workers; ++w) rt.core().pool().retire(w);
      root.join();
      EXPECT_EQ(ran.load(), 600u);
      for (std::size_t w = 0; w + 1 < workers; ++w) until([&] { return state_of(rt, w) == worker_state::dead; });
    }
  }
}

// req: LS-K2
TEST(Draining, a_worker_leaves_after_its_slice_though_it_has_more_to_do_and_nobody_to_take_it) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nothing stays in the local queues in this build";
  support::watchdog guard(60s, "a worker leaves its tasks behind");
  support::watched_runtime rt(2);
  weft::base::atomic<bool> over{false};
  weft::base::atomic<int> started{0};
  weft::base::atomic<int> ended{0};
  weft::base::atomic<weft::sched::worker*> left{nullptr};
  support::latch other_kept;
  support::latch other_free;
  const auto count_end = [&] { ended.fetch_add(1); };
  auto leaver = rt->spawn([&] {
    auto keeper = weft::spawn([&] {
      other_kept.count_down();
      other_free.hold();
    });
    other_kept.hold();  // on the other worker, since we keep ours
    for (int i = 0; i < 5; ++i)
      weft::spawn([&] {
        started.fetch_add(1);
        while (!over.load()) weft::yield();
        ended.fetch_add(1);
      }).detach();
    auto in_slot = weft::spawn([&] {
      started.fetch_add(1);
      weft::park_if(over, false);
      ended.fetch_add(1);
    });
    until([&] { return started.load() == 6; });  // in_slot is parked, the others are in the ring and would stay there
    for (int i = 0; i < 3; ++i) weft::spawn(count_end).detach();
    std::thread outside([&] {
      for (int i = 0; i < 2; ++i) rt->spawn(count_end).detach();  // one for each inbox
    });
    outside.join();
    in_slot.ref().unpark();
    left.store(weft::sched::this_worker());
    rt.core().pool().retire(my_worker());
    keeper.join();
  });
  until([&] { return state_of(rt, 0) == worker_state::dead || state_of(rt, 1) == worker_state::dead; });
  EXPECT_EQ(ended.load(), 0);
  EXPECT_FALSE(left.load()->queues().has_visible_work());
  // Ring 5, slot 1, fresh 3, inbox 1; and the monitor brings the one in the inbox of the worker that is kept.
  until([&] { return rt.core().queues().global.size() == 11u; });
  over.store(true);
  other_free.count_down();
  leaver.join();
  until([&] { return ended.load() == 11; });
}

// req: LS-K2
TEST(Draining, a_task_that_only_yields_leaves_its_draining_worker) {
  support::watchdog guard(60s, "a yielding task moves away");
  support::watched_runtime rt(2);
  rt->run([&] {
    const std::size_t mine = my_worker();
    rt.core().pool().retire(mine);
    until([&] { return my_worker() != mine; });
    until([&] { return state_of(rt, mine) == worker_state::dead; });
  });
}

// req: BZ-5 LS-K2
TEST(DrainingNoTsan, a_runtime_with_a_dead_worker_is_as_idle_as_one_without) {  // TSan has a thread of its own
  support::watchdog guard(60s, "an idle runtime with a dead worker");
  support::watched_runtime rt(3);
  until_asleep(rt, 3);
  rt.core().pool().retire(1);
  until([&] { return state_of(rt, 1) == worker_state::dead; });
  rt->run([] {});
  // The watch may look around a little and trim; then there must be silence.
  support::activity before;
  bool silent = false;
  for (int i = 0; i < 50 && !silent; ++i) {
    before = support::activity_of_others();
    std::this_thread::sleep_for(500ms);
    silent = support::activity_of_others() == before;
  }
  EXPECT_TRUE(silent) << "threads go on waking up";
}

}  // namespace
