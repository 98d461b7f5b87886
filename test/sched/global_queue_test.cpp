#include "sched/global_queue.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "item.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using queue_test::chain;
using queue_test::count_up;
using queue_test::item;
using queue_test::items;
using global_queue = weft::sched::global_queue<item>;

// req: BZ-3
TEST(GlobalQueue, a_share_is_one_workers_fair_part_but_at_least_four_and_at_most_sixty_four) {
  struct {
    std::size_t tasks, workers, share;
  } const cases[] = {{1, 4, 1},    {3, 8, 3},     {4, 8, 4},     {12, 4, 4},    {20, 4, 5}, {64, 2, 32},
                     {128, 2, 64}, {1000, 2, 64}, {1000, 1, 64}, {100, 130, 4}, {8, 0, 8}};
  for (const auto& c : cases) {
    items all(c.tasks);
    global_queue q;
    for (std::size_t i = 0; i < c.tasks; ++i) q.push(all[i]);
    chain share = q.take_share(c.workers);
    EXPECT_EQ(share.size(), c.share) << c.tasks << " tasks, " << c.workers << " workers";
    EXPECT_EQ(q.size(), c.tasks - c.share);
  }
}

// req: BZ-3
TEST(GlobalQueue, is_a_fifo_across_single_pushes_and_batches) {
  items all(10);
  global_queue q;
  chain batch;
  for (std::size_t i = 1; i < 6; ++i) batch.push_back(all[i]);
  q.push(all[0]);
  q.push(std::move(batch));
  for (std::size_t i = 6; i < 10; ++i) q.push(all[i]);
  EXPECT_EQ(q.size(), 10u);
  chain share = q.take_share(1);
  EXPECT_EQ(queue_test::numbers(share), count_up(0, 10));
  EXPECT_EQ(q.size(), 0u);
  EXPECT_TRUE(q.take_share(1).empty());
}

// req: BZ-3 BZ-2
TEST(GlobalQueue, an_empty_batch_changes_nothing) {
  global_queue q;
  q.push(chain{});
  EXPECT_EQ(q.size(), 0u);
}

// req: BZ-3
TEST(GlobalQueue, nothing_is_lost_or_taken_twice) {
  support::watchdog guard(60s, "pushers and takers of the global queue");
  const std::size_t each = support::scaled(200'000);
  items all(2 * each);
  global_queue q;
  weft::base::atomic<std::size_t> taken{0};
  std::vector<std::thread> threads;
  for (std::size_t p = 0; p < 2; ++p)
    threads.emplace_back([&, p] {
      for (std::size_t i = 0; i < each;) {
        chain batch;
        for (std::size_t n = 0; n < 1 + i % 130 && i < each; ++n) batch.push_back(all[p * each + i++]);
        q.push(std::move(batch));
      }
    });
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (taken.load() < all.size()) {
        chain share = q.take_share(2);
        while (item* i = share.pop_front()) {
          take(i);
          taken.fetch_add(1);
        }
      }
    });
  for (auto& t : threads) t.join();
  all.expect_each_taken_once();
}

}  // namespace
