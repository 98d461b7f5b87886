// The monitor (src/sched/monitor.cpp) against workers that fall asleep, wake up and get stuck.
// whole runtime
// abstract bed
//
// sched.M1. While a worker is awake the monitor looks again after a nap of bounded length, or is being woken.
// sched.M2. What lies behind a stuck worker is noticed: a task in its queues or its slot, a timer in its wheel. Within one of its longest
//     naps and a careful one, though nobody was stuck lately; its naps grow only while all advance.
// A task that nobody takes is a deadlock here: only the monitor's naps have a deadline, and it looks at nothing but what it should.
#include "step_by_step.hpp"
#include "timer_sleeper.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using model::sleeper;
using weft::sched::monitor_limits;
using weft::sched::step_by_step;
namespace base = weft::base;

namespace {

// Worker 0 is in a task for ever, and leave() leaves another task behind it. Worker 1 sleeps until it gets that task;
// then the test is over.
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

// Nobody was stuck lately, so the monitor may be in its longest nap. At any moment worker 0 gets an endless task and
// leaves another one behind it. Time passes only in naps.
MODEL_TEST(monitor_notices_the_first_stuck_worker_in_time, .preemptions = 3, .old_reads = 0, .early_timeouts = 2) {
  step_by_step steps(2);
  ready_task endless;
  ready_task left;
  base::atomic<base::time_ns> left_at{0};  // 0: noticed before it was written down
  thread([&] {
    ready_task::take(steps.sleep_then_find(1));
    const base::time_ns since = left_at.load(base::relaxed);
    // Two naps more, which may end early while this worker is on its way.
    constexpr base::time_ns bound =
        monitor_limits::longest_nap + monitor_limits::careful_nap + 2 * monitor_limits::shortest_nap;
    model_assert(since == 0 || base::now() - since <= bound);
    steps.stop();
  });
  thread([&] {
    explore::when_quiet();
    steps.calm_monitor();
    steps.monitor();
  });
  thread([&] {
    explore::when_quiet();
    steps.keep_busy(0, &endless);
    steps.advance(0);
    steps.at(0).accept_fresh(left.made(0));
    left_at.store(base::now(), base::relaxed);
  });
  join_all();
  model_assert(left.was_taken());
  steps.count_finished(1);
}

// Nothing lies behind worker 0 yet.
// req: CC-16
MODEL_TEST(monitor_naps_are_short_beside_one_who_stands_still, .preemptions = 0) {
  step_by_step steps(2);
  ready_task endless;
  steps.put_to_sleep(1);
  steps.keep_busy(0, &endless);
  steps.calm_monitor();
  for (int i = 0; i < 5; ++i) {
    base::pass_time(base::now() + monitor_limits::shortest_nap);
    model_assert(steps.look() <= monitor_limits::alert_nap);
  }
}

// Nobody would see what comes from outside.
// req: CC-16
MODEL_TEST(monitor_naps_are_short_while_all_may_block, .preemptions = 0) {
  step_by_step steps(1);
  ready_task endless;
  steps.keep_busy(0, &endless);
  steps.calm_monitor();
  steps.at(0).give_way(true);
  for (int i = 0; i < 5; ++i) {
    steps.advance(0);
    base::pass_time(base::now() + monitor_limits::shortest_nap);
    model_assert(steps.look() <= monitor_limits::alert_nap);
  }
  steps.at(0).give_way(false);
}

// The first stuck worker was noticed late; the next is not. The naps stay short although all advance.
MODEL_TEST(monitor_is_alert_after_one_was_stuck, .preemptions = 0) {
  step_by_step steps(2);
  ready_task endless;
  ready_task left;
  steps.put_to_sleep(1);
  steps.keep_busy(0, &endless);
  steps.calm_monitor();
  steps.put_in_ring(0, left.made(0));
  base::pass_time(base::now() + monitor_limits::shortest_nap);
  (void)steps.look();
  ready_task::take(steps.find(0));
  for (int i = 0; i < 5; ++i) {
    steps.advance(0);
    base::pass_time(base::now() + monitor_limits::alert_nap);
    model_assert(steps.look() <= monitor_limits::alert_nap);
  }
}

// It dozes already when the only worker's task says that it may block.
// req: CC-16
MODEL_TEST(monitor_hears_of_one_who_gives_way, .preemptions = -1, .old_reads = 0, .early_timeouts = 0) {
  step_by_step steps(1);
  ready_task endless;
  steps.keep_busy(0, &endless);
  thread([&] { steps.monitor_dozes(); });
  thread([&] {
    explore::when_quiet();
    steps.at(0).give_way(true);
  });
  join_all();
  steps.at(0).give_way(false);
}

// All sleep, and the monitor is about to rest, for a while at first, when worker 0 wakes by itself. The monitor must be
// woken, or must not rest at all.
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

// The monitor is about to rest for good, and a worker that has worked sleeps again before the monitor has looked.
// Nobody has asked that worker for what it keeps.
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
