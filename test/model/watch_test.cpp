// The watch (src/sched/watch.cpp): one sleeper keeps the earliest deadline and an eye on stuck workers.
// whole runtime
// abstract driver
//
// V1. A task that was queued quietly on a stuck worker is noticed.
// V2. A timer is fired though the worker in whose wheel it lies is stuck.
// V3. A watcher that leaves for work hands the watch on (hand_on_watch).
// A sleep without a deadline beside a pending timer or a stranded task is a deadlock here; time passes only for those who sleep
// until a deadline.
#include "base/clock.hpp"
#include "step_by_step.hpp"
#include "time/wheel.hpp"
#include "wait/thread_waiter.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using weft::sched::step_by_step;
namespace base = weft::base;
namespace task = weft::task;
namespace wait = weft::wait;

namespace {

constexpr base::time_ns soon = (base::time_ns{1} << 40) + 100'000;

// A timer in the wheel of a worker that is stuck, and somebody who waits for it.
struct sleeper {
  wait::thread_waiter who;
  weft::time::entry timer;
  weft::time::wheel* wheel;
  explicit sleeper(weft::sched::worker& stuck) : wheel(static_cast<weft::time::wheel*>(&stuck.timers())) {
    timer.deadline = soon;
    wheel->lock();
    const std::uint64_t word = who.word.begin_park(0);
    timer.waiter.who = &who;
    timer.waiter.ticket = task::state_word::ticket_of(word);
    wheel->insert(timer);
    (void)who.word.commit_park();
    wheel->unlock();
  }
  void take_out() {
    wheel->lock();
    wheel->remove(timer);
    wheel->unlock();
  }
};

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

// Both workers sleep, worker 0 watches. It gets a task that lasts until the timer has fired: the other must take over (V3).
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
    steps.all().inject_to(0, t.made(0));
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
    steps.all().inject_to(0, t.made(0));
  });
  join_all();
  model_assert(t.was_taken());
}

// A lone fresh task is queued without waking anybody; its worker never comes to it (V1).
// req: W-4
MODEL_TEST(watch_notices_a_stranded_task, .preemptions = 3, .old_reads = 2) {
  step_by_step steps(2);
  ready_task t;
  thread([&] {
    ready_task::take(steps.find(1));
    steps.count_finished(1);
  });
  thread([&] {
    steps.at(0).accept_fresh(t.made(0));  // and then it computes for ever
  });
  join_all();
  model_assert(t.was_taken());
}

// Worker 0 was asleep, wakes by itself, queues a task quietly and computes: worker 1, which may have gone to sleep believing that
// all sleep, must hear of it (V1).
// req: W-4
MODEL_TEST(watch_hears_of_one_who_woke_by_itself, .preemptions = 3, .old_reads = 2, .early_timeouts = 2) {
  step_by_step steps(2);
  ready_task t;
  thread([&] {
    ready_task::take(steps.find(1));
    steps.count_finished(1);
  });
  thread([&] {
    steps.all().idle().enter_sleep(0, false);
    (void)steps.all().idle().leave_sleep(0);
    steps.at(0).accept_fresh(t.made(0));
  });
  join_all();
  model_assert(t.was_taken());
}

// All three sleep, worker 1 watches. Worker 2 takes the watch over for the sake of an earlier timer, believing that all sleep, while
// worker 0 wakes by itself, queues a task quietly and computes. The new watcher looks around, or was told (V1).
// req: W-4
MODEL_TEST(watch_is_taken_over_against_a_quiet_enqueue, .preemptions = -1, .old_reads = -1) {
  step_by_step steps(3);
  weft::sched::idle_set& idle = steps.all().idle();
  ready_task t;
  idle.enter_sleep(1, false);
  (void)steps.all().watch_from(steps.at(1));
  idle.enter_sleep(0, false);
  idle.enter_sleep(2, false);
  sleeper s(steps.at(2));
  thread([&] {
    (void)idle.leave_sleep(0);
    steps.at(0).accept_fresh(t.made(0));
  });
  thread([&] { (void)steps.all().watch_from(steps.at(2)); });
  join_all();
  model_assert(steps.watch_is_armed() || idle.searching() != 0);
  s.take_out();
  steps.count_finished(0);
}

// A task lies in the slot of a worker that computes for ever. Thieves do not look there; who looks around does (V1).
// req: W-4, LS-K2
MODEL_TEST(watch_rescues_what_lies_in_a_slot, .preemptions = 3, .old_reads = 2) {
  step_by_step steps(2);
  ready_task t;
  thread([&] { ready_task::take(steps.find(1)); });
  thread([&] { steps.at(0).accept_woken(t.woken(0)); });
  join_all();
  model_assert(t.was_taken());
}
