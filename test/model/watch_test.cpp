// The watch (src/sched/watch.hpp): one sleeper keeps the earliest deadline.
// whole runtime
// abstract bed
//
// sched.V1. A timer is fired though the worker in whose wheel it lies is stuck.
// sched.V2. A watcher that leaves for work hands the watch on (hand_on).
// A sleep without a deadline beside a pending timer is a deadlock here; time passes only for those who sleep until a deadline.
#include "step_by_step.hpp"
#include "timer_sleeper.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using model::sleeper;
using weft::sched::step_by_step;

namespace {

// A worker from the moment it goes to sleep. A task that it gets lasts until the timer has fired.
void work_until(sleeper& s, step_by_step& steps, std::size_t id) {
  auto* t = steps.sleep_then_find(id);
  if (t == nullptr) return;
  ready_task::take(t);
  s.who.sleep();
  steps.stop();
}

}  // namespace

// Worker 0 is stuck. Worker 1 sleeps until the deadline and fires.
// req: W-4
MODEL_TEST(watch_fires_for_a_stuck_worker, .preemptions = 3) {
  step_by_step steps(2);
  sleeper s(steps.at(0));
  thread([&] { model_assert(steps.find(1) == nullptr); });
  thread([&] {
    s.who.sleep();
    steps.stop();
  });
  join_all();
}

// Both workers sleep, worker 0 watches. It gets a task that lasts until the timer has fired: the other must take over (sched.V2).
// req: W-4
MODEL_TEST(watch_is_handed_on, .preemptions = 3, .old_reads = 1) {
  step_by_step steps(2);
  sleeper s(steps.at(0));
  ready_task t;
  thread([&] { work_until(s, steps, 0); });
  thread([&] {
    explore::when_quiet(0);
    work_until(s, steps, 1);
  });
  thread([&] {
    explore::when_quiet(1);
    steps.all().placing().inject_to(0, t.made(0));
  });
  join_all();
  model_assert(t.was_taken());
}

// The same while worker 1 is on its way to sleep: it takes the watch over by itself, or is told.
// req: W-4
MODEL_TEST(watch_is_handed_on_to_one_who_goes_to_sleep, .preemptions = 3, .old_reads = 0, .early_timeouts = 0) {
  step_by_step steps(2);
  sleeper s(steps.at(0));
  ready_task t;
  thread([&] { work_until(s, steps, 0); });
  thread([&] {
    explore::when_quiet();
    work_until(s, steps, 1);
  });
  thread([&] {
    explore::when_quiet();
    steps.all().placing().inject_to(0, t.made(0));
  });
  join_all();
  model_assert(t.was_taken());
}
