// The end of a runtime (sched/closing.hpp), with counters instead of workers. model/close_test explores the protocol.
#include "sched/closing.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "sched/statistics.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using weft::sched::closing;
namespace base = weft::base;

struct counted {
  [[nodiscard]] const weft::sched::worker_counters& counters() const { return all; }
  weft::sched::worker_counters all;
};

// Two workers that only count.
struct pool {
  closing c;
  counted first, second;
  [[nodiscard]] auto workers() const {
    return [this] { return std::array{&first, &second}; };
  }
  [[nodiscard]] bool all_ended() const { return c.all_ended(workers()); }
  void close() {
    c.close([this] { return all_ended(); });
  }
};

// req: BZ-5
TEST(Closing, nothing_has_been_spawned_so_all_has_ended) {
  pool p;
  EXPECT_TRUE(p.all_ended());
  p.close();
  p.close();
}

// req: BZ-5
TEST(Closing, what_one_worker_spawned_another_may_finish) {
  pool p;
  p.first.all.spawned.add(3);
  EXPECT_FALSE(p.all_ended());
  p.second.all.finished.add_published(2);
  EXPECT_FALSE(p.all_ended());
  p.first.all.finished.add_published(1);
  EXPECT_TRUE(p.all_ended());
}

// req: W-4
TEST(Closing, who_is_admitted_is_counted_until_it_ends_or_is_abandoned) {
  pool p;
  EXPECT_TRUE(p.c.accepts());
  ASSERT_TRUE(p.c.admit());
  ASSERT_TRUE(p.c.admit());
  EXPECT_EQ(p.c.spawned_from_outside(), 2u);
  EXPECT_FALSE(p.all_ended());
  p.c.forget_admitted();
  EXPECT_EQ(p.c.spawned_from_outside(), 1u);
  EXPECT_FALSE(p.all_ended());
  p.second.all.finished.add_published();
  EXPECT_TRUE(p.all_ended());
}

// req: W-4
TEST(Closing, nobody_is_admitted_once_it_is_closed_and_nobody_is_counted) {
  pool p;
  p.close();
  EXPECT_FALSE(p.c.accepts());
  EXPECT_FALSE(p.c.admit());
  EXPECT_EQ(p.c.spawned_from_outside(), 0u);
  EXPECT_TRUE(p.all_ended());
}

// req: W-4
TEST(Closing, close_waits_for_the_last_task_and_is_told_by_a_worker_that_goes_to_sleep) {
  support::watchdog guard(60s, "close");
  for (int round = 0; round < 200; ++round) {
    pool p;
    ASSERT_TRUE(p.c.admit());
    base::atomic<bool> ended{false};
    std::jthread worker([&] {
      support::until([&] { return !p.c.accepts(); });
      ended.store(true);
      p.first.all.finished.add_published();
      base::fence_seq_cst();  // as idle_set::enter_sleep()
      p.c.tell_if_all_ended(p.workers());
    });
    p.close();
    EXPECT_TRUE(ended.load());
  }
}

// req: W-4
TEST(Closing, a_spawn_that_is_abandoned_tells_the_one_who_closes) {
  support::watchdog guard(60s, "close");
  pool p;
  ASSERT_TRUE(p.c.admit());
  std::jthread spawner([&] {
    support::until([&] { return !p.c.accepts(); });
    p.c.forget_admitted();
  });
  p.close();
}

// Each that was admitted is run by somebody; those who come later are refused.
// req: W-4
TEST(Closing, every_spawn_from_outside_is_refused_or_waited_for) {
  support::watchdog guard(60s, "spawns against close");
  for (int round = 0; round < 100; ++round) {
    pool p;
    base::atomic<int> done{0};
    base::atomic<int> admitted{0};
    std::vector<std::jthread> outside;
    // Each thread counts as a worker that finishes what it admitted.
    for (counted* me : {&p.first, &p.second})
      outside.emplace_back([&, me] {
        while (p.c.admit()) {
          admitted.fetch_add(1);
          done.fetch_add(1);
          me->all.finished.add_published();
          base::fence_seq_cst();
          p.c.tell_if_all_ended(p.workers());
        }
      });
    p.close();
    const int when_closed = done.load();
    outside.clear();
    EXPECT_TRUE(p.all_ended());
    EXPECT_EQ(done.load(), when_closed);
    EXPECT_EQ(done.load(), admitted.load());
  }
}

// req: W-4
TEST(Closing, guests_are_waited_for) {
  support::watchdog guard(60s, "guests");
  closing c;
  c.wait_for_guests();
  base::atomic<bool> left{false};
  base::atomic<bool> inside{false};
  std::jthread guest([&] {
    const closing::guest me(c);
    inside.store(true);
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
    left.store(true);
  });
  support::until([&] { return inside.load(); });
  c.wait_for_guests();
  EXPECT_TRUE(left.load());
}

}  // namespace
