#include "sched/tick.hpp"

#include <gtest/gtest.h>

namespace {

using weft::base::time_ns;
using weft::sched::tick;

// Runs `intervals` whole intervals of tasks that take `task_ns` each; returns the dispatches of the last.
int run(tick& t, int intervals, time_ns task_ns) {
  static time_ns now = 1'000;
  int dispatched = 0;
  for (int i = 0; i < intervals; ++i) {
    dispatched = 0;
    do {
      now += task_ns;
      ++dispatched;
    } while (!t.passes());
    t.restart(now);
  }
  return dispatched;
}

// req: BZ-3
TEST(Tick, short_tasks_make_the_interval_long_but_not_longer_than_two_hundred_fifty_five) {
  tick t;
  EXPECT_EQ(run(t, 200, 10), 255);
  EXPECT_EQ(t.interval(), 255);
}

// req: BZ-3
TEST(Tick, long_tasks_make_the_interval_short_but_not_shorter_than_eight) {
  tick t;
  EXPECT_EQ(run(t, 200, 50'000'000), 8);
  EXPECT_EQ(t.interval(), 8);
}

// req: BZ-3
TEST(Tick, in_between_a_look_up_comes_about_every_millisecond) {
  for (const time_ns task_ns : {5'000, 10'000, 25'000, 100'000}) {
    tick t;
    const int dispatches = run(t, 200, task_ns);
    EXPECT_NEAR(static_cast<double>(dispatches * task_ns), 1e6, 0.15e6) << task_ns << " ns a task";
  }
}

// req: BZ-3
TEST(Tick, an_earlier_look_does_not_change_what_a_task_is_taken_to_cost) {
  tick t;
  run(t, 200, 10'000);
  const int before = t.interval();
  for (int i = 0; i < 200; ++i) {
    t.look_after(10);
    EXPECT_EQ(run(t, 1, 10'000), 10);
  }
  EXPECT_NEAR(t.interval(), before, 2);
  t.look_after(1'000'000);
  EXPECT_NEAR(run(t, 1, 10'000), before, 2) << "only earlier, never later";
}

// req: BZ-3
TEST(Tick, one_slow_interval_moves_the_average_only_by_a_tenth) {
  tick t;
  run(t, 200, 10'000);
  const int before = t.interval();
  run(t, 1, 100'000);
  EXPECT_LT(t.interval(), before);
  EXPECT_GT(t.interval(), before / 3) << "an average over many intervals, not the last one";
  run(t, 200, 100'000);
  EXPECT_EQ(t.interval(), 10);
}

// req: BZ-3
TEST(Tick, time_spent_asleep_does_not_count) {
  tick t;
  run(t, 200, 10'000);
  const int before = t.interval();
  t.forget();
  t.restart(time_ns{1} << 50);
  EXPECT_EQ(t.interval(), before);
}

}  // namespace
