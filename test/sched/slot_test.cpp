// The LIFO slot in a running worker.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/order.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// A flag and the task that waits for it.
struct waiter {
  weft::base::atomic<bool> set{false};
  weft::task_ref who;
  void wait() {
    while (!set.load()) weft::park_if(set, false);
    set.store(false);
  }
  void wake() {
    set.store(true);
    who.unpark();
  }
};

// req: BZ-1
TEST(Slot, the_task_woken_last_runs_next_but_at_most_three_in_a_row_before_the_ring) {
  if (weft::sched::force_migration) GTEST_SKIP() << "there is no slot in this build";
  support::watchdog guard(60s, "two tasks that wake each other, one that yields");
  support::watched_runtime rt(1);
  std::string order;
  rt->run([&] {
    waiter ping;
    waiter pong;
    bool over = false;
    int ready = 0;
    auto a = weft::spawn([&] {
      ++ready;
      for (int i = 0; i < 300; ++i) {
        ping.wait();
        order += 'a';
        pong.wake();
      }
    });
    auto b = weft::spawn([&] {
      ++ready;
      for (int i = 0; i < 300; ++i) {
        pong.wait();
        order += 'b';
        ping.wake();
      }
    });
    ping.who = a.ref();
    pong.who = b.ref();
    auto ring = weft::spawn([&] {
      while (!over) {
        order += '.';
        weft::yield();
      }
    });
    while (ready < 2) weft::yield();
    ping.wake();  // both are parked; from here on they wake each other
    a.join();
    b.join();
    over = true;
    ring.join();
  });
  EXPECT_EQ(std::count(order.begin(), order.end(), 'a'), 300);
  EXPECT_EQ(support::longest_without(order, '.'), 3u) << order.substr(0, 200);
}

// req: BZ-1
TEST(Slot, a_task_evicted_from_the_slot_goes_to_the_ring_and_runs) {
  if (weft::sched::force_migration) GTEST_SKIP() << "there is no slot in this build";
  support::watchdog guard(60s, "evicted tasks");
  support::watched_runtime rt(1);
  std::vector<int> order;
  rt->run([&] {
    constexpr int count = 5;
    waiter w[count];
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(weft::spawn([&, i] {
        w[i].wait();
        order.push_back(i);
      }));
      w[i].who = all.back().ref();
    }
    for (int i = 0; i < 20; ++i) weft::yield();  // all are parked
    for (auto& one : w) one.wake();
    for (auto& h : all) h.join();
  });
  EXPECT_EQ(order, (std::vector<int>{4, 0, 1, 2, 3})) << "the last woken first, the others in their order";
}

// One round: 'w' is woken into the slot of the only worker, '.' is in its ring, and the task that woke it goes on for some looks of
// the monitor.
std::string behind_a_long_one(const weft::sched::worker& only) {
  std::string order;
  waiter w;
  bool waits = false;
  auto woken = weft::spawn([&] {
    waits = true;
    w.wait();
    order += 'w';
  });
  w.who = woken.ref();
  support::until([&] { return waits; });
  bool begun = false;
  auto in_ring = weft::spawn([&] {
    begun = true;
    weft::yield();
    order += '.';
  });
  support::until([&] { return begun; });
  w.wake();
  support::hold_worker_until([&] { return only.is_stuck(); });
  const auto some_looks = std::chrono::steady_clock::now() + 3ms;
  support::hold_worker_until([&] { return std::chrono::steady_clock::now() > some_looks; });
  woken.join();
  in_ring.join();
  return order;
}

// req: BZ-1
TEST(Slot, a_task_in_the_slot_of_the_only_worker_keeps_its_place_behind_a_long_running_one) {
  if (weft::sched::force_migration) GTEST_SKIP() << "there is no slot in this build";
  support::watchdog guard(60s, "a task in the slot of the only worker");
  support::watched_runtime rt(1);
  rt->run([&] {
    for (int round = 0; round < 10; ++round) EXPECT_EQ(behind_a_long_one(*rt.core().workers().front()), "w.");
  });
}

void rescue(std::size_t workers, bool with_fresh) {
  support::watched_runtime rt(workers);
  for (int round = 0; round < 30; ++round) {
    waiter w;
    weft::base::atomic<bool> waiting{false};
    weft::base::atomic<bool> ran{false};
    auto stranded = rt->spawn([&] {
      waiting.store(true);
      w.wait();
      ran.store(true);
    });
    w.who = stranded.ref();
    support::until([&] { return waiting.load(); });
    support::until([&] { return rt.core().idle().sleeping() == workers; });
    rt->run([&] {
      w.wake();  // into our slot
      weft::join_handle<void> other;
      // The first who comes for work gets this one and does not come again.
      if (with_fresh) other = weft::spawn([&] { support::hold_worker_until([&] { return ran.load(); }); });
      support::hold_worker_until([&] { return ran.load(); });
      if (with_fresh) other.join();
    });
    stranded.join();
  }
}

// req: BZ-1
TEST(Slot, a_task_in_the_slot_behind_a_long_running_one_is_rescued) {
  support::watchdog guard(100s, "a task in the slot of a busy worker");
  for (const std::size_t workers : {2u, 4u, 8u}) rescue(workers, false);
}

// req: BZ-1
TEST(Slot, a_task_in_the_slot_is_rescued_though_the_first_who_comes_gets_something_else) {
  support::watchdog guard(100s, "a task in the slot of a busy worker, others busy too");
  for (const std::size_t workers : {3u, 4u, 8u}) rescue(workers, true);
}

}  // namespace
