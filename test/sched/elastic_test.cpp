// A pool whose workers get stuck: others take over, the pool grows, and shrinks again.
#include <gtest/gtest.h>

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/held_monitor.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using weft::base::atomic;

// A heart: 20 beats, 100 ms apart.
void beat() {
  auto next = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) weft::sleep_until(next += 100ms);
}

void spin_until(const atomic<bool>& over) {
  while (!over.load(weft::base::relaxed)) weft::base::cpu_relax();
}

// Tasks that only compute, until this ends. All of them run when it begins.
class hogs {
 public:
  hogs(weft::runtime& rt, int n) {
    for (int i = 0; i < n; ++i)
      all_.push_back(rt.spawn([this] {
        started_.fetch_add(1);
        spin_until(over_);
      }));
    support::until([&] { return started_.load() == n; });
  }
  ~hogs() {
    over_.store(true);
    for (auto& t : all_) t.wait();
  }
  hogs(const hogs&) = delete;
  hogs& operator=(const hogs&) = delete;

 private:
  atomic<bool> over_{false};
  atomic<int> started_{0};
  std::vector<weft::join_handle<void>> all_;
};

// Tasks in raw sleeps of 2 s, one after the other: none of their workers comes back before this ends. All sleep when it begins.
class raw_sleepers {
 public:
  explicit raw_sleepers(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i)
      all_.push_back(weft::spawn([this] {
        asleep_.fetch_add(1);
        while (!over_.load()) std::this_thread::sleep_for(2s);
      }));
    support::until([&] { return asleep_.load() == n; });
  }
  ~raw_sleepers() {
    over_.store(true);
    for (auto& t : all_) t.wait();
  }
  raw_sleepers(const raw_sleepers&) = delete;
  raw_sleepers& operator=(const raw_sleepers&) = delete;

 private:
  atomic<bool> over_{false};
  atomic<std::size_t> asleep_{0};
  std::vector<weft::join_handle<void>> all_;
};

// req: CC-16 CC-1
TEST(Elastic, a_heartbeat_goes_on_while_every_worker_sleeps_in_the_kernel) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "W tasks in raw sleeps, and a heartbeat");
  for (const std::size_t workers : {1u, 2u, 4u}) {
    support::watched_runtime rt({.workers = workers});
    rt->run([&] {
      auto heart = weft::spawn(beat);
      const raw_sleepers all(workers);
      heart.join();
    });
    EXPECT_GT(rt->elasticity().grown, 0u);
  }
}

// req: CC-16 CC-2
TEST(Elastic, a_hundred_raw_sleeps_on_sixteen_workers_do_not_stop_a_heartbeat) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "100 raw sleeps of 2 s on 16 workers");
  support::watched_runtime rt({.workers = 16});
  rt->run([&] {
    auto heart = weft::spawn(beat);
    const raw_sleepers all(100);
    heart.join();
  });
}

// req: CC-2 CC-1
TEST(Elastic, seven_hogs_on_four_workers_do_not_stop_a_heartbeat) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "7 tasks that only compute, on 4 workers");
  support::watched_runtime rt({.workers = 4});
  rt->run([&] {
    auto heart = weft::spawn(beat);
    const hogs busy(rt, 7);
    heart.join();
  });
  EXPECT_LE(rt->elasticity().workers, 8u);
}

// req: CC-16
TEST(Elastic, a_pair_over_a_channel_goes_on_while_both_workers_are_held) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "a channel pair beside two workers that spin");
  support::watched_runtime rt({.workers = 2});
  rt->run([&] {
    const hogs busy(rt, 2);
    auto [w, r] = weft::make_channel<int>(0);
    auto sends = weft::spawn([out = std::move(w)]() mutable {
      for (int i = 0; i < 1000; ++i) (void)out.send(i);
    });
    int got = 0;
    while (r.recv()) ++got;
    EXPECT_EQ(got, 1000) << "the hogs end only now";
  });
}

