#include "sched/chain.hpp"

#include <gtest/gtest.h>

#include "item.hpp"

namespace {

using queue_test::chain;
using queue_test::count_up;
using queue_test::items;

// req: CC-4
TEST(Chain, appends_in_order_and_leaves_the_other_empty) {
  items all(6);
  chain a;
  chain b;
  for (std::size_t i = 0; i < 3; ++i) a.push_back(all[i]);
  for (std::size_t i = 3; i < 6; ++i) b.push_back(all[i]);
  a.append(std::move(b));
  a.append(chain{});
  EXPECT_EQ(a.size(), 6u);
  EXPECT_EQ(queue_test::numbers(a), count_up(0, 6));
  EXPECT_TRUE(a.empty());
}

// req: CC-4
TEST(Chain, an_emptied_one_can_be_filled_again) {
  items all(3);
  chain a;
  a.push_back(all[0]);
  EXPECT_EQ(a.pop_front(), all[0]);
  EXPECT_EQ(a.pop_front(), nullptr);
  a.push_back(all[1]);
  chain b = std::move(a);
  b.push_back(all[2]);
  EXPECT_EQ(b.size(), 2u);
  EXPECT_EQ(queue_test::numbers(b), count_up(1, 3));
}

}  // namespace
