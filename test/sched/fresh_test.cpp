// Tasks that have not run yet, beside others that always have something to do: they wait for some turns, not until all
// are idle.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// Spawns `fresh` tasks while others have their turns, `*turns` of them so far, and says how many came before each.
std::vector<std::size_t> turns_before(int fresh, const std::size_t& turns) {
  std::vector<std::size_t> waited;
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < fresh; ++i)
    all.push_back(weft::spawn([&waited, &turns, since = turns] { waited.push_back(turns - since); }));
  for (auto& t : all) t.join();
  return waited;
}

// sched.K6 of sched/worker.hpp.
constexpr std::size_t most_turns_each = 10;
constexpr std::size_t most_turns_each_outside = 40;  // of those for which the worker's queue had no room

// req: BZ-1 CC-1
TEST(Fresh, a_task_starts_soon_beside_others_that_yield) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "new tasks beside 50 that yield");
  support::watched_runtime rt(1);
  rt->run([] {
    bool over = false;
    std::size_t turns = 0;
    int started = 0;
    std::vector<weft::join_handle<void>> busy;
    for (int i = 0; i < 50; ++i)
      busy.push_back(weft::spawn([&] {
        ++started;
        while (!over) {
          ++turns;
          weft::yield();
        }
      }));
    while (started != 50) weft::yield();
    EXPECT_LE(turns, 50 * most_turns_each) << "until all 50 had started";
    for (const std::size_t waited : turns_before(1, turns)) EXPECT_LE(waited, most_turns_each);
    for (const std::size_t waited : turns_before(20, turns)) EXPECT_LE(waited, 20 * most_turns_each);
    over = true;
    for (auto& t : busy) t.join();
  });
}

// req: BZ-1 CC-1
TEST(Fresh, a_task_starts_soon_beside_a_pair_that_wakes_each_other) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "new tasks beside pairs over channels");
  for (const int pairs : {1, 2, 5}) {
    support::watched_runtime rt(1);
    rt->run([pairs] {
      bool over = false;
      std::size_t turns = 0;
      std::vector<weft::join_handle<void>> busy;
      for (int i = 0; i < pairs; ++i) {
        auto [to, from] = weft::make_channel<int>(0);
        auto [back_to, back_from] = weft::make_channel<int>(0);
        busy.push_back(weft::spawn([&over, &turns, out = std::move(to), in = std::move(back_from)]() mutable {
          while (!over) {
            (void)out.send(1);
            (void)in.recv();
            ++turns;
          }
        }));
        busy.push_back(weft::spawn([in = std::move(from), out = std::move(back_to)]() mutable {
          while (in.recv()) (void)out.send(1);
        }));
      }
      weft::yield();
      for (int round = 0; round < 10; ++round)
        for (const std::size_t waited : turns_before(1, turns)) EXPECT_LE(waited, most_turns_each) << pairs;
      over = true;
      for (auto& t : busy) t.join();
    });
  }
}

// sched.K6 by chance: tasks that spawn, and leave in every way but a join, beside all that may come before what they spawn. Every task
// that is spawned counts the dispatches until it starts, against what was queued when it was spawned.
class bound_keeper {
 public:
  explicit bound_keeper(std::size_t capacity) : capacity_(capacity) {}
  void spawn_some(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const weft::sched::worker& on = *weft::sched::this_worker();
      const auto queued = static_cast<std::uint64_t>(on.queues().size()) + on.owner().queues().size();
      ++spawned_;
      weft::spawn([this, queued, since = on.counters().dispatched.get()] {
        const std::uint64_t waited = weft::sched::this_worker()->counters().dispatched.get() - since - 1;
        ++started_;
        if (waited > (queued < capacity_ / 2 ? most_turns_each : most_turns_each_outside) * (queued + 1))
          ADD_FAILURE() << "started after " << waited << " dispatches, behind " << queued << " tasks";
      }).detach();
    }
  }
  [[nodiscard]] bool all_started() const { return started_ == spawned_; }
  [[nodiscard]] std::size_t spawned() const { return spawned_; }

 private:
  std::size_t capacity_, spawned_ = 0, started_ = 0;
};

std::uint64_t tree(int depth) {
  if (depth == 0) return 1;
  auto left = weft::spawn([depth] { return tree(depth - 1); });
  auto right = weft::spawn([depth] { return tree(depth - 1); });
  return left.join() + right.join();
}