// What lies in the slot, the ring, among the fresh and in the inbox of the only worker, and in its timers.
// req: CC-16
TEST(Elastic, everything_behind_a_stuck_worker_is_taken_over) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "every queue of a worker that is stuck");
  support::watched_runtime rt({.workers = 1});
  atomic<int> done{0};
  atomic<bool> parked_goes{false};
  auto parked = rt->spawn([&] {
    while (!parked_goes.load()) weft::park_if(parked_goes, false);
    done.fetch_add(1);
  });
  auto sleeps = rt->spawn([&] {
    weft::sleep_for(20ms);
    done.fetch_add(1);
  });
  atomic<bool> held{false};
  auto stuck = rt->spawn([&] {
    auto yields = weft::spawn([&] { done.fetch_add(1); });
    weft::yield();
    auto fresh = weft::spawn([&] { done.fetch_add(1); });
    parked_goes.store(true);
    weft::unpark(parked.ref());
    held.store(true);
    support::hold_worker_until([&] { return done.load() == 5; });
  });
  support::until([&] { return held.load(); });
  auto injected = rt->spawn([&] { done.fetch_add(1); });
  stuck.join();
  EXPECT_EQ(done.load(), 5);
}

// req: CC-2 LS-K2
TEST(Elastic, extra_workers_leave_and_nothing_is_lost_in_a_thousand_cycles) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(300s, "a pool that grows and shrinks");
  support::watched_runtime rt({.workers = 2, .keep_alive = 0ms});
  const std::uint64_t cycles = support::under_tsan ? 100 : 1000;
  std::uint64_t ran = 0;
  for (std::uint64_t i = 0; i < cycles; ++i) {
    {
      // Both are stuck, so that it grows; it shrinks when they are over and all is quiet.
      const hogs busy(rt, 2);
      rt->spawn([] {}).join();
    }
    rt->run([&] {
      std::vector<weft::join_handle<int>> some;
      for (int k = 0; k < 20; ++k) some.push_back(weft::spawn([] { return 1; }));
      for (auto& t : some) ran += static_cast<std::uint64_t>(t.join());
    });
    support::until([&] { return rt.core().pool().live() == 2; });
  }
  EXPECT_EQ(ran, cycles * 20);
  EXPECT_GE(rt->elasticity().grown, cycles);
  EXPECT_EQ(rt->elasticity().grown, rt->elasticity().retired);
  // Counted when a task has ended, a moment after its joiner may go on.
  support::until([&] { return rt->statistics().spawned == rt->statistics().finished; });
}

// One that was told to leave and has not left yet does not count: the last worker stays, however slow the others are to go.
// req: CC-2 LS-K2
TEST(Elastic, the_last_worker_stays) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(100s, "pools of one that grow and shrink beside busy threads");
  atomic<bool> over{false};
  std::vector<std::thread> burners;
  for (int i = 0; i < 4; ++i) burners.emplace_back([&] { spin_until(over); });
  support::watched_runtime rt({.workers = 1});
  for (int i = 0; i < 10; ++i) {
    {
      const hogs busy(rt, 1);
      rt->spawn([] {}).join();
    }
    support::until([&] { return rt->elasticity().grown == rt->elasticity().retired; });
    rt->spawn([] {}).join();
  }
  support::until([&] { return rt.core().pool().live() == 1; });
  over.store(true);
  for (std::thread& t : burners) t.join();
}

// req: CC-2
TEST(Elastic, it_never_grows_when_told_so) {
  support::watchdog guard(60s, "a pool that may not grow");
  support::watched_runtime rt({.workers = 2, .elastic = false});
  atomic<bool> over{false};
  atomic<int> held{0};
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < 2; ++i)
    all.push_back(rt->spawn([&] {
      held.fetch_add(1);
      spin_until(over);
    }));
  support::until([&] { return held.load() == 2; });
  atomic<bool> ran{false};
  auto waits = rt->spawn([&] { ran.store(true); });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(ran.load());
  EXPECT_EQ(rt.core().pool().live(), 2u);
  over.store(true);
  waits.join();
}

