// Dispatchers: how many of their tasks run at a time, in which order, and moving between them.
#include <gtest/gtest.h>

#include <sched.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/lane.hpp"
#include "sched/scheduler.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using weft::dispatcher;
using weft::base::atomic;

// The most that were between enter() and leave() at once.
class most_at_once {
 public:
  void enter() {
    const int n = inside_.fetch_add(1) + 1;
    int seen = most_.load();
    while (n > seen && !most_.compare_exchange_weak(seen, n)) {}
  }
  void leave() { inside_.fetch_sub(1); }
  [[nodiscard]] int get() const { return most_.load(); }

 private:
  atomic<int> inside_{0};
  atomic<int> most_{0};
};

// req: KC-1
TEST(Dispatcher, SingleRunsOneAtATimeInTheOrderOfTheSpawns) {
  support::watchdog guard(60s, "a thousand tasks on a single dispatcher");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] {
      const dispatcher one = dispatcher::single();
      std::vector<int> order;  // no lock: that is the point
      most_at_once inside;
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 1000; ++i)
        all.push_back(weft::spawn_on(one, [&, i] {
          inside.enter();
          order.push_back(i);
          inside.leave();
        }));
      for (auto& t : all) t.join();
      EXPECT_EQ(inside.get(), 1);
      std::vector<int> expected(1000);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(order, expected);
    });
  });
}

// Tasks that yield and wait between their turns, while others use the pool.
// req: KC-1 KC-2
TEST(Dispatcher, SingleExcludesUnderLoad) {
  support::watchdog guard(100s, "tasks of a single dispatcher that yield, sleep and talk");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] {
      const dispatcher one = dispatcher::single();
      atomic<bool> over{false};
      auto load = weft::spawn([&] {
        while (!over.load()) weft::yield();
      });
      int counter = 0;
      auto [w, r] = weft::make_channel<int>(0);
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 40; ++i)
        all.push_back(weft::spawn_on(one, [&, i] {
          for (int k = 0; k < 50; ++k) {
            const int seen = counter;
            for (int spin = 0; spin < 20; ++spin) weft::base::cpu_relax();
            counter = seen + 1;
            if (i % 4 == 0) weft::yield();
            if (i % 4 == 1) (void)w.send(k);
            if (i % 4 == 2) weft::sleep_for(1us);
          }
        }));
      auto takes = weft::spawn([&] {
        for (int n = 0; n < 10 * 50; ++n) (void)r.recv();
      });
      for (auto& t : all) t.join();
      takes.join();
      EXPECT_EQ(counter, 40 * 50);
      over.store(true);
      load.join();
    });
  });
}

// req: KC-1
TEST(Dispatcher, ATaskThatYieldsOnASingleLetsTheOthersOfItRun) {
  support::watchdog guard(60s, "two tasks that take turns");
  support::watched_runtime rt(1);
  rt->run([] {
    const dispatcher one = dispatcher::single();
    std::string order;
    const auto turn = [&](char c) {
      return [&, c] {
        for (int i = 0; i < 3; ++i) {
          order += c;
          weft::yield();
        }
      };
    };
    auto a = weft::spawn_on(one, turn('a'));
    auto b = weft::spawn_on(one, turn('b'));
    a.join();
    b.join();
    EXPECT_EQ(order, "ababab");
  });
}

// req: KC-1
TEST(Dispatcher, CustomRunsAsManyAsItSaysThoughTheyBlock) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  support::watchdog guard(60s, "tasks that block until three of them do");
  support::watched_runtime rt({.workers = 1});
  rt->run([] {
    const dispatcher three = dispatcher::custom(3);
    most_at_once inside;
    atomic<int> reached{0};
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 9; ++i)
      all.push_back(weft::spawn_on(three, [&] {
        inside.enter();
        reached.fetch_add(1);
        // On one worker this needs two more.
        support::hold_worker_until([&] { return reached.load() >= 3; });
        inside.leave();
      }));
    for (auto& t : all) t.join();
    EXPECT_EQ(inside.get(), 3);
  });
}