// req: BZ-1 CC-1
TEST(Fresh, a_task_starts_after_ten_times_those_queued_before_it_whatever_comes_later) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(100s, "random spawners beside all that may come first");
  for (std::uint32_t seed = 1; seed <= 12; ++seed) {
    const std::size_t capacity = seed % 3 == 0 ? 64 : 1024;
    support::watched_runtime rt({.workers = 1, .queue_capacity = capacity, .elastic = false});
    rt->run([seed, capacity] {
      bool over = false;
      bound_keeper kept(capacity);
      std::vector<weft::join_handle<void>> busy;
      weft::notify all_of_them;
      auto [to, from] = weft::make_channel<int>(0);
      auto [back_to, back_from] = weft::make_channel<int>(0);
      // A pair that wakes each other through the slot.
      busy.push_back(weft::spawn([&over, out = to, in = back_from]() mutable {
        while (!over && out.send(1)) (void)in.recv();
        out.close();
      }));
      busy.push_back(weft::spawn([in = from, out = back_to]() mutable {
        while (in.recv()) (void)out.send(1);
      }));
      // Many who are woken at once.
      for (int i = 0; i < 40; ++i)
        busy.push_back(weft::spawn([&] {
          while (!over) all_of_them.wait();
        }));
      // A fork tree, whose own tasks are the exception.
      busy.push_back(weft::spawn([&] {
        while (!over) {
          EXPECT_EQ(tree(6), 64u);
          weft::yield();
        }
      }));
      for (std::uint32_t i = 0; i < 6; ++i)
        busy.push_back(weft::spawn([&, chance = std::minstd_rand(seed * 16 + i)]() mutable {
          while (!over) {
            kept.spawn_some(chance() % 8 == 0 ? chance() % 90 : chance() % 4);
            if (chance() % 4 == 0) all_of_them.notify_all();
            if (chance() % 4 == 0) kept.spawn_some(1);
            switch (chance() % 4) {
              case 0: weft::yield(); break;
              case 1: weft::sleep_for(std::chrono::microseconds(chance() % 50)); break;
              case 2: weft::spawn([&kept] { kept.spawn_some(2); }).detach(); [[fallthrough]];  // by one that ends
              case 3: weft::yield(); break;
            }
          }
        }));
      while (kept.spawned() < 6000) weft::yield();
      over = true;
      while (!kept.all_started()) weft::yield();
      all_of_them.notify_all();
      for (auto& t : busy) {
        while (!t.is_finished()) {
          all_of_them.notify_all();
          weft::yield();
        }
        t.join();
      }
    });
  }
}

// Acceptors and senders that wake each other all the time: what the acceptors spawn starts as fast as it is spawned.
// req: BZ-1 CC-1
TEST(Fresh, no_more_is_spawned_than_starts) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "acceptors that spawn a handler for each value");
  for (const std::size_t acceptors : {1u, 4u, 16u, 64u})
    for (const std::size_t capacity : {0u, 16u}) {
      support::watched_runtime rt({.workers = 1, .elastic = false});
      rt->run([&] {
        constexpr std::size_t values = 20'000;
        std::size_t spawned = 0, started = 0, most_waiting = 0;
        auto [out, in] = weft::make_channel<int>(capacity);
        std::vector<weft::join_handle<void>> all;
        for (std::size_t i = 0; i < acceptors; ++i)
          all.push_back(weft::spawn([&, from = in] {
            for ([[maybe_unused]] int v : from) {
              ++spawned;
              most_waiting = std::max(most_waiting, spawned - started);
              weft::spawn([&] { ++started; }).detach();
            }
          }));
        for (int i = 0; i < 2; ++i)
          all.push_back(weft::spawn([to = out] {
            for (std::size_t sent = 0; sent < values / 2; ++sent) EXPECT_TRUE(to.send(1));
          }));
        out.reset();
        for (auto& t : all) t.join();
        // Each may spawn as much as one turn allows before the first handler has its own.
        EXPECT_LE(most_waiting, (acceptors + 1) * 128) << acceptors << " acceptors, capacity " << capacity;
        while (started != spawned) weft::yield();
        EXPECT_EQ(spawned, values);
      });
    }
}

