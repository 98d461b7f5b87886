// Whether looking around before a sleep pays, by the gaps before.
#include "sched/idle_gaps.hpp"

#include <gtest/gtest.h>

namespace {

using weft::sched::idle_gaps;

constexpr weft::base::time_ns soon = idle_gaps::look_around;
constexpr weft::base::time_ns much_later = 10'000'000;

idle_gaps after_long_ones() {
  idle_gaps gaps;
  while (gaps.are_short()) gaps.slept(much_later);
  return gaps;
}

// req: BZ-5
TEST(IdleGaps, AreTakenForShortAtFirst) { EXPECT_TRUE(idle_gaps().are_short()); }

// req: BZ-5
TEST(IdleGaps, AreLongAfterSomeLongOnes) {
  idle_gaps gaps;
  for (int i = 0; i < 10; ++i) gaps.slept(much_later);
  EXPECT_FALSE(gaps.are_short());
}

// req: BZ-5
TEST(IdleGaps, OneLongOneAmongShortOnesDoesNotCount) {
  idle_gaps gaps;
  for (int i = 0; i < 100; ++i) {
    gaps.slept(much_later);
    gaps.found();
    EXPECT_TRUE(gaps.are_short());
  }
}

// req: BZ-5
TEST(IdleGaps, AreLongIfItLookedAroundInVain) {
  idle_gaps gaps;
  for (int i = 0; i < 10 && gaps.are_short(); ++i) gaps.slept(1);
  EXPECT_FALSE(gaps.are_short()) << "however short the sleeps were: the gaps were longer than it looked around";
}

// It does not look around any more, so only the length of its sleeps tells.
// req: BZ-5
TEST(IdleGaps, AreShortAgainAfterSomeShortSleeps) {
  idle_gaps gaps = after_long_ones();
  for (int i = 0; i < 10 && !gaps.are_short(); ++i) gaps.slept(soon);
  EXPECT_TRUE(gaps.are_short());
}

// req: BZ-5
TEST(IdleGaps, StayLongWhileTheyAre) {
  idle_gaps gaps = after_long_ones();
  for (int i = 0; i < 100; ++i) {
    gaps.slept(much_later);
    gaps.slept(soon);
    EXPECT_FALSE(gaps.are_short());
  }
}

}  // namespace
