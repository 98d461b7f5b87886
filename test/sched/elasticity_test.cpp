// When the pool grows (sched/elasticity.hpp), decision by decision.
#include "sched/elasticity.hpp"

#include <gtest/gtest.h>

namespace {

using weft::sched::elasticity;
using weft::sched::elasticity_counters;
using weft::sched::pool_sample;

// A pool of `workers`, all stuck on a processor, with work waiting.
pool_sample stuck(std::size_t workers) {
  return {.workers = workers, .idle = 0, .stuck = workers, .blocked = 0, .work_waits = true, .pressure = 5};
}

// req: LS-E1 CC-2
TEST(Elasticity, it_grows_by_half_up_to_twice) {
  elasticity e(8, 512);
  EXPECT_EQ(e.decide(stuck(8)), 4u);
  EXPECT_EQ(e.decide(stuck(12)), 4u) << "to twice the pool's size, not beyond";
  EXPECT_EQ(e.decide(stuck(16)), 0u);
  EXPECT_EQ(e.counters().passes.get(), 2u);
  EXPECT_EQ(e.counters().at_limit.get(), 1u);
}

// req: CC-2
TEST(Elasticity, one_worker_grows_to_two) {
  elasticity e(1, 512);
  EXPECT_EQ(e.decide(stuck(1)), 1u);
  EXPECT_EQ(e.decide(stuck(2)), 0u);
}

// req: LS-E1 CC-16
TEST(Elasticity, blocked_workers_are_replaced_beyond_twice_up_to_the_limit) {
  elasticity e(4, 50);
  pool_sample s = stuck(8);
  s.stuck = 0;
  s.blocked = 8;
  EXPECT_EQ(e.decide(s), 4u) << "as many as the pool should have";
  s.workers = s.blocked = 48;
  EXPECT_EQ(e.decide(s), 2u);
  s.workers = s.blocked = 50;
  EXPECT_EQ(e.decide(s), 0u);
  EXPECT_EQ(e.counters().at_limit.get(), 1u);
}

// req: LS-E1
TEST(Elasticity, every_refusal_has_its_reason) {
  elasticity e(4, 512);
  pool_sample s = stuck(4);
  s.work_waits = false;
  EXPECT_EQ(e.decide(s), 0u);
  EXPECT_EQ(e.counters().no_work.get(), 1u);
  s = stuck(4);
  s.pressure = 0;
  EXPECT_EQ(e.decide(s), 0u);
  EXPECT_EQ(e.counters().nonpositive.get(), 1u);
  s = stuck(4);
  s.idle = 1;
  EXPECT_EQ(e.decide(s), 0u);
  EXPECT_EQ(e.counters().idle_capacity.get(), 1u);
  s = stuck(4);
  s.stuck = 0;
  EXPECT_EQ(e.decide(s), 0u);
  EXPECT_EQ(e.counters().not_stuck.get(), 1u);
  EXPECT_EQ(e.counters().samples.get(), 4u);
  EXPECT_EQ(e.counters().passes.get(), 0u);
}

// req: LS-E1
TEST(Elasticity, the_pressure_is_signed_and_its_longest_negative_streak_is_kept) {
  elasticity e(2, 512);
  pool_sample s = stuck(2);
  for (const int pressure : {-1, -2, 3, -1, -1, -1, 0, -4}) {
    s.pressure = pressure;
    (void)e.decide(s);
  }
  EXPECT_EQ(e.counters().samples.get(), 8u);
  EXPECT_EQ(e.counters().positive.get(), 1u);
  EXPECT_EQ(e.counters().negative.get(), 6u);
  EXPECT_EQ(e.counters().longest_negative_streak.get(), 3u);
}

// req: CC-2
TEST(Elasticity, one_too_many_is_one_that_uses_a_processor) {
  const elasticity e(4, 512);
  EXPECT_FALSE(e.has_too_many(4, 0));
  EXPECT_TRUE(e.has_too_many(5, 0));
  EXPECT_FALSE(e.has_too_many(5, 1));
}

}  // namespace