// Handlers that fork and join, and an acceptor that itself waits for a task for each value: their tasks have no place
// in the order of turns, and still they do not pile up.
TEST(Fresh, handlers_that_fork_and_join_do_not_pile_up) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(100s, "handlers that spawn and join");
  for (const int children : {1, 2, 4, 16})
    for (const bool helped : {false, true}) {
      support::watched_runtime rt({.workers = 1, .elastic = false});
      rt->run([&] {
        constexpr std::size_t values = 30'000;
        std::size_t spawned = 0, done = 0, most_unfinished = 0;
        auto [out, in] = weft::make_channel<int>(0);
        std::vector<weft::join_handle<void>> all;
        const auto handle = [&] {
          std::vector<weft::join_handle<void>> forked;
          for (int i = 0; i < children; ++i) forked.push_back(weft::spawn([] {}));
          for (auto& f : forked) f.join();
          ++done;
        };
        all.push_back(weft::spawn([&, from = in] {
          for ([[maybe_unused]] int v : from) {
            ++spawned;
            most_unfinished = std::max(most_unfinished, spawned - done);
            weft::spawn(handle).detach();
            if (helped) weft::spawn([] {}).join();
          }
        }));
        for (int i = 0; i < 2; ++i)
          all.push_back(weft::spawn([to = out] {
            for (std::size_t sent = 0; sent < values / 2; ++sent) EXPECT_TRUE(to.send(1));
          }));
        out.reset();
        for (auto& t : all) t.join();
        while (done != spawned) weft::yield();
        EXPECT_EQ(spawned, values);
        // The two queues of the worker, and what is on its way between them.
        EXPECT_LE(most_unfinished, 4096u) << children << " children, " << (helped ? "helped" : "alone");
      });
    }
}

// Others keep the worker's queue full.
// req: BZ-1 CC-1
TEST(Fresh, what_the_ring_has_no_room_for_has_its_turns_too) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "spawned beside more that yield than the ring holds");
  constexpr std::size_t capacity = 16;
  support::watched_runtime rt({.workers = 1, .queue_capacity = capacity, .elastic = false});
  rt->run([] {
    bool over = false;
    bound_keeper kept(capacity);
    std::vector<weft::join_handle<void>> busy;
    for (int i = 0; i < 64; ++i)
      busy.push_back(weft::spawn([&] {
        while (!over) weft::yield();
      }));
    for (int i = 0; i < 1000; ++i) weft::yield();
    kept.spawn_some(400);
    while (!kept.all_started()) weft::yield();
    over = true;
    for (auto& t : busy) t.join();
  });
}

// More than the queues of the worker hold.
// req: BZ-1 CC-1
TEST(Fresh, the_oldest_of_many_start_first) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "5,000 tasks of one spawner");
  support::watched_runtime rt({.workers = 1, .elastic = false});
  rt->run([] {
    bool over = false;
    bound_keeper kept(1024);
    std::vector<weft::join_handle<void>> busy;
    for (int i = 0; i < 10; ++i)
      busy.push_back(weft::spawn([&] {
        while (!over) weft::yield();
      }));
    weft::yield();
    kept.spawn_some(5000);
    while (!kept.all_started()) weft::yield();
    over = true;
    for (auto& t : busy) t.join();
  });
}

// The same while new ones are spawned all the time.
TEST(Fresh, the_oldest_is_not_forgotten) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "an old task behind new ones");
  support::watched_runtime rt(1);
  rt->run([] {
    for (int again = 0; again < 3; ++again) {
      bool old_ran = false;
      auto old = weft::spawn([&] { old_ran = true; });
      for (int turns = 0; !old_ran && turns < 300'000; ++turns) {
        bool new_ran = false;
        auto newer = weft::spawn([&] { new_ran = true; });
        while (!new_ran) weft::yield();
        newer.join();
      }
      EXPECT_TRUE(old_ran);
      old.join();
    }
  });
}

// Fresh tasks do not keep others from running that come from outside or are in the global queue. The tasks are so long
// that a tick lasts a millisecond, and an old task may have its turn at each tick.
TEST(Fresh, tasks_that_never_end_coming_do_not_keep_the_inbox_and_the_global_queue_waiting) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "fresh tasks of 150 us, and others");
  support::watched_runtime rt(1);
  weft::base::atomic<bool> over{false};
  const auto take_a_while = [] {
    const auto until = std::chrono::steady_clock::now() + 150us;
    while (std::chrono::steady_clock::now() < until) weft::base::cpu_relax();
  };
  auto producer = rt->spawn([&] {
    while (!over.load()) {
      for (int i = 0; i < 30; ++i) weft::spawn(take_a_while).detach();
      take_a_while();
      weft::yield();
    }
  });
  for (int i = 0; i < 3; ++i) {
    support::until([&] { return rt.core().workers()[0]->queues().size() > 20; });
    rt->spawn([] {}).join();  // through the inbox; the overflow of its queues is in the global one
  }
  over.store(true);
  producer.join();
}

}  // namespace