// req: KC-1
TEST(Dispatcher, IoRunsSixtyFourBlockingCallsAtOnce) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  support::watchdog guard(60s, "64 blocking calls on one worker");
  support::watched_runtime rt({.workers = 1});
  rt->run([] {
    atomic<int> inside{0};
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 64; ++i)
      all.push_back(weft::spawn([&] {
        weft::blocking([&] {
          inside.fetch_add(1);
          support::hold_worker_until([&] { return inside.load() == 64; });
        });
      }));
    for (auto& t : all) t.join();
    EXPECT_EQ(inside.load(), 64);
  });
}

// req: KC-1
TEST(Dispatcher, IoHasAsManyTurnsAsTheOptionsSay) {
  support::watchdog guard(60s, "two turns on io");
  support::watched_runtime rt({.workers = 2, .io_tasks = 2});
  rt->run([] {
    most_at_once inside;
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 20; ++i)
      all.push_back(weft::spawn_on(dispatcher::io(), [&] {
        inside.enter();
        std::this_thread::sleep_for(1ms);
        inside.leave();
      }));
    for (auto& t : all) t.join();
    EXPECT_LE(inside.get(), 2);
  });
}

// req: KC-1
TEST(Dispatcher, UnconfinedStartsAtOnceAndItsSpawnerComesNext) {
  support::watchdog guard(60s, "a task that starts in its spawner's place");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] {
      std::string order = "1";
      const std::thread::id here = std::this_thread::get_id();
      std::thread::id there;
      weft::event goes_on;
      auto other = weft::spawn_on(dispatcher::unconfined(), [&] {
        there = std::this_thread::get_id();
        order += '2';
        goes_on.wait();
        order += '4';
      });
      order += '3';
      EXPECT_EQ(order, "123");
      EXPECT_EQ(there, here);
      goes_on.set();
      other.join();
      EXPECT_EQ(order, "1234");
    });
  });
}

// req: KC-1
TEST(Dispatcher, UnconfinedResumesWhereItsWakerIs) {
  if (weft::sched::force_migration) GTEST_SKIP() << "every wake goes elsewhere in this build";
  support::watchdog guard(60s, "an unconfined task that is woken");
  support::watched_runtime rt(1);
  rt->run([] {
    weft::event goes_on;
    std::thread::id woken_on;
    auto t = weft::spawn_on(dispatcher::unconfined(), [&] {
      goes_on.wait();
      woken_on = std::this_thread::get_id();
    });
    std::thread::id waker;
    weft::spawn([&] {
      waker = std::this_thread::get_id();
      goes_on.set();
    }).join();
    t.join();
    EXPECT_EQ(woken_on, waker);
  });
}

// req: KC-2
TEST(Dispatcher, WithMovesThereAndBack) {
  support::watchdog guard(60s, "a task that visits dispatchers");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] {
      const dispatcher one = dispatcher::single();
      const dispatcher two = dispatcher::custom(2);
      int counter = 0;
      std::vector<weft::join_handle<int>> all;
      for (int i = 0; i < 20; ++i)
        all.push_back(weft::spawn_on(two, [&] {
          int mine = 0;
          for (int k = 0; k < 20; ++k) {
            mine += weft::with(one, [&] { return ++counter, 1; });
            weft::with(dispatcher{}, [] { weft::yield(); });
          }
          return mine;
        }));
      int sum = 0;
      for (auto& t : all) sum += t.join();
      EXPECT_EQ(sum, 400);
      EXPECT_EQ(counter, 400);
    });
  });
}

// Who parks gives its turn back, so it must not park while somebody else asks for it.
// req: KC-2
TEST(Dispatcher, AnExceptionComesBackToo) {
  support::watchdog guard(60s, "a visit that throws");
  support::watched_runtime rt(2);
  rt->run([] {
    const dispatcher one = dispatcher::single();
    EXPECT_THROW(weft::with(one, []() -> int { throw std::runtime_error("there"); }), std::runtime_error);
    atomic<bool> ran{false};
    auto other = weft::spawn([&] { weft::with(one, [&] { ran.store(true); }); });
    support::hold_worker_until([&] { return ran.load(); });
    other.join();
  });
}

