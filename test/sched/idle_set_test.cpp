#include "sched/idle_set.hpp"

#include <gtest/gtest.h>

#include <set>

namespace {

using weft::sched::idle_set;

// req: BZ-4
TEST(IdleSet, nobody_is_woken_when_nobody_sleeps) {
  idle_set s(4);
  EXPECT_EQ(s.wake_one(), idle_set::nobody);
  EXPECT_EQ(s.searching(), 0u);
}

// req: BZ-4
TEST(IdleSet, one_sleeper_is_woken_at_a_time_and_counts_as_searching) {
  idle_set s(4);
  for (int w = 0; w < 4; ++w) s.enter_sleep(w, false);
  EXPECT_EQ(s.sleeping(), 4u);
  EXPECT_NE(s.wake_one(), idle_set::nobody);
  EXPECT_EQ(s.sleeping(), 3u);
  EXPECT_EQ(s.searching(), 1u);
  EXPECT_EQ(s.wake_one(), idle_set::nobody) << "the one that searches will see to it";
}

// req: BZ-4
TEST(IdleSet, the_preferred_one_is_woken_if_it_sleeps) {
  idle_set s(130);
  for (int w = 0; w < 130; ++w) s.enter_sleep(w, false);
  EXPECT_EQ(s.wake_one(129), 129);
  EXPECT_TRUE(s.stop_searching());
  const int other = s.wake_one(129);
  EXPECT_NE(other, idle_set::nobody);
  EXPECT_NE(other, 129) << "it does not sleep any more";
}

// req: BZ-4
TEST(IdleSet, the_last_searcher_is_told_to_hand_on) {
  idle_set s(8);
  EXPECT_TRUE(s.start_searching());
  EXPECT_TRUE(s.start_searching());
  EXPECT_FALSE(s.stop_searching());
  EXPECT_TRUE(s.stop_searching());
}

// req: BZ-4
TEST(IdleSet, at_most_half_of_the_workers_search_and_one_always_may) {
  for (const std::size_t workers : {1u, 2u, 3u, 4u, 8u, 64u, 65u, 130u}) {
    idle_set s(workers);
    std::size_t searching = 0;
    while (searching <= workers && s.start_searching()) ++searching;
    EXPECT_EQ(searching, (workers + 1) / 2) << workers << " workers";
    EXPECT_EQ(s.searching(), searching);
  }
}

// req: BZ-4
TEST(IdleSet, every_one_of_a_hundred_thirty_sleepers_is_found) {
  idle_set s(130);
  for (int w = 0; w < 130; ++w) s.enter_sleep(w, false);
  std::set<int> woken;
  for (int i = 0; i < 130; ++i) {
    woken.insert(s.wake_one());
    EXPECT_TRUE(s.stop_searching());
  }
  EXPECT_EQ(woken.size(), 130u);
  EXPECT_EQ(*woken.begin(), 0);
  EXPECT_EQ(*woken.rbegin(), 129);
  EXPECT_EQ(s.wake_one(), idle_set::nobody);
  EXPECT_EQ(s.sleeping(), 0u);
}

// req: BZ-5
TEST(IdleSet, a_sleeper_that_finds_work_takes_itself_out_unless_somebody_wakes_it_already) {
  idle_set s(2);
  s.enter_sleep(0, false);
  EXPECT_TRUE(s.leave_sleep(0));
  EXPECT_EQ(s.sleeping(), 0u);
  s.enter_sleep(0, false);
  EXPECT_EQ(s.wake_one(), 0);
  EXPECT_FALSE(s.leave_sleep(0)) << "a token is on its way, and it is counted as searching";
  EXPECT_EQ(s.searching(), 1u);
}

// req: BZ-4
TEST(IdleSet, a_searcher_that_goes_to_sleep_searches_no_more) {
  idle_set s(2);
  EXPECT_TRUE(s.start_searching());
  s.enter_sleep(1, true);
  EXPECT_EQ(s.searching(), 0u);
  EXPECT_EQ(s.wake_one(), 1);
}

// req: BZ-4
TEST(IdleSet, work_is_left_to_a_searcher_as_long_as_there_is_one) {
  idle_set s(2);
  s.enter_sleep(0, false);
  s.enter_sleep(1, false);
  EXPECT_FALSE(s.left_to_searcher()) << "all asleep: whoever sees work must get up";
  EXPECT_EQ(s.wake_one(1), 1);
  EXPECT_TRUE(s.left_to_searcher()) << "counted from the moment it was chosen, not when it gets a processor";
  EXPECT_TRUE(s.stop_searching()) << "the last one looks again";
  EXPECT_FALSE(s.left_to_searcher());
}

}  // namespace
