// Whether looking around before a sleep pays, by the gaps before.
#include "sched/idle_gaps.hpp"

#include <gtest/gtest.h>

namespace {

using weft::sched::idle_gaps;

constexpr auto threads = idle_gaps::source::threads;
constexpr auto events = idle_gaps::source::events;
constexpr weft::base::time_ns soon = idle_gaps::look_around(threads);
constexpr weft::base::time_ns much_later = 10'000'000;

idle_gaps after_long_ones() {
  idle_gaps gaps;
  while (gaps.are_short()) gaps.slept(much_later, threads);
  return gaps;
}

// req: BZ-5
TEST(IdleGaps, are_taken_for_short_at_first) { EXPECT_TRUE(idle_gaps().are_short()); }

// req: BZ-5
TEST(IdleGaps, are_long_after_some_long_ones) {
  idle_gaps gaps;
  for (int i = 0; i < 10; ++i) gaps.slept(much_later, threads);
  EXPECT_FALSE(gaps.are_short());
}

// req: BZ-5
TEST(IdleGaps, one_long_one_among_short_ones_does_not_count) {
  idle_gaps gaps;
  for (int i = 0; i < 100; ++i) {
    gaps.slept(much_later, threads);
    gaps.found();
    EXPECT_TRUE(gaps.are_short());
  }
}

// req: BZ-5
TEST(IdleGaps, are_long_if_it_looked_around_in_vain) {
  idle_gaps gaps;
  for (int i = 0; i < 10 && gaps.are_short(); ++i) gaps.slept(1, threads);
  EXPECT_FALSE(gaps.are_short()) << "however short the sleeps were: the gaps were longer than it looked around";
}

// It does not look around any more, so only the length of its sleeps tells.
// req: BZ-5
TEST(IdleGaps, are_short_again_after_some_short_sleeps) {
  idle_gaps gaps = after_long_ones();
  for (int i = 0; i < 10 && !gaps.are_short(); ++i) gaps.slept(soon, threads);
  EXPECT_TRUE(gaps.are_short());
}

// req: BZ-5
TEST(IdleGaps, stay_long_while_they_are) {
  idle_gaps gaps = after_long_ones();
  for (int i = 0; i < 100; ++i) {
    gaps.slept(much_later, threads);
    gaps.slept(soon, threads);
    EXPECT_FALSE(gaps.are_short());
  }
}

// A sleep in the driver ends soon after the event, so a short one says less.
// req: BZ-5
TEST(IdleGaps, are_longer_sooner_where_events_can_come) {
  idle_gaps gaps = after_long_ones();
  for (int i = 0; i < 10; ++i) gaps.slept(soon, events);
  EXPECT_FALSE(gaps.are_short());
  for (int i = 0; i < 10; ++i) gaps.slept(idle_gaps::look_around(events), events);
  EXPECT_TRUE(gaps.are_short());
}

}  // namespace
