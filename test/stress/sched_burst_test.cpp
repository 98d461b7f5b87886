// Bursts of tasks before the workers are up.
#include <gtest/gtest.h>

#include <vector>

#include <weft/weft.hpp>

#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;

// req: CC-4 BZ-5 CSP-10
TEST(Burst, two_thousand_tasks_spawned_before_the_workers_are_up_all_run) {
  support::watchdog guard(250s, "bursts before the workers are up");
  const std::size_t rounds = support::scaled(200);
  for (std::size_t round = 0; round < rounds; ++round) {
    weft::base::atomic<int> ran{0};
    {
      support::watched_runtime rt(support::worker_counts[round % 4]);
      for (int i = 0; i < 2000; ++i) rt->spawn([&] { ran.fetch_add(1, weft::base::relaxed); }).detach();
    }
    ASSERT_EQ(ran.load(), 2000) << "round " << round;
  }
}

// req: CC-4 BZ-5
TEST(Burst, of_tasks_that_spawn_and_join_others_all_run) {
  support::watchdog guard(250s, "bursts of tasks that spawn");
  const std::size_t rounds = support::scaled(100);
  for (std::size_t round = 0; round < rounds; ++round) {
    weft::base::atomic<int> ran{0};
    {
      support::watched_runtime rt(support::worker_counts[round % 4]);
      for (int i = 0; i < 200; ++i)
        rt->spawn([&] {
            std::vector<weft::join_handle<void>> children;
            for (int c = 0; c < 4; ++c)
              children.push_back(weft::spawn([&] {
                weft::yield();
                ran.fetch_add(1, weft::base::relaxed);
              }));
            for (auto& h : children) h.join();
            ran.fetch_add(1, weft::base::relaxed);
          }).detach();
    }
    ASSERT_EQ(ran.load(), 1000) << "round " << round;
  }
}

}  // namespace
