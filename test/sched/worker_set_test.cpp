// The set of workers (sched/worker_set.hpp), filled with workers that have no thread.
#include "sched/worker_set.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using weft::sched::idle_set;

// What the set asks of a worker, and how often it did.
struct fake_worker {
  explicit fake_worker(int number) : id(number) {}
  [[nodiscard]] bool is_dead() const { return dead; }
  void start() {
    dead = false;
    if (refuses) {
      dead = true;
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    }
    ++starts;
  }
  void request_drain() { leaving = true; }
  void wake() { ++wakes; }
  void join() { ++joins; }

  int id;
  bool dead = false;
  bool leaving = false;
  int starts = 0, wakes = 0, joins = 0;
  static inline bool refuses = false;
};

using worker_set = weft::sched::basic_worker_set<fake_worker>;

struct pool {
  explicit pool(std::size_t workers, std::size_t slots)
      : idle(workers, slots),
        set(workers, slots, idle, [](int id) { return std::make_unique<fake_worker>(id); }) {
    for (std::size_t i = 0; i < workers; ++i) set.make();
  }
  // As a worker's own thread does it.
  void die(std::size_t i) {
    set.count_out();
    set[i].dead = true;
  }
  // How many the idle set takes for half of the workers.
  std::size_t half() {
    std::size_t n = 0;
    while (idle.start_searching()) ++n;
    for (std::size_t i = 0; i < n; ++i) (void)idle.stop_searching();
    return n;
  }
  idle_set idle;
  worker_set set;
};

// req: CC-2
TEST(WorkerSet, slots_are_filled_in_order_and_numbered) {
  pool p(3, 8);
  ASSERT_EQ(p.set.created(), 3u);
  ASSERT_EQ(p.set.all().size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(p.set.all()[static_cast<std::size_t>(i)]->id, i);
    EXPECT_EQ(p.set[static_cast<std::size_t>(i)].id, i);
  }
  EXPECT_EQ(p.set.live(), 3u);
  EXPECT_FALSE(p.set.is_alone());
}

// req: CC-2
TEST(WorkerSet, one_that_is_added_is_started_and_counted) {
  pool p(1, 2);
  EXPECT_TRUE(p.set.is_alone());
  ASSERT_TRUE(p.set.has_room());
  ASSERT_TRUE(p.set.add());
  EXPECT_EQ(p.set.created(), 2u);
  EXPECT_EQ(p.set.live(), 2u);
  EXPECT_EQ(p.set[1].starts, 1);
  EXPECT_FALSE(p.set.has_room());
}

// req: CC-2
TEST(WorkerSet, the_slot_of_a_dead_one_is_used_again) {
  pool p(2, 2);
  EXPECT_FALSE(p.set.has_room());
  fake_worker* const second = p.set.all()[1];
  p.die(1);
  EXPECT_EQ(p.set.live(), 1u);
  EXPECT_EQ(p.set.created(), 2u) << "its inbox and timers stay reachable";
  ASSERT_TRUE(p.set.has_room());
  ASSERT_TRUE(p.set.add());
  EXPECT_EQ(p.set.all()[1], second);
  EXPECT_EQ(second->starts, 1);
  EXPECT_EQ(p.set.live(), 2u);
}

// req: W-9 CC-2
TEST(WorkerSet, one_that_cannot_start_is_not_counted) {
  pool p(1, 3);
  fake_worker::refuses = true;
  EXPECT_FALSE(p.set.add());
  EXPECT_EQ(p.set.live(), 1u);
  EXPECT_EQ(p.set.created(), 2u) << "its slot is filled";
  EXPECT_FALSE(p.set.add()) << "in the same slot";
  EXPECT_EQ(p.set.created(), 2u);
  fake_worker::refuses = false;
  EXPECT_TRUE(p.set.add());
  EXPECT_EQ(p.set.created(), 2u);
  EXPECT_EQ(p.set.live(), 2u);
}

// req: W-9 CC-2
TEST(WorkerSet, one_that_cannot_be_made_leaves_the_set_as_it_was) {
  bool fails = false;
  idle_set idle(1, 4);
  worker_set set(1, 4, idle, [&](int id) {
    if (fails) throw std::bad_alloc();
    return std::make_unique<fake_worker>(id);
  });
  set.make();
  fails = true;
  EXPECT_FALSE(set.add());
  EXPECT_EQ(set.created(), 1u);
  EXPECT_EQ(set.live(), 1u);
  fails = false;
  EXPECT_TRUE(set.add());
  EXPECT_EQ(set.created(), 2u);
}

// req: BZ-4
TEST(WorkerSet, the_idle_set_hears_of_every_change) {
  pool p(4, 8);
  EXPECT_EQ(p.half(), 2u);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(p.set.add());
  EXPECT_EQ(p.half(), 4u);
  for (std::size_t i = 0; i < 6; ++i) p.die(i);
  EXPECT_EQ(p.half(), 1u);
}

// req: LS-K2
TEST(WorkerSet, one_that_is_to_leave_is_told_and_woken) {
  pool p(2, 2);
  p.set.retire(1);
  EXPECT_TRUE(p.set[1].leaving);
  EXPECT_EQ(p.set[1].wakes, 1);
  EXPECT_FALSE(p.set[0].leaving);
  EXPECT_EQ(p.set[0].wakes, 0);
  EXPECT_EQ(p.set.live(), 2u) << "until its thread ends";
}

// req: CC-2
TEST(WorkerSet, only_the_threads_of_the_dead_are_joined) {
  pool p(3, 3);
  p.die(1);
  p.set.join_dead();
  EXPECT_EQ(p.set[0].joins, 0);
  EXPECT_EQ(p.set[1].joins, 1);
  p.set.wake_all();
  p.set.join_all();
  for (const fake_worker* w : p.set.all()) EXPECT_EQ(w->wakes, 1);
  EXPECT_EQ(p.set[2].joins, 1);
}

// sched.P1: a reader never meets a slot without a worker.
// req: CC-2
TEST(WorkerSet, readers_see_only_complete_workers_while_it_grows) {
  constexpr std::size_t slots = 256;
  for (int round = 0; round < 20; ++round) {
    pool p(1, slots);
    std::vector<std::jthread> readers;
    for (int i = 0; i < 2; ++i)
      readers.emplace_back([&] {
        for (std::size_t seen = 0; seen < slots;) {
          const auto all = p.set.all();
          ASSERT_GE(all.size(), seen);
          seen = all.size();
          for (std::size_t n = 0; n < seen; ++n) ASSERT_EQ(all[n]->id, static_cast<int>(n));
        }
      });
    while (p.set.has_room()) p.set.make();
  }
}

}  // namespace
