#include "sched/fresh_deque.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "item.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using queue_test::chain;
using queue_test::item;
using queue_test::items;
using fresh_deque = weft::sched::fresh_deque<item>;

// req: CC-4
TEST(FreshDeque, the_owner_takes_the_newest_and_a_thief_the_oldest) {
  items all(5);
  fresh_deque d;
  chain overflow;
  for (std::size_t i = 0; i < 5; ++i) d.push(all[i], overflow);
  EXPECT_EQ(d.size(), 5u);
  EXPECT_EQ(d.pop(), all[4]);
  EXPECT_EQ(d.steal(), all[0]);
  EXPECT_EQ(d.pop(), all[3]);
  EXPECT_EQ(d.steal(), all[1]);
  EXPECT_EQ(d.pop(), all[2]);
  EXPECT_EQ(d.pop(), nullptr);
  EXPECT_EQ(d.steal(), nullptr);
  EXPECT_TRUE(d.empty());
}

// req: CC-4 BZ-15
TEST(FreshDeque, a_full_one_hands_its_older_half_over) {
  items all(9);
  fresh_deque d(8);
  chain overflow;
  for (std::size_t i = 0; i < 8; ++i) d.push(all[i], overflow);
  EXPECT_TRUE(overflow.empty());
  d.push(all[8], overflow);
  EXPECT_EQ(queue_test::numbers(overflow), (std::vector<std::size_t>{0, 1, 2, 3}));
  for (std::size_t i = 9; i-- > 4;) EXPECT_EQ(d.pop(), all[i]);
  EXPECT_EQ(d.pop(), nullptr);
}

// req: CC-4
TEST(FreshDeque, stays_usable_through_many_wraps) {
  items all(1000);
  fresh_deque d(8);
  chain overflow;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    d.push(all[i], overflow);
    d.push(all[i + 1], overflow);
    EXPECT_EQ(d.steal(), all[i]);
    EXPECT_EQ(d.pop(), all[i + 1]);
    EXPECT_EQ(d.pop(), nullptr);
  }
  EXPECT_TRUE(overflow.empty());
}

// One owner that pushes runs of up to `run` and pops them again, thieves that steal.
void conserve(std::size_t capacity, std::size_t thieves, std::size_t count, std::size_t run) {
  support::watchdog guard(60s, "owner and thieves");
  items all(count);
  fresh_deque d(capacity);
  weft::base::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < thieves; ++n)
    threads.emplace_back([&] {
      while (!over.load(weft::base::acquire))
        if (item* i = d.steal()) take(i);
    });
  chain overflow;
  for (std::size_t i = 0; i < count;) {
    for (std::size_t n = 0; n < run && i < count; ++n) d.push(all[i++], overflow);
    while (item* spilled = overflow.pop_front()) take(spilled);
    while (item* popped = d.pop()) take(popped);
    if (i % 1024 < run) std::this_thread::yield();
  }
  while (!d.empty())
    if (item* popped = d.pop()) take(popped);
  over.store(true, weft::base::release);
  for (auto& t : threads) t.join();
  all.expect_each_taken_once();
}

// req: CC-4
TEST(FreshDeque, nothing_is_lost_or_taken_twice_when_owner_and_thief_meet_at_the_last_task) {
  conserve(256, 2, support::scaled(300'000), 1);
}

// req: CC-4
TEST(FreshDeque, nothing_is_lost_or_taken_twice_between_owner_and_three_thieves) {
  conserve(256, 3, support::scaled(300'000), 17);
}

// req: CC-4
TEST(FreshDeque, nothing_is_lost_or_taken_twice_when_it_overflows_all_the_time) {
  conserve(8, 3, support::scaled(300'000), 20);
}

}  // namespace
