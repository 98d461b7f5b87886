// The futex driver (src/sched/futex_driver.cpp): where a worker sleeps.
// sources: sched/futex_driver.cpp
//
// A wake before the sleep makes it return at once; a wake during it ends it; what the waker did before is seen after it.
#include "sched/driver.hpp"

#include "explore/explore.hpp"

namespace base = weft::base;
using explore::join_all;
using explore::thread;

MODEL_TEST(driver_wake_ends_the_sleep_and_publishes, .preemptions = -1, .old_reads = -1) {
  auto d = weft::sched::make_futex_driver();
  base::plain<int> x{0};
  thread([&] {
    d->sleep(base::never_ns);
    model_assert(x == 1);
  });
  thread([&] {
    x = 1;
    d->wake();
  });
  join_all();
}

MODEL_TEST(driver_each_wake_after_a_sleep_counts, .preemptions = -1, .old_reads = -1) {
  auto d = weft::sched::make_futex_driver();
  base::atomic<int> round{0};
  thread([&] {
    d->sleep(base::never_ns);
    round.store(1, base::relaxed);
    d->sleep(base::never_ns);
  });
  thread([&] {
    d->wake();
    while (round.load(base::relaxed) == 0) base::cpu_relax();
    d->wake();
  });
  join_all();
}

MODEL_TEST(driver_two_wakers, .preemptions = -1, .old_reads = -1) {
  auto d = weft::sched::make_futex_driver();
  thread([&] { d->sleep(base::never_ns); });
  for (int i = 0; i < 2; ++i) thread([&] { d->wake(); });
  join_all();
}

// A deadline that has passed: the sleep ends by itself, with or without the wake, which then is a token for the next.
MODEL_TEST(driver_deadline_against_wake, .preemptions = -1, .old_reads = -1) {
  auto d = weft::sched::make_futex_driver();
  base::plain<int> x{0};
  thread([&] {
    d->sleep(0);
    d->sleep(0);
  });
  thread([&] {
    x = 1;
    d->wake();
  });
  join_all();
}
