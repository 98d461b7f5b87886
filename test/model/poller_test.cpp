// Who polls the driver (src/sched/poller.hpp): an event reaches the one who waits for it, whoever sleeps and whoever is stuck.
// whole runtime
//
// sched.Q1. While somebody waits for an event, a worker is awake, or a sleeper is in the driver, or the monitor is awake.
// sched.Q2. One thread polls at a time.
// A sleep in the wrong place is a deadlock here; time passes only for those who sleep until a deadline.
#include "sched/poller.hpp"

#include "step_by_step.hpp"
#include "wait/thread_waiter.hpp"
#include "wait/wake.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using weft::sched::step_by_step;
namespace base = weft::base;
namespace task = weft::task;

namespace {

// One event, for which one thread waits. Sleep, event and interruption are one step each.
class one_event final : public weft::sched::driver {
 public:
  [[nodiscard]] bool is_wanted() const noexcept override { return wanted_.load(base::relaxed); }
  void poll(base::time_ns deadline, std::size_t, weft::sched::chain<task::record>&) noexcept override {
    polls_ = polls_ + 1;  // plain: two at a time are a race
    if (deadline > base::now() && !explore::token_take(&no_signal_, no_signal_.initial_bits(),
                                                       deadline != base::never_ns, explore::where::current()))
      base::pass_time(deadline);
    if (!has_come_.load(base::acquire) || !wanted_.load(base::relaxed)) return;
    wanted_.store(false, base::relaxed);
    who.wake();
  }
  void interrupt() noexcept override { no_signal_.exchange(0, base::release); }

  void come() noexcept {
    has_come_.store(true, base::release);
    interrupt();
  }
  // As a thread, so that the scheduler need not run tasks.
  struct waiter {
    base::atomic<std::uint32_t> no_wake{1};
    void sleep() noexcept {
      (void)explore::token_take(&no_wake, no_wake.initial_bits(), false, explore::where::current());
    }
    void wake() noexcept { no_wake.exchange(0, base::release); }
  } who;

 private:
  base::atomic<bool> wanted_{true};
  base::atomic<bool> has_come_{false};
  base::atomic<std::uint32_t> no_signal_{1};
  base::plain<int> polls_{0};
};

// A runtime with this driver, which belongs to the test.
weft::sched::driver_factory lends(one_event& e) {
  class lent final : public weft::sched::driver {
   public:
    explicit lent(one_event& e) noexcept : event_(e) {}
    [[nodiscard]] bool is_wanted() const noexcept override { return event_.is_wanted(); }
    void poll(base::time_ns deadline, std::size_t most, weft::sched::chain<task::record>& woken) noexcept override {
      event_.poll(deadline, most, woken);
    }
    void interrupt() noexcept override { event_.interrupt(); }

   private:
    one_event& event_;
  };
  return [&e] { return std::make_unique<lent>(e); };
}

// A worker from the moment it goes to sleep. A task that it gets lasts until the event has come.
void work_until(one_event& e, step_by_step& steps, std::size_t id) {
  auto* t = steps.sleep_then_find(id);
  if (t == nullptr) return;
  ready_task::take(t);
  e.who.sleep();
  steps.stop();
}

}  // namespace

// At any moment of their way to sleep.
// req: W-4
MODEL_TEST(poller_an_event_comes_while_all_go_to_sleep, .preemptions = 3, .old_reads = 0) {
  one_event e;
  step_by_step steps(2, lends(e));
  for (std::size_t i = 0; i < 2; ++i) thread([&, i] { model_assert(steps.sleep_then_find(i) == nullptr); });
  thread([&] { e.come(); });
  thread([&] {
    e.who.sleep();
    steps.stop();
  });
  join_all();
}

// Worker 0 sleeps in the driver and is chosen for a task that lasts until the event has come. It wakes nobody to replace it; the
// monitor does.
// req: W-4 CC-16
MODEL_TEST(poller_one_who_left_the_driver_is_replaced, .preemptions = 3, .old_reads = 1, .early_timeouts = 0) {
  one_event e;
  step_by_step steps(2, lends(e));
  ready_task t;
  thread([&] { work_until(e, steps, 0); });
  thread([&] {
    explore::when_quiet(0);
    work_until(e, steps, 1);
  });
  thread([&] {
    explore::when_quiet(1);
    steps.monitor();
  });
  thread([&] {
    explore::when_quiet(2);
    steps.all().placing().inject_to(0, t.made(0));
    e.come();
  });
  join_all();
  model_assert(t.was_taken());
}

// The one in the driver leaves the pool. Another sleeper takes its place, although no task is left behind.
// req: W-4 LS-K2
MODEL_TEST(poller_one_who_leaves_the_pool_is_replaced, .preemptions = 3, .old_reads = 1) {
  one_event e;
  step_by_step steps(2, lends(e));
  thread([&] {
    model_assert(steps.sleep_then_find(0) == nullptr);
    steps.die(0);
  });
  thread([&] {
    explore::when_quiet(0);
    model_assert(steps.sleep_then_find(1) == nullptr);
  });
  thread([&] {
    explore::when_quiet(1);
    steps.all().pool().retire(0);
    explore::when_quiet(2);
    e.come();
  });
  thread([&] {
    e.who.sleep();
    steps.stop();
  });
  join_all();
}
