// The monitor (src/sched/monitor.cpp) against workers that fall asleep, wake up and get stuck.
// whole runtime
// abstract driver
//
// M1. While a worker is awake the monitor is, or is being woken.
// M2. What lies behind a stuck worker is noticed: a task in its queues or its slot, a timer in its wheel.
// A task that nobody takes is a deadlock here: only the monitor's naps have a deadline, and it looks at nothing but what it should.
#include "step_by_step.hpp"
#include "timer_sleeper.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using model::sleeper;
using weft::sched::step_by_step;

namespace {

// Worker 0 is in a task for ever and leaves another one behind it, by leave(). Worker 1 sleeps, gets that, and with it all is over.
template <class Leave>
void behind_a_stuck_worker(step_by_step& steps, ready_task& left, Leave leave) {
  ready_task endless;
  steps.keep_busy(0, &endless);
  thread([&] {
    ready_task::take(steps.sleep_then_find(1));
    steps.stop();
  });
  thread([&] {
    explore::when_quiet();
    steps.monitor();
  });
  thread([&] {
    explore::when_quiet();
    leave();
  });
  join_all();
  model_assert(left.was_taken());
}

}  // namespace

// A lone fresh task is queued without waking anybody.
// req: W-4 CC-16
MODEL_TEST(monitor_notices_a_stranded_task, .preemptions = 3, .old_reads = 1) {
  step_by_step steps(2);
  ready_task t;
  behind_a_stuck_worker(steps, t, [&] { steps.at(0).accept_fresh(t.made(0)); });
  steps.count_finished(1);
}

// The same in the slot, where thieves do not look.
// req: W-4 CC-16
MODEL_TEST(monitor_rescues_what_lies_in_a_slot, .preemptions = 3, .old_reads = 1) {
  step_by_step steps(2);
  ready_task t;
  behind_a_stuck_worker(steps, t, [&] { steps.at(0).accept_woken(t.woken(0)); });
}

// All sleep and the monitor is about to rest, for a while at first, when worker 0 wakes by itself: the monitor must be up again, or
// not rest at all.
// req: W-4 CC-16
MODEL_TEST(monitor_hears_of_one_who_woke_by_itself, .preemptions = -1, .old_reads = -1, .early_timeouts = 0) {
  step_by_step steps(2);
  steps.put_to_sleep(0);
  steps.put_to_sleep(1);
  thread([&] { steps.monitor_is_woken(); });
  thread([&] {
    (void)steps.all().idle().leave_sleep(0);
    steps.leave_idle(0);
  });
  join_all();
}

// The same with one who was chosen to work by somebody outside.
// req: W-4 CC-16
MODEL_TEST(monitor_hears_of_one_who_was_woken, .preemptions = -1, .old_reads = -1, .early_timeouts = 0) {
  step_by_step steps(1);
  steps.put_to_sleep(0);
  thread([&] { steps.monitor_is_woken(); });
  thread([&] {
    model_assert(steps.all().idle().wake_one() == 0);
    steps.leave_idle(0);
  });
  join_all();
}

// It is about to rest for good, and one who has worked sleeps again before it has looked: nobody has asked for what that one keeps.
// req: KC-5
MODEL_TEST(monitor_hears_of_one_who_worked_and_sleeps_again, .preemptions = -1, .old_reads = -1) {
  step_by_step steps(1);
  steps.put_to_sleep(0);
  thread([&] { steps.monitor_rests(); });
  thread([&] {
    (void)steps.all().idle().leave_sleep(0);
    steps.leave_idle(0);
    steps.all().idle().enter_sleep(0, false);
  });
  join_all();
}

// req: W-4
MODEL_TEST(monitor_hears_of_the_end, .preemptions = -1, .old_reads = -1) {
  step_by_step steps(1);
  steps.put_to_sleep(0);
  thread([&] { steps.monitor_rests(); });
  thread([&] { steps.stop(); });
  join_all();
}

// Worker 1 fell asleep before there was a timer. Worker 0 sets one and computes.
// req: W-4
MODEL_TEST(monitor_has_timers_fired, .preemptions = 3, .old_reads = 0, .early_timeouts = 0) {
  step_by_step steps(2);
  thread([&] { model_assert(steps.sleep_then_find(1) == nullptr); });
  thread([&] { steps.monitor(); });
  thread([&] {
    sleeper s(steps.at(0));
    s.who.sleep();
    steps.stop();
  });
  join_all();
}
