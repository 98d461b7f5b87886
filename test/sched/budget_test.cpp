// A task that never blocks does not keep its worker for itself; nobody is starved by the usual order of the queues.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

constexpr int budget = 128;

// Passes `points` suspension points on the only worker, beside a task that counts its turns; returns the turns.
int turns_of_another(int points, const std::function<void()>& point) {
  support::watchdog guard(60s, "a task beside one that never blocks");
  support::watched_runtime rt(1);
  return rt->run([&] {
    int turns = 0;
    bool over = false;
    auto other = weft::spawn([&] {
      while (!over) {
        ++turns;
        weft::yield();
      }
    });
    while (turns == 0) weft::yield();
    const int before = turns;
    for (int i = 0; i < points; ++i) point();
    const int after = turns;
    over = true;
    other.join();
    return after - before;
  });
}

// req: KC-4 BZ-6
TEST(Budget, joins_of_finished_tasks_move_the_task_to_the_tail_every_hundred_twenty_eight) {
  weft::join_handle<void> finished;
  const int turns = turns_of_another(10 * budget, [&] {
    if (!finished.joinable()) finished = weft::spawn([] {});
    finished.wait();
  });
  EXPECT_GE(turns, 9);
  EXPECT_LE(turns, 13) << "not at every point either";
}

// req: KC-4 BZ-6
TEST(Budget, park_if_that_need_not_park_moves_the_task_to_the_tail_every_hundred_twenty_eight) {
  weft::base::atomic<bool> flag{true};
  const int turns = turns_of_another(10 * budget, [&] { weft::park_if(flag, false); });
  EXPECT_GE(turns, 9);
  EXPECT_LE(turns, 13);
}

// req: KC-4 BZ-6
TEST(Budget, park_if_with_a_permit_moves_the_task_to_the_tail_every_hundred_twenty_eight) {
  weft::base::atomic<bool> flag{false};
  const int turns = turns_of_another(10 * budget, [&] {
    weft::unpark(weft::this_task::ref());
    weft::park_if(flag, false);
  });
  EXPECT_GE(turns, 9);
  EXPECT_LE(turns, 13);
}

// Each send goes the long way then, which spends for itself.
// req: KC-4 BZ-6 BZ-9
TEST(Budget, sends_of_a_cancelled_task_under_a_shield_spend_once_each) {
  auto [out, in] = weft::make_channel<int>(20 * budget);
  support::watchdog guard(60s, "a cancelled task that sends");
  support::watched_runtime rt(1);
  const int turns = rt->run([&, &to = out] {
    int counted = 0;
    bool over = false;
    auto other = weft::spawn([&] {
      while (!over) {
        ++counted;
        weft::yield();
      }
    });
    auto sender = weft::spawn([&] {
      const weft::this_task::shield held;
      while (!weft::this_task::is_cancelled() || counted == 0) weft::yield();
      const int before = counted;
      for (int i = 0; i < 10 * budget; ++i) EXPECT_TRUE(to.send(i));
      over = true;
      return counted - before;
    });
    weft::yield();
    sender.cancel();
    other.join();
    return sender.join();
  });
  EXPECT_GE(turns, 9);
  EXPECT_LE(turns, 13);
}

// req: KC-4
TEST(Budget, sleeps_that_are_over_move_the_task_to_the_tail) {
  const int turns = turns_of_another(10 * budget, [] { weft::sleep_for(0s); });
  EXPECT_GE(turns, 9);
}

// req: KC-4
TEST(Budget, every_yield_gives_the_other_a_turn) {
  EXPECT_GE(turns_of_another(100, [] { weft::yield(); }), 99);
}

// Two tasks keep the ring full while `others` wait to be served, each in another queue.
void nobody_starves(const std::function<void(support::watched_runtime&, weft::base::atomic<int>&)>& submit,
                    int expected) {
  support::watchdog guard(60s, "tasks beside two that always yield");
  support::watched_runtime rt(1);
  weft::base::atomic<int> ran{0};
  weft::base::atomic<bool> over{false};
  std::vector<weft::join_handle<void>> busy;
  for (int i = 0; i < 2; ++i)
    busy.push_back(rt->spawn([&] {
      while (!over.load()) weft::yield();
    }));
  submit(rt, ran);
  support::until([&] { return ran.load() == expected; });
  over.store(true);
  for (auto& h : busy) h.join();
}

// req: BZ-6 CC-4
TEST(Maintenance, tasks_from_outside_are_served_beside_a_busy_ring) {
  nobody_starves(
      [](auto& rt, auto& ran) {
        for (int i = 0; i < 20; ++i) rt->spawn([&] { ran.fetch_add(1); }).detach();
      },
      20);
}

// req: BZ-6 CC-4
TEST(Maintenance, fresh_tasks_are_served_beside_a_busy_ring) {
  nobody_starves(
      [](auto& rt, auto& ran) {
        rt->run([&] {
          for (int i = 0; i < 20; ++i) weft::spawn([&] { ran.fetch_add(1); }).detach();
        });
      },
      20);
}

// req: BZ-6 BZ-3
TEST(Maintenance, the_global_queue_is_served_beside_a_busy_ring) {
  nobody_starves(
      [](auto& rt, auto& ran) {
        rt->run([&] {
          for (int i = 0; i < 600; ++i) weft::spawn([&] { ran.fetch_add(1); }).detach();
        });
      },
      600);
}

// req: BZ-6
TEST(Maintenance, timers_fire_beside_a_busy_ring) {
  nobody_starves(
      [](auto& rt, auto& ran) {
        rt->spawn([&] {
            weft::sleep_for(1ms);
            ran.fetch_add(1);
          }).detach();
      },
      1);
}

// req: BZ-1 BZ-6
TEST(Maintenance, tasks_that_wake_each_other_through_the_slot_starve_nobody) {
  support::watchdog guard(60s, "tasks beside two that wake each other");
  support::watched_runtime rt(1);
  weft::base::atomic<int> ran{0};
  weft::base::atomic<int> turn{0};
  weft::base::atomic<bool> over{false};
  weft::task_ref refs[2];
  weft::base::atomic<int> ready{0};
  std::vector<weft::join_handle<void>> pair;
  for (int me = 0; me < 2; ++me) {
    pair.push_back(rt->spawn([&, me] {
      while (ready.load() == 0) weft::yield();
      while (!over.load()) {
        while (turn.load() != me && !over.load()) weft::park_if(turn, 1 - me);
        turn.store(1 - me);
        refs[1 - me].unpark();
      }
    }));
    refs[me] = pair.back().ref();
  }
  ready.store(1);
  rt->run([&] {
    for (int i = 0; i < 10; ++i) weft::spawn([&] { ran.fetch_add(1); }).detach();
  });
  for (int i = 0; i < 10; ++i) rt->spawn([&] { ran.fetch_add(1); }).detach();
  support::until([&] { return ran.load() == 20; });
  over.store(true);
  for (auto& r : refs) r.unpark();
  for (auto& h : pair) h.join();
}

}  // namespace
