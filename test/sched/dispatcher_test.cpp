// Dispatchers: how many of their tasks run at a time and in which order.
#include <sched.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "sched/most_at_once.hpp"
#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
using base::atomic;
using sched_test::most_at_once;
using weft::dispatcher;

// req: KC-1
TEST(Dispatcher, single_runs_one_at_a_time_in_the_order_of_the_spawns) {
  at_worker_counts_in_a_task("a thousand tasks on a single dispatcher", [] {
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
}

// Tasks that yield and wait between their turns, while others use the pool.
// req: KC-1 KC-2
TEST(Dispatcher, single_excludes_under_load) {
  at_worker_counts_in_a_task("tasks of a single dispatcher that yield, sleep and talk", [] {
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
          for (int spin = 0; spin < 20; ++spin) base::cpu_relax();
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
}

// req: KC-1
TEST(Dispatcher, a_task_that_yields_on_a_single_lets_the_others_of_it_run) {
  support::watchdog guard(60s, "two tasks that take turns");
  watched_runtime rt(1);
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
TEST(Dispatcher, custom_runs_as_many_as_it_says_though_they_block) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  support::watchdog guard(60s, "tasks that block until three of them do");
  watched_runtime rt({.workers = 1});
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
TEST(Dispatcher, custom_starts_its_tasks_in_the_order_of_the_spawns) {
  support::watchdog guard(60s, "twenty tasks, three turns, one worker");
  if (weft::sched::force_migration) GTEST_SKIP() << "every task goes elsewhere in this build";
  watched_runtime rt(1);
  rt->run([] {
    const dispatcher three = dispatcher::custom(3);
    std::vector<int> order;
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 20; ++i) all.push_back(weft::spawn_on(three, [&, i] { order.push_back(i); }));
    for (auto& t : all) t.join();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  });
}

// req: KC-1
TEST(Dispatcher, io_runs_sixty_four_blocking_calls_at_once) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  support::watchdog guard(60s, "64 blocking calls on one worker");
  watched_runtime rt({.workers = 1});
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
TEST(Dispatcher, io_has_as_many_turns_as_the_options_say) {
  support::watchdog guard(60s, "two turns on io");
  watched_runtime rt({.workers = 2, .io_tasks = 2});
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
TEST(Dispatcher, unconfined_starts_at_once_and_its_spawner_comes_next) {
  at_worker_counts_in_a_task("a task that starts in its spawner's place", [] {
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
}

// req: KC-1
TEST(Dispatcher, unconfined_resumes_where_its_waker_is) {
  if (weft::sched::force_migration) GTEST_SKIP() << "every wake goes elsewhere in this build";
  support::watchdog guard(60s, "an unconfined task that is woken");
  watched_runtime rt(1);
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

TEST(Dispatcher, handles_are_values) {
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
  copy = one;
  EXPECT_EQ(copy, one);
  copy = dispatcher::single();
  EXPECT_NE(copy, one);
}

TEST(Dispatcher, mistakes_are_named) {
  EXPECT_THROW((void)dispatcher::custom(0), std::invalid_argument);
  EXPECT_THROW(weft::with(dispatcher::io(), [] {}), weft::usage_error);
  EXPECT_EQ(weft::blocking([] { return 7; }), 7) << "on an outside thread it is a plain call";
}

TEST(Dispatcher, workers_can_be_pinned_and_cores_left_free) {
  support::watchdog guard(60s, "pinned workers");
  watched_runtime rt({.workers = 2, .pin_workers = true});
  const int cpus = rt->run([] {
    cpu_set_t mine;
    return ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine) : -1;
  });
  EXPECT_EQ(cpus, 1);
  watched_runtime all({});
  watched_runtime fewer({.leave_cores_free = 1});
  EXPECT_EQ(fewer->workers(), std::max<std::size_t>(all->workers(), 2) - 1);
  watched_runtime least({.leave_cores_free = 4096});
  EXPECT_EQ(least->workers(), 1u);
}

}  // namespace
