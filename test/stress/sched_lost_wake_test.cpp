// Work that arrives while workers go to sleep.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;

// Keeps the thread busy for up to `most` ns: the next spawn meets the worker spinning, on its way to sleep, or asleep.
void dawdle(weft::base::random& random, std::uint32_t most) {
  const weft::base::time_ns until = weft::base::now() + random.below(most);
  while (weft::base::now() < until) weft::base::cpu_relax();
}

// req: BZ-5 LS-K1 CSP-10
TEST(LostWake, a_spawn_from_outside_is_never_lost_whatever_its_workers_are_doing) {
  support::watchdog guard(250s, "spawns that race with sleep");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    weft::base::random random(workers);
    for (std::size_t i = 0; i < support::scaled(8'000); ++i) {
      dawdle(random, 60'000);  // the workers spin for 20 µs
      rt->spawn([] {}).join();
    }
  });
}

// req: BZ-5 BZ-4
TEST(LostWake, several_threads_spawn_at_once_and_nothing_is_lost) {
  support::watchdog guard(250s, "several spawners race with sleep");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 3; ++t)
      threads.emplace_back([&rt, t] {
        weft::base::random random(t + 1);
        for (std::size_t i = 0; i < support::scaled(2'000); ++i) {
          dawdle(random, 60'000);
          std::vector<weft::join_handle<void>> few;
          for (std::uint32_t n = random.below(4); n-- > 0;) few.push_back(rt->spawn([] {}));
          for (auto& h : few) h.join();
        }
      });
    for (auto& t : threads) t.join();
  });
}

// req: BZ-5 CC-5
TEST(LostWake, an_unpark_from_outside_is_never_lost) {
  support::watchdog guard(250s, "unparks that race with park and sleep");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    weft::base::atomic<std::size_t> asked{0};
    weft::base::atomic<std::size_t> answered{0};
    const std::size_t rounds = support::scaled(8'000);
    auto h = rt->spawn([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        while (asked.load() == i) weft::park_if(asked, i);
        answered.store(i + 1);
      }
    });
    const weft::task_ref ref = h.ref();
    weft::base::random random(workers);
    for (std::size_t i = 0; i < rounds; ++i) {
      dawdle(random, 60'000);
      asked.store(i + 1);
      ref.unpark();
      support::until([&] { return answered.load() == i + 1; });
    }
    h.join();
  });
}

// req: BZ-5 CSP-10
TEST(LostWake, shutdown_races_with_the_last_tasks) {
  support::watchdog guard(250s, "shutdowns");
  const std::size_t rounds = support::scaled(1'000);
  weft::base::random random(5);
  weft::base::atomic<std::size_t> ran{0};
  std::size_t expected = 0;
  for (std::size_t i = 0; i < rounds; ++i) {
    support::watched_runtime rt(support::worker_counts[i % 4]);
    for (std::uint32_t n = random.below(5); n-- > 0; ++expected)
      rt->spawn([&] {
          weft::yield();
          ran.fetch_add(1);
        }).detach();
    dawdle(random, 100'000);
  }
  EXPECT_EQ(ran.load(), expected);
}

}  // namespace
