// The word of the suspension gate: a count and flags that do not disturb each other.
#include <gtest/gtest.h>

#include "sched/gate.hpp"

namespace {

using weft::sched::gate;

// req: LS-K2
TEST(Gate, is_open_until_something_is_to_be_done) {
  gate g;
  EXPECT_TRUE(g.is_open());
  g.count_spawned();
  EXPECT_FALSE(g.is_open());
  EXPECT_EQ(g.spawned(), 1u);
  g.forget_spawned();
  EXPECT_TRUE(g.is_open());
  g.request_drain();
  EXPECT_FALSE(g.is_open());
  EXPECT_TRUE(g.is_draining());
  g.stop_draining();
  EXPECT_TRUE(g.is_open());
}

TEST(Gate, forgets_what_was_spawned_and_nothing_else) {
  gate g;
  g.log_parks();
  g.request_drain();
  g.count_spawned(7);
  EXPECT_EQ(g.spawned(), 7u);
  g.forget_spawned();
  EXPECT_EQ(g.spawned(), 0u);
  EXPECT_TRUE(g.is_draining());
  EXPECT_TRUE(g.logs_parks());
}

// A task that never suspends may spawn more than the count can say.
TEST(Gate, a_count_that_wraps_around_asks_for_no_drain) {
  gate g;
  constexpr std::uint32_t most = UINT32_MAX / 4;
  for (const std::uint32_t n : {most - 1, 1u, 1u, most, most}) {
    g.count_spawned(n);
    EXPECT_FALSE(g.is_draining());
    EXPECT_FALSE(g.logs_parks());
  }
}

}  // namespace
