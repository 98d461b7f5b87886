// What the explorer leaves out, and what stands still: steps of an abstract lock joined with their neighbours (engine::glue_next),
// threads that begin when all is quiet, the virtual clock.
// abstract lock
#include "base/clock.hpp"
#include "base/lock.hpp"
#include "explore/explore.hpp"

namespace base = weft::base;
using explore::join_all;
using explore::outcome;
using explore::thread;

// The outcomes are the same with the steps apart.
MODEL_TEST(glued_steps_of_a_lock, .preemptions = -1, .old_reads = -1, .once_more_without_pruning = true) {
  base::lock lock;
  base::atomic<int> a{0}, b{0};
  int r[4] = {};
  thread([&] {
    lock.acquire();
    a.store(1, base::relaxed);
    lock.release();
    r[0] = b.load(base::relaxed);
  });
  thread([&] {
    lock.acquire();
    b.store(1, base::relaxed);
    r[1] = a.load(base::relaxed);
    lock.release();
  });
  thread([&] {
    r[2] = a.load(base::relaxed);
    r[3] = b.load(base::relaxed);
  });
  join_all();
  outcome("%d%d%d%d", r[0], r[1], r[2], r[3]);
}

MODEL_TEST(glued_steps_of_two_locks, .preemptions = -1, .old_reads = -1, .once_more_without_pruning = true) {
  base::lock first, second;
  base::atomic<int> a{0};
  int r[2] = {};
  thread([&] {
    first.acquire();
    second.acquire();
    a.store(1, base::relaxed);
    first.release();
    a.store(2, base::relaxed);
    second.release();
  });
  thread([&] {
    first.acquire();
    r[0] = a.load(base::relaxed);
    first.release();
    second.acquire();
    r[1] = a.load(base::relaxed);
    second.release();
  });
  join_all();
  outcome("%d%d", r[0], r[1]);
}

MODEL_TEST(glued_locks_still_deadlock, .fails = "deadlock") {
  base::lock first, second;
  thread([&] {
    base::lock_guard one(first);
    base::lock_guard two(second);
  });
  thread([&] {
    base::lock_guard one(second);
    base::lock_guard two(first);
  });
  join_all();
}

MODEL_TEST(quiet_comes_after_all_that_could_run, .preemptions = -1) {
  base::atomic<std::uint32_t> word{0};
  int seen = 0;
  thread([&] {
    seen = 1;
    while (word.load(base::relaxed) == 0) base::futex_wait(word, 0);
  });
  thread([&] {
    explore::when_quiet(1);
    model_assert(seen == 2);
    word.store(1, base::relaxed);
    base::futex_wake(&word, 1);
  });
  thread([&] {
    explore::when_quiet(0);
    model_assert(seen == 1);
    seen = 2;
  });
  join_all();
}

MODEL_TEST(clock_passes_with_a_deadline, .preemptions = -1) {
  base::atomic<std::uint32_t> word{0};
  const base::time_ns begin = base::now();
  thread([&] {
    base::futex_wait(word, 0, begin + 1000);
    model_assert(base::now() >= begin + 1000);
  });
  thread([&] {
    const base::time_ns first = base::now();
    model_assert(base::now() >= first);
  });
  join_all();
  model_assert(base::now() == begin + 1000);
}
