// What is queued behind a task that has said it may block is run at once by another worker. The monitor, which would
// notice it later, is held meanwhile.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <stdexcept>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/held_monitor.hpp"
#include "support/monitor_state.hpp"
#include "support/parked.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using weft::base::atomic;

// A runtime of two workers, one of which runs the test's body as a task and the other sleeps.
class GivingWay : public testing::Test {
 protected:
  void run(const std::function<void()>& body) {
    if (weft::sched::force_migration) GTEST_SKIP() << "every resume is elsewhere in this build";
    support::watchdog guard(60s, "a task behind one that may block");
    support::watched_runtime rt(2);
    scheduler_ = &rt.core();
    rt->run([&] {
      const support::held_monitor no_help(rt.core());
      body();
    });
  }
  [[nodiscard]] std::size_t parked() const { return support::parked_tasks(*scheduler_); }
  void wait_for_parked(std::size_t tasks) const {
    support::until([&] { return parked() == tasks; });
  }
  // Nobody comes by chance.
  void let_the_other_sleep() const {
    support::hold_worker_until([&] { return scheduler_->idle().sleeping() == 1; });
  }
  // A body that blocks, as far as the scheduler knows, until another worker has run what sets `ran`.
  static auto block_until(const atomic<bool>& ran) {
    return [&ran] { support::hold_worker_until([&] { return ran.load(); }); };
  }

 private:
  weft::sched::scheduler* scheduler_ = nullptr;
};

// A task that waits until it may go, and tells that it ran.
struct sleeper {
  weft::event go;
  atomic<bool> ran{false};
  weft::join_handle<void> task = weft::spawn([this] {
    go.wait();
    ran.store(true);
  });
  ~sleeper() { task.join(); }
};

// req: CC-16
TEST_F(GivingWay, what_was_queued_before) {
  run([&] {
    let_the_other_sleep();
    atomic<bool> ran{false};
    auto other = weft::spawn([&] { ran.store(true); });
    weft::blocking(block_until(ran));
    other.join();
  });
}

// req: CC-16
TEST_F(GivingWay, what_is_spawned_meanwhile) {
  run([&] {
    let_the_other_sleep();
    weft::blocking([&] {
      atomic<bool> ran{false};
      auto other = weft::spawn([&] { ran.store(true); });
      block_until(ran)();
      other.join();
    });
  });
}

// req: CC-16
TEST_F(GivingWay, what_was_woken_before) {
  run([&] {
    sleeper other;
    wait_for_parked(1);
    let_the_other_sleep();
    other.go.set();  // into our slot
    weft::blocking(block_until(other.ran));
  });
}

// req: CC-16
TEST_F(GivingWay, what_is_woken_meanwhile) {
  run([&] {
    sleeper other;
    wait_for_parked(1);
    let_the_other_sleep();
    weft::blocking([&] {
      other.go.set();
      block_until(other.ran)();
    });
  });
}

// req: CC-16
TEST_F(GivingWay, what_is_woken_in_a_batch_of_one) {
  run([&] {
    atomic<bool> ran{false};
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] {
        EXPECT_TRUE(support::throws_cancelled([] { support::wait_for_ever(); }));
        ran.store(true);
      });
      wait_for_parked(1);
      let_the_other_sleep();
      weft::blocking([&] {
        s.cancel();
        block_until(ran)();
      });
    });
  });
}

// Calls f when it is copied, and is not.
struct not_copied {
  std::function<void()> f;
  explicit not_copied(std::function<void()> called) : f(std::move(called)) {}
  not_copied(const not_copied& other) {
    other.f();
    throw std::runtime_error("no copies");
  }
  void operator()() const {}
};

// The task spawns, from outside, into a scope whose last child ends meanwhile, and the spawn fails. So the task is the
// last to leave the scope.
TEST_F(GivingWay, the_owner_of_a_scope_that_it_leaves_last) {
  run([&] {
    std::optional<weft::scope_ref> inside;
    weft::event go;
    atomic<bool> ran{false};
    auto owner = weft::spawn([&] {
      weft::with_scope([&](weft::scope& s) {
        inside.emplace(s.ref());
        s.spawn([&] { go.wait(); });
      });
      ran.store(true);
    });
    wait_for_parked(2);
    let_the_other_sleep();
    weft::blocking([&] {
      const not_copied refused([&] {
        go.set();
        support::hold_worker_until([&] { return parked() == 1; });  // the child has ended, the owner waits for us
        let_the_other_sleep();
      });
      EXPECT_THROW((void)inside->spawn(refused), std::runtime_error);
      block_until(ran)();
    });
    owner.join();
  });
}

// req: CC-16
TEST_F(GivingWay, who_yields_to_it) {
  run([&] {
    const weft::dispatcher one = weft::dispatcher::single();
    let_the_other_sleep();
    atomic<bool> went_on{false};
    auto next = weft::spawn_on(one, block_until(went_on));
    weft::yield();
    went_on.store(true);
    next.join();
  });
}

// The only worker may block, so nobody but the monitor can see to what comes from outside.
// req: CC-16
TEST(GivingWayAlone, the_monitor_is_told_of_a_task_from_outside) {
  if (weft::sched::force_migration) GTEST_SKIP() << "nobody takes tasks from others in this build";
  support::watchdog guard(60s, "a task from outside");
  support::watched_runtime rt(1);
  support::latch blocks, may_end;
  auto blocked = rt->spawn([&] {
    weft::blocking([&] {
      blocks.count_down();
      may_end.hold();
    });
  });
  blocks.wait();
  weft::join_handle<void> other;
  {
    const support::held_monitor held(rt.core());
    other = rt->spawn([] {});
    EXPECT_FALSE(support::monitor_sleeps(rt.core()));
  }
  may_end.count_down();
  blocked.join();
  other.join();
}

}  // namespace