// req: KC-2
TEST(Dispatcher, ACancelledTaskGivesItsTurnBack) {
  support::watchdog guard(60s, "a task cancelled on a single dispatcher");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] {
      const dispatcher one = dispatcher::single();
      atomic<bool> there{false};
      auto t = weft::spawn([&] {
        weft::with(one, [&] {
          there.store(true);
          weft::sleep_for(1h);
        });
      });
      support::until([&] { return there.load(); });
      t.cancel();
      EXPECT_THROW(t.join(), weft::task_cancelled);
      EXPECT_EQ(weft::spawn_on(one, [] { return 7; }).join(), 7);
    });
  });
}

// The way in is a cancellation point, before the task goes and when it has its turn; the turn goes to the next.
// req: BZ-8
TEST(Dispatcher, ATaskThatIsCancelledOnTheWayInDoesNotCallWhatItCameFor) {
  support::watchdog guard(60s, "a task cancelled while it waits for a turn");
  for (const std::size_t workers : {2u, 4u}) {  // one of them is held
    support::watched_runtime rt(workers);
    rt->run([] {
      const dispatcher one = dispatcher::single();
      support::latch over(1);
      atomic<int> waiting{0};
      atomic<int> called{0};
      auto holds = weft::spawn_on(one, [&] { over.hold(); });
      std::vector<weft::join_handle<void>> others;
      for (const bool at_once : {false, true})
        others.push_back(weft::spawn([&, at_once] {
          waiting.fetch_add(1);
          if (at_once) weft::this_task::ref().cancel();
          weft::with(one, [&] { called.fetch_add(1); });
        }));
      support::until([&] { return waiting.load() == 2; });
      EXPECT_THROW(others[1].join(), weft::task_cancelled) << "without waiting for a turn";
      others[0].cancel();
      over.count_down();
      EXPECT_THROW(others[0].join(), weft::task_cancelled);
      holds.join();
      EXPECT_EQ(called.load(), 0);
      EXPECT_EQ(weft::spawn_on(one, [] { return 7; }).join(), 7);
      EXPECT_EQ(weft::with(one, [] { return 8; }), 8) << "its turn was given back";
    });
  }
}

// In a destructor of what is being unwound, or under a shield, it is none.
// req: BZ-8
TEST(Dispatcher, ACancelledTaskMayStillBlockWhereItCannotBeInterrupted) {
  support::watchdog guard(60s, "a destructor that blocks");
  support::watched_runtime rt(2);
  rt->run([] {
    int flushed = 0;
    struct file {
      int& flushes;
      ~file() {
        weft::blocking([this] { ++flushes; });
      }
    };
    auto t = weft::spawn([&] {
      weft::this_task::ref().cancel();
      weft::this_task::shielded([&] { weft::blocking([&] { ++flushed; }); });
      const file f{flushed};
      weft::this_task::check();
    });
    EXPECT_THROW(t.join(), weft::task_cancelled);
    EXPECT_EQ(flushed, 2);
  });
}

// Cancellation does not interrupt a blocking call; the next cancellation point sees it.
// req: BZ-8
TEST(Dispatcher, BlockingIsNotInterrupted) {
  support::watchdog guard(60s, "a blocking call that is cancelled");
  support::watched_runtime rt(2);
  rt->run([] {
    atomic<bool> inside{false};
    atomic<bool> cancelled{false};
    bool ended = false;
    bool went_on = false;
    auto t = weft::spawn([&] {
      const int value = weft::blocking([&] {
        inside.store(true);
        support::hold_worker_until([&] { return cancelled.load(); });
        ended = true;
        return 7;
      });
      EXPECT_EQ(value, 7);
      weft::this_task::check();
      went_on = true;
    });
    support::until([&] { return inside.load(); });
    t.cancel();
    cancelled.store(true);
    EXPECT_THROW(t.join(), weft::task_cancelled);
    EXPECT_TRUE(ended);
    EXPECT_FALSE(went_on);
  });
}

