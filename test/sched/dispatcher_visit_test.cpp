// Dispatchers: with() and blocking() take a task there and back, cancelled or not.
#include <stdexcept>
#include <thread>
#include <vector>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
using base::atomic;
using weft::dispatcher;

// req: KC-2
TEST(Dispatcher, with_moves_there_and_back) {
  at_worker_counts_in_a_task("a task that visits dispatchers", [] {
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
}

// A task that parks gives its turn back, so it must not park while somebody else asks for the turn.
TEST(Dispatcher, an_exception_comes_back_too) {
  support::watchdog guard(60s, "a visit that throws");
  watched_runtime rt(2);
  rt->run([] {
    const dispatcher one = dispatcher::single();
    EXPECT_THROW(weft::with(one, []() -> int { throw std::runtime_error("there"); }), std::runtime_error);
    atomic<bool> ran{false};
    auto other = weft::spawn([&] { weft::with(one, [&] { ran.store(true); }); });
    support::hold_worker_until([&] { return ran.load(); });
    other.join();
  });
}

// A visitor that could continue at once finds that another task, which keeps its worker, has taken the turn.
TEST(Dispatcher, a_visitor_waits_for_the_turn_of_one_that_runs) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing it may lie behind the one it waits for";
  support::watchdog guard(60s, "a visit to a single dispatcher that is taken");
  watched_runtime rt(2);
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
    until([&] { return inside.load(); });
    asks.store(true);
    weft::with(one, [&] { EXPECT_FALSE(inside.load()); });
    holder.join();
  });
}

// A task that waits inside is woken by the next one there, which keeps its worker: the woken task must wait for that
// turn.
TEST(Dispatcher, a_woken_task_waits_for_the_turn_of_its_waker) {
  support::watchdog guard(60s, "a wake from a task of the same single dispatcher");
  watched_runtime rt(2);
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

// req: KC-2
TEST(Dispatcher, a_cancelled_task_gives_its_turn_back) {
  at_worker_counts_in_a_task("a task cancelled on a single dispatcher", [] {
    const dispatcher one = dispatcher::single();
    atomic<bool> there{false};
    auto t = weft::spawn([&] {
      weft::with(one, [&] {
        there.store(true);
        weft::sleep_for(1h);
      });
    });
    until([&] { return there.load(); });
    t.cancel();
    EXPECT_THROW(t.join(), weft::task_cancelled);
    EXPECT_EQ(weft::spawn_on(one, [] { return 7; }).join(), 7);
  });
}

// The way in is a cancellation point, before the task goes and when it has its turn; the turn goes to the next.
// req: BZ-8
TEST(Dispatcher, a_task_that_is_cancelled_on_the_way_in_does_not_call_what_it_came_for) {
  support::watchdog guard(60s, "a task cancelled while it waits for a turn");
  for (const std::size_t workers : {2u, 4u}) {  // one of them is held
    watched_runtime rt(workers);
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
      until([&] { return waiting.load() == 2; });
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

// In a destructor that runs while the task unwinds, or under a shield, it is not a cancellation point.
TEST(Dispatcher, a_cancelled_task_may_still_block_where_it_cannot_be_interrupted) {
  support::watchdog guard(60s, "a destructor that blocks");
  watched_runtime rt(2);
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
TEST(Dispatcher, blocking_is_not_interrupted) {
  support::watchdog guard(60s, "a blocking call that is cancelled");
  watched_runtime rt(2);
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
    until([&] { return inside.load(); });
    t.cancel();
    cancelled.store(true);
    EXPECT_THROW(t.join(), weft::task_cancelled);
    EXPECT_TRUE(ended);
    EXPECT_FALSE(went_on);
  });
}

// req: CC-16
TEST(Dispatcher, others_go_on_while_the_only_worker_is_in_a_blocking_call) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  support::watchdog guard(60s, "a blocking call on the only worker");
  watched_runtime rt({.workers = 1});
  rt->run([] {
    atomic<bool> ran{false};
    auto other = weft::spawn([&] { ran.store(true); });
    weft::blocking([&] { support::hold_worker_until([&] { return ran.load(); }); });
    other.join();
  });
}

}  // namespace
