#include "sched/ring.hpp"

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
using ring = weft::sched::ring<item>;

// req: BZ-2
TEST(Ring, holds_two_hundred_fifty_six_unless_told_otherwise) {
  items all(257);
  ring r;
  chain overflow;
  for (std::size_t i = 0; i < 256; ++i) r.push(all[i], overflow);
  EXPECT_TRUE(overflow.empty());
  EXPECT_EQ(r.size(), 256u);
  r.push(all[256], overflow);
  EXPECT_FALSE(overflow.empty());
}

// req: BZ-2
TEST(Ring, gives_its_tasks_back_in_the_order_they_came) {
  items all(100);
  ring r;
  chain overflow;
  for (std::size_t i = 0; i < all.size(); ++i) r.push(all[i], overflow);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(r.pop(), all[i]);
  EXPECT_EQ(r.pop(), nullptr);
  EXPECT_TRUE(r.empty());
}

// req: BZ-2
TEST(Ring, overflow_hands_over_the_newer_half_and_the_new_task_in_one_chain) {
  items all(9);
  ring r(8);
  chain overflow;
  for (std::size_t i = 0; i < 9; ++i) r.push(all[i], overflow);
  EXPECT_EQ(queue_test::numbers(overflow), (std::vector<std::size_t>{4, 5, 6, 7, 8}));
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(r.pop(), all[i]);
  EXPECT_EQ(r.pop(), nullptr);
}

// req: BZ-2
TEST(Ring, wraps_around_many_times_without_losing_or_repeating) {
  items all(1000);
  ring r(8);
  chain overflow;
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    r.push(all[i], overflow);
    if (i % 3 != 0) {
      EXPECT_EQ(r.pop(), all[next]);
      ++next;
    }
    while (r.size() > 4) EXPECT_EQ(r.pop(), all[next++]);
  }
  while (item* i = r.pop()) EXPECT_EQ(i, all[next++]);
  EXPECT_EQ(next, all.size());
  EXPECT_TRUE(overflow.empty());
}

// req: BZ-2
TEST(Ring, a_thief_takes_the_older_half_in_one_claim) {
  items all(9);
  ring victim;
  ring thief;
  chain overflow;
  for (std::size_t i = 0; i < 9; ++i) victim.push(all[i], overflow);
  EXPECT_EQ(thief.steal_into(victim), nullptr) << "the thief's own ring is empty";
  EXPECT_EQ(victim.steal_into(thief), all[0]);
  EXPECT_EQ(thief.size(), 4u);
  EXPECT_EQ(victim.size(), 4u);
  for (std::size_t i = 1; i < 5; ++i) EXPECT_EQ(thief.pop(), all[i]);
  for (std::size_t i = 5; i < 9; ++i) EXPECT_EQ(victim.pop(), all[i]);
}

// req: BZ-2
TEST(Ring, a_thief_takes_the_only_task_and_nothing_from_an_empty_one) {
  items all(1);
  ring victim;
  ring thief;
  chain overflow;
  EXPECT_EQ(victim.steal_into(thief), nullptr);
  victim.push(all[0], overflow);
  EXPECT_EQ(victim.steal_into(thief), all[0]);
  EXPECT_TRUE(victim.empty());
  EXPECT_TRUE(thief.empty());
  EXPECT_EQ(victim.pop(), nullptr);
}

// req: BZ-2
TEST(Ring, a_thief_whose_own_ring_is_more_than_half_full_leaves_the_tasks_where_they_are) {
  items all(16);
  ring victim(8);
  ring thief(8);
  chain overflow;
  for (std::size_t i = 0; i < 8; ++i) victim.push(all[i], overflow);
  for (std::size_t i = 8; i < 13; ++i) thief.push(all[i], overflow);
  EXPECT_EQ(victim.steal_into(thief), nullptr);
  EXPECT_EQ(victim.size(), 8u);
  EXPECT_EQ(thief.size(), 5u);
}

// One owner that pushes and pops, thieves that steal into rings of their own. What overflows is kept aside.
void conserve(std::uint32_t capacity, std::size_t thieves, std::size_t count) {
  support::watchdog guard(60s, "owner and thieves");
  items all(count);
  ring owner(capacity);
  weft::base::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < thieves; ++n)
    threads.emplace_back([&] {
      ring own(capacity);
      for (bool last = false;;) {
        if (item* i = owner.steal_into(own)) {
          take(i);
          while (item* more = own.pop()) take(more);
        } else if (last) {
          return;
        } else {
          last = over.load(weft::base::acquire);
        }
      }
    });
  chain overflow;
  for (std::size_t i = 0; i < count; ++i) {
    owner.push(all[i], overflow);
    while (item* spilled = overflow.pop_front()) take(spilled);
    if (i % 3 == 0)
      if (item* popped = owner.pop()) take(popped);
    if (i % 1024 == 0) std::this_thread::yield();
  }
  while (item* popped = owner.pop()) take(popped);
  over.store(true, weft::base::release);
  for (auto& t : threads) t.join();
  all.expect_each_taken_once();
}

// req: BZ-2
TEST(Ring, nothing_is_lost_or_taken_twice_between_owner_and_one_thief) { conserve(256, 1, support::scaled(300'000)); }

// req: BZ-2
TEST(Ring, nothing_is_lost_or_taken_twice_between_owner_and_three_thieves) {
  conserve(256, 3, support::scaled(300'000));
}

// req: BZ-2
TEST(Ring, nothing_is_lost_or_taken_twice_in_a_small_ring_that_overflows_all_the_time) {
  conserve(8, 3, support::scaled(300'000));
}

}  // namespace