// req: CC-16
TEST(Dispatcher, OthersGoOnWhileTheOnlyWorkerIsInABlockingCall) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  support::watchdog guard(60s, "a blocking call on the only worker");
  support::watched_runtime rt({.workers = 1});
  rt->run([] {
    atomic<bool> ran{false};
    auto other = weft::spawn([&] { ran.store(true); });
    weft::blocking([&] { support::hold_worker_until([&] { return ran.load(); }); });
    other.join();
  });
}

// req: KC-2
TEST(Dispatcher, TasksOnADispatcherGoOnWhenItsLastHandleGoes) {
  support::watchdog guard(60s, "a dispatcher without handles");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] {
      most_at_once inside;
      std::vector<weft::join_handle<void>> all;
      {
        const dispatcher one = dispatcher::single();
        for (int i = 0; i < 20; ++i)
          all.push_back(weft::spawn_on(one, [&] {
            inside.enter();
            weft::base::cpu_relax();
            inside.leave();
            weft::yield();
          }));
      }
      for (auto& t : all) t.join();
      EXPECT_EQ(inside.get(), 1);
    });
  });
}

// req: KC-2
TEST(Dispatcher, OneDispatcherServesTwoRuntimes) {
  support::watchdog guard(60s, "two runtimes on one dispatcher");
  const dispatcher one = dispatcher::single();
  int counter = 0;
  support::watched_runtime first(2);
  support::watched_runtime second(2);
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back((i % 2 == 0 ? first : second)->spawn({.on = one}, [&] {
      const int seen = counter;
      weft::base::cpu_relax();
      counter = seen + 1;
      weft::yield();
    }));
  for (auto& t : all) t.join();
  EXPECT_EQ(counter, 200);
}

// A record that was on a dispatcher serves for a task that is on none.
// req: KC-2
TEST(Dispatcher, ATaskHasNothingOfTheOneBeforeItInTheSameRecord) {
  support::watchdog guard(60s, "ordinary tasks that block, after tasks of a single dispatcher");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([] {
      const dispatcher one = dispatcher::single();
      most_at_once inside;
      for (int round = 0; round < 50; ++round) {
        weft::spawn_on(one, [] {}).join();
        std::vector<weft::join_handle<void>> all;
        for (int i = 0; i < 4; ++i)
          all.push_back(weft::spawn([&] {
            weft::blocking([] {});
            weft::with(one, [&] {
              inside.enter();
              inside.leave();
            });
          }));
        for (auto& t : all) t.join();
      }
      EXPECT_EQ(inside.get(), 1);
    });
  });
}

// req: KC-1
TEST(Dispatcher, CustomStartsItsTasksInTheOrderOfTheSpawns) {
  support::watchdog guard(60s, "twenty tasks, three turns, one worker");
  if (weft::sched::force_migration) GTEST_SKIP() << "every task goes elsewhere in this build";
  support::watched_runtime rt(1);
  rt->run([] {
    const dispatcher three = dispatcher::custom(3);
    std::vector<int> order;
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 20; ++i) all.push_back(weft::spawn_on(three, [&, i] { order.push_back(i); }));
    for (auto& t : all) t.join();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  });
}

// The second stack is with a task that wants the turn of one that has no stack.
// req: CC-14
TEST(Dispatcher, ATaskWithoutAStackKeepsNoTurn) {
  support::watchdog guard(60s, "a single dispatcher and too few stacks");
  support::watched_runtime rt({.workers = 1, .max_stacks = 2, .elastic = false});
  const dispatcher one = dispatcher::single();
  atomic<int> ran{0};
  rt->run([&] {
    atomic<bool> has_stack{false};
    auto other = weft::spawn([&] {
      has_stack.store(true);
      support::until([&] { return rt.core().is_starving(); });
      weft::with(one, [&] { ran.fetch_add(1); });
    });
    support::until([&] { return has_stack.load(); });
    auto child = weft::spawn_on(one, [&] { ran.fetch_add(1); });
    other.join();
    child.join();
  });
  EXPECT_EQ(ran.load(), 2);
}