// req: CC-2
TEST(Elastic, the_hard_limit_holds_and_is_said_once) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "blocked workers up to the limit");
  testing::internal::CaptureStderr();
  {
    support::watched_runtime rt({.workers = 1, .max_workers = 3});
    atomic<bool> over{false};
    atomic<int> blocked{0};
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 6; ++i)
      all.push_back(rt->spawn([&] {
        blocked.fetch_add(1);
        while (!over.load()) std::this_thread::sleep_for(1ms);
      }));
    support::until([&] { return blocked.load() == 3; });
    support::until([&] { return rt->elasticity().at_limit > 10; });
    EXPECT_EQ(blocked.load(), 3);
    EXPECT_EQ(rt->elasticity().workers, 3u);
    over.store(true);
    for (auto& t : all) t.join();
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_NE(said.find("3 workers"), std::string::npos) << said;
  EXPECT_NE(said.find("runtime_options::max_workers"), std::string::npos) << said;
}

// The pool grows under the eyes of somebody who looks at the newest worker all the time.
// req: CC-2
TEST(Elastic, a_worker_that_is_counted_is_there) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(100s, "a pool that is watched while it grows");
  constexpr std::size_t most = 400;
  for (std::size_t round = 0; round < support::scaled(20); ++round) {
    support::watched_runtime rt({.workers = 1, .max_workers = most});
    const support::held_monitor aside(rt.core());  // only one may change the pool, and that is this test
    atomic<bool> over{false};
    std::size_t missing = 0;
    std::thread reader([&] {
      while (!over.load(weft::base::relaxed))
        if (rt.core().workers().back() == nullptr) ++missing;
    });
    while (rt.core().workers().size() < most && rt.core().pool().add()) {}
    over.store(true);
    reader.join();
    EXPECT_EQ(rt.core().workers().size(), most);
    EXPECT_EQ(missing, 0u);
  }
}

// req: LS-E1
TEST(Elastic, the_reasons_add_up) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "a pool that explains itself");
  support::watched_runtime rt({.workers = 2});
  {
    const hogs busy(rt, 3);
    rt->spawn([] {}).join();
  }
  support::until([&] { return rt.core().pool().live() == 2; });
  const weft::elastic_statistics s = rt->elasticity();
  EXPECT_GT(s.gate_passes, 0u);
  EXPECT_EQ(s.samples, s.no_work + s.nonpositive_pressure + s.idle_capacity + s.not_stuck + s.at_limit + s.gate_passes);
}

// A worker is stuck in a task, but nothing waits for it.
// req: LS-E1
TEST(Elastic, beside_a_long_task_that_nobody_waits_behind_the_reason_is_that_there_is_no_work) {
  if (weft::sched::force_migration) GTEST_SKIP() << "a pool that cannot grow does not count looks";
  support::watchdog guard(60s, "a pool beside one long task");
  support::watched_runtime rt({.workers = 2});
  rt->run([&] {
    const weft::elastic_statistics before = rt->elasticity();
    support::hold_worker_until([&] { return rt->elasticity().samples >= before.samples + 20; });
    EXPECT_GT(rt->elasticity().no_work, before.no_work);
  });
}

// req: LS-E1
TEST(Elastic, verbose_tells_of_every_decision) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "what a growing pool says");
  const support::environment verbose("WEFT_VERBOSE", "1");
  testing::internal::CaptureStderr();
  {
    support::watched_runtime rt({.workers = 1});
    {
      const hogs busy(rt, 1);
      rt->spawn([] {}).join();
    }
    support::until([&] { return rt.core().pool().live() == 1; });
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("1 of 1 workers are stuck"), std::string::npos) << said;
  EXPECT_NE(said.find("leaves"), std::string::npos) << said;
}

// req: CC-2
TEST(Elastic, an_idle_runtime_makes_no_system_call_again) {
  if (support::under_tsan) GTEST_SKIP() << "ThreadSanitizer has a thread of its own that never rests";
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "a pool that has grown and rests");
  support::watched_runtime rt({.workers = 2});
  {
    const hogs busy(rt, 3);
    rt->spawn([] {}).join();
  }
  support::until([&] { return rt.core().pool().live() == 2; });
  std::this_thread::sleep_for(250ms);
  const support::activity before = support::activity_of_others();
  std::this_thread::sleep_for(200ms);
  // The watchdog's thread sleeps too.
  EXPECT_EQ(support::activity_of_others().switches, before.switches);
}

