// How often the monitor looks: rarely while all workers advance, and often again as soon as one does not.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/monitor_state.hpp"
#include "support/parked.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using weft::base::atomic;

// Tasks that yield to each other on every worker until the end of this.
class busy_workers {
 public:
  busy_workers(support::watched_runtime& rt, int tasks) {
    for (int i = 0; i < tasks; ++i)
      all_.push_back(rt->spawn([this] {
        while (!over_.load()) weft::yield();
      }));
  }
  ~busy_workers() {
    over_.store(true);
    for (auto& t : all_) t.wait();
  }
  busy_workers(const busy_workers&) = delete;
  busy_workers& operator=(const busy_workers&) = delete;

 private:
  atomic<bool> over_{false};
  std::vector<weft::join_handle<void>> all_;
};

void until_the_monitor_dozes(support::watched_runtime& rt) {
  support::until([&] { return support::monitor_dozes(rt.core()); });
}

// Whether it was seen to doze during the next looks at workers.
bool dozes_in_the_next_looks(support::watched_runtime& rt, std::uint64_t looks) {
  bool dozed = false;
  const std::uint64_t enough = rt->elasticity().samples + looks;
  support::hold_worker_until([&] {
    dozed = dozed || support::monitor_dozes(rt.core());
    return rt->elasticity().samples >= enough;
  });
  return dozed;
}

// One worker is held by a task until another task has run that waits in the slot behind it. The other worker sleeps meanwhile.
void get_stuck_before_another(support::watched_runtime& rt) {
  rt->run([&] {
    weft::event go;
    atomic<bool> ran{false};
    auto behind = weft::spawn([&] {
      go.wait();
      ran.store(true);
    });
    support::until([&] { return support::parked_tasks(rt.core()) == 1; });
    support::hold_worker_until([&] { return rt.core().idle().sleeping() == 1; });
    go.set();
    support::hold_worker_until([&] { return ran.load(); });
    behind.join();
  });
}

// A pool of a fixed size: one that grows while the machine is busy has more workers than processors, and then some worker always stands
// still because the system has put it aside.
// req: BZ-5
TEST(Monitor, dozes_beside_workers_that_advance) {
  support::watchdog guard(60s, "a monitor beside short tasks");
  support::watched_runtime rt(2);
  const busy_workers all(rt, 8);
  until_the_monitor_dozes(rt);
}

// The shortest naps would be 800 in this time, the longest 40.
// req: BZ-5
TEST(Monitor, sleeps_between_its_looks) {
  support::watchdog guard(60s, "a monitor beside short tasks");
  support::watched_runtime rt({.workers = 2});
  const busy_workers all(rt, 8);
  const std::uint64_t before = rt->elasticity().samples;
  std::this_thread::sleep_for(200ms);
  EXPECT_LE(rt->elasticity().samples - before, 2'000u);
}

// req: BZ-5
TEST(Monitor, dozes_while_all_sleep) {
  support::watchdog guard(60s, "a monitor beside sleepers");
  support::watched_runtime rt({.workers = 2});
  rt->run([] {});
  until_the_monitor_dozes(rt);
}

// req: CC-16
TEST(Monitor, does_not_doze_while_a_worker_stands_still) {
  if (weft::sched::force_migration) GTEST_SKIP() << "a pool that cannot grow does not count looks";
  support::watchdog guard(60s, "a monitor beside a long task");
  support::watched_runtime rt({.workers = 2});
  rt->run([&] {
    support::hold_worker_until([] { return weft::sched::this_worker()->is_stuck(); });
    EXPECT_FALSE(dozes_in_the_next_looks(rt, 20));
  });
}

// req: CC-16
TEST(Monitor, is_alert_after_a_worker_was_stuck) {
  if (weft::sched::force_migration) GTEST_SKIP() << "there is no slot in this build";
  support::watchdog guard(60s, "a monitor after a stuck worker");
  support::watched_runtime rt({.workers = 2});
  get_stuck_before_another(rt);
  const busy_workers all(rt, 8);
  EXPECT_FALSE(dozes_in_the_next_looks(rt, 20));
}

// req: CC-16
TEST(Monitor, notices_a_stuck_worker_though_it_dozed) {
  if (weft::sched::force_migration) GTEST_SKIP() << "there is no slot in this build";
  support::watchdog guard(60s, "a worker that gets stuck while the monitor dozes");
  support::watched_runtime rt({.workers = 2});
  {
    const busy_workers all(rt, 8);
    until_the_monitor_dozes(rt);
  }
  get_stuck_before_another(rt);
}

// All workers have said that they may block, so that nobody is left to notice the next task.
// req: CC-16
TEST(Monitor, looks_after_work_from_outside_while_all_may_block) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "a task for a pool that is blocked");
  for (int round = 0; round < 20; ++round) {
    support::watched_runtime rt({.workers = 2});
    support::latch over(1);
    support::latch blocked(2);
    std::vector<weft::join_handle<void>> both;
    until_the_monitor_dozes(rt);
    for (int i = 0; i < 2; ++i)
      both.push_back(rt->spawn([&] {
        weft::blocking([&] {
          blocked.count_down();
          over.hold();
        });
      }));
    blocked.wait();
    rt->spawn([] {}).join();
    over.count_down();
    for (auto& t : both) t.join();
  }
}

}  // namespace