// A visitor that would go on at once finds the turn taken by one that keeps its worker.
// req: KC-2
TEST(Dispatcher, AVisitorWaitsForTheTurnOfOneThatRuns) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing it may lie behind the one it waits for";
  support::watchdog guard(60s, "a visit to a single dispatcher that is taken");
  support::watched_runtime rt(2);
  rt->run([] {
    const dispatcher one = dispatcher::single();
    atomic<bool> inside{false};
    atomic<bool> asks{false};
    auto holder = weft::spawn_on(one, [&] {
      inside.store(true);
      support::hold_worker_until([&] { return asks.load(); });
      std::this_thread::sleep_for(5ms);
      inside.store(false);
    });
    support::until([&] { return inside.load(); });
    asks.store(true);
    weft::with(one, [&] { EXPECT_FALSE(inside.load()); });
    holder.join();
  });
}

// One that waits inside is woken by the next one there, which keeps its worker: it must wait for that turn.
// req: KC-2
TEST(Dispatcher, AWokenTaskWaitsForTheTurnOfItsWaker) {
  support::watchdog guard(60s, "a wake from a task of the same single dispatcher");
  support::watched_runtime rt(2);
  rt->run([] {
    const dispatcher one = dispatcher::single();
    weft::event go;
    atomic<bool> inside{false};
    auto woken = weft::spawn_on(one, [&] {
      go.wait();
      EXPECT_FALSE(inside.load());
    });
    auto waker = weft::spawn_on(one, [&] {
      inside.store(true);
      go.set();
      std::this_thread::sleep_for(5ms);
      inside.store(false);
    });
    woken.join();
    waker.join();
  });
}

// A spawn on a dispatcher that fails: its record serves for a task that is on none.
// req: KC-2
TEST(Dispatcher, ASpawnThatFailsLeavesNoDispatcherInItsRecord) {
  struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::runtime_error("not to be copied"); }
    void operator()() const {}
  };
  support::watchdog guard(60s, "an ordinary task after a spawn that failed");
  support::watched_runtime rt(1);
  rt->run([] {
    const dispatcher one = dispatcher::single();
    const throws_when_copied body;
    for (int i = 0; i < 10; ++i) {
      EXPECT_THROW((void)weft::spawn_on(one, body), std::runtime_error);
      weft::spawn([] {
        EXPECT_EQ(weft::sched::this_worker()->current()->dispatcher, nullptr);
        weft::blocking([] {});
      }).join();
    }
  });
}

TEST(Dispatcher, HandlesAreValues) {
  const dispatcher one = dispatcher::single();
  dispatcher copy = one;
  EXPECT_EQ(copy, one);
  EXPECT_NE(copy, dispatcher::single());
  EXPECT_EQ(dispatcher{}, dispatcher{});
  EXPECT_NE(dispatcher{}, dispatcher::io());
  const dispatcher moved = std::move(copy);
  EXPECT_EQ(moved, one);
  copy = dispatcher::io();
  EXPECT_EQ(copy, dispatcher::io());
}

TEST(Dispatcher, MistakesAreNamed) {
  EXPECT_THROW((void)dispatcher::custom(0), std::invalid_argument);
  EXPECT_THROW(weft::with(dispatcher::io(), [] {}), weft::usage_error);
  EXPECT_EQ(weft::blocking([] { return 7; }), 7) << "on an outside thread it is a plain call";
}

TEST(Dispatcher, WorkersCanBePinnedAndCoresLeftFree) {
  support::watchdog guard(60s, "pinned workers");
  support::watched_runtime rt({.workers = 2, .pin_workers = true});
  const int cpus = rt->run([] {
    cpu_set_t mine;
    return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : -1;
  });
  EXPECT_EQ(cpus, 1);
  support::watched_runtime all({});
  support::watched_runtime fewer({.leave_cores_free = 1});
  EXPECT_EQ(fewer->workers(), std::max<std::size_t>(all->workers(), 2) - 1);
  support::watched_runtime least({.leave_cores_free = 4096});
  EXPECT_EQ(least->workers(), 1u);
}

}  // namespace