// All threads of the process that begin while it lives have one processor.
class on_one_processor {
 public:
  on_one_processor() {
    EXPECT_EQ(::sched_getaffinity(0, sizeof before_, &before_), 0);
    int first = 0;
    while (!CPU_ISSET(first, &before_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~on_one_processor() { EXPECT_EQ(::sched_setaffinity(0, sizeof before_, &before_), 0); }
  on_one_processor(const on_one_processor&) = delete;
  on_one_processor& operator=(const on_one_processor&) = delete;

 private:
  cpu_set_t before_;
};

// Other threads want the processor as well, so each worker stands still for milliseconds in the middle of tasks of a
// microsecond. More threads would not help.
TEST(Elastic, a_worker_that_the_system_puts_aside_is_not_replaced) {
  if (weft::sched::force_migration) GTEST_SKIP() << "a pool that cannot grow does not count looks";
  if (support::under_tsan) GTEST_SKIP() << "ThreadSanitizer has locks of its own in which a thread may sleep";
  support::watchdog guard(60s, "short tasks beside busy threads");
  const on_one_processor only;
  atomic<bool> over{false};
  std::vector<std::thread> burners;
  for (int i = 0; i < 2; ++i) burners.emplace_back([&] { spin_until(over); });
  {
    support::watched_runtime rt({.workers = 2});
    rt->run([&] {
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 20; ++i)
        all.push_back(weft::spawn([&] {
          while (rt->elasticity().samples < 400) weft::yield();
        }));
      for (auto& t : all) t.join();
    });
    EXPECT_EQ(rt->elasticity().grown, 0u);
  }
  over.store(true);
  for (std::thread& t : burners) t.join();
}

// req: CC-2
TEST(Elastic, eight_workers_on_one_processor_get_on) {
  support::watchdog guard(100s, "8 workers on one processor");
  const on_one_processor only;
  support::watched_runtime rt({.workers = 8});
  rt->run([] {
    for (int round = 0; round < 20; ++round) {
      std::vector<weft::join_handle<int>> pairs;
      for (int i = 0; i < 16; ++i)
        pairs.push_back(weft::spawn([] {
          auto [w, r] = weft::make_channel<int>(0);
          auto sends = weft::spawn([out = std::move(w)]() mutable {
            for (int k = 0; k < 100; ++k) (void)out.send(1);
          });
          int sum = 0;
          while (auto got = r.recv()) sum += *got;
          return sum;
        }));
      for (auto& p : pairs) EXPECT_EQ(p.join(), 100);
    }
  });
}

// The monitor rests when nothing has moved for a while. Work that comes later wakes it again.
TEST(Elastic, a_stuck_worker_is_noticed_after_the_runtime_has_rested) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s, "a worker that gets stuck after a rest");
  support::watched_runtime rt({.workers = 1});
  support::activity before;
  int looks = 0;
  do {
    before = support::activity_of_others();
    std::this_thread::sleep_for(200ms);  // its longest nap is 32 ms
  } while (!(support::activity_of_others() == before) && ++looks < 20);  // TSan has a thread that never rests
  atomic<bool> ran{false};
  auto stuck = rt->spawn([&] { support::hold_worker_until([&] { return ran.load(); }); });
  auto other = rt->spawn([&] { ran.store(true); });
  stuck.join();
  other.join();
}

// The whole process stands still for a while: nobody is taken for stuck, nothing is lost.
// req: CC-2
TEST(Elastic, a_stopped_process_goes_on) {
  support::watchdog guard(60s, "SIGSTOP and SIGCONT");
  const pid_t stopper = ::fork();
  ASSERT_GE(stopper, 0);
  if (stopper == 0) {
    ::usleep(100'000);
    ::kill(::getppid(), SIGSTOP);
    ::sleep(support::under_tsan ? 1 : 5);
    ::kill(::getppid(), SIGCONT);
    ::_exit(0);
  }
  int beats = 0;
  weft::run({.workers = 2}, [&] {
    auto [w, r] = weft::make_channel<int>(1);
    auto sends = weft::spawn([out = std::move(w)]() mutable {
      for (int i = 0; i < 50; ++i) {
        weft::sleep_for(10ms);
        (void)out.send(i);
      }
    });
    while (r.recv()) ++beats;
  });
  EXPECT_EQ(beats, 50);
  int status = 0;
  EXPECT_EQ(::waitpid(stopper, &status, 0), stopper);
}

}  // namespace
