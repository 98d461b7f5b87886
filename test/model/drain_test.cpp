// A worker that leaves against those who enqueue (src/sched/worker_loop.cpp drain and die, placement.cpp inject_to, worker_set.hpp retire).
// whole runtime
// abstract bed
// abstract watch
//
// sched.K5. A draining worker's tasks go to the global queue; nothing is lost (LS-K2): a task that nobody takes is a deadlock here,
//     because the worker that stays waits for it.
#include "step_by_step.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using weft::sched::step_by_step;
namespace base = weft::base;

namespace {

// Worker 0 leaves, worker 1 stays until all tasks are taken.
template <int N>
struct pool {
  explicit pool(bool stealing) : steps(2, stealing) {}
  step_by_step steps;
  ready_task tasks[N];
  base::atomic<int> left{N};

  void take(weft::task::record* t) {
    ready_task::take(t);
    if (left.fetch_sub(1, base::relaxed) == 1) steps.stop();
  }
  void leaves() {
    steps.all().pool().retire(0);
    while (auto* t = steps.find(0)) take(t);
    steps.die(0);
  }
  void stays() {
    while (auto* t = steps.find(1)) take(t);
  }
  void check() {
    join_all();
    for (ready_task& t : tasks) model_assert(t.was_taken());
  }
};

}  // namespace

// req: W-4 LS-K2
MODEL_TEST(drain_against_an_enqueuer, .preemptions = 3, .old_reads = 1) {
  pool<1> p(true);
  thread([&] { p.leaves(); });
  thread([&] { p.stays(); });
  thread([&] { p.steps.all().placing().inject_to(0, p.tasks[0].made(0)); });
  p.check();
}

// req: W-4 LS-K2
MODEL_TEST(drain_against_an_enqueuer_without_stealing, .preemptions = 3, .old_reads = 2) {
  pool<1> p(false);
  thread([&] { p.leaves(); });
  thread([&] { p.stays(); });
  thread([&] { p.steps.all().placing().inject_to(0, p.tasks[0].made(0)); });
  p.check();
}

// The end of the same: nothing is left to drain, the other worker sleeps already, and the task comes while worker 0
// ends. Either the task goes to the other inbox, or one of the two that meet at worker 0 sees the other and wakes a
// worker.
MODEL_TEST(drain_last_step_against_an_enqueuer_without_stealing, .preemptions = 3) {
  step_by_step steps(2, false);
  ready_task t;
  thread([&] { ready_task::take(steps.sleep_then_find(1)); });
  thread([&] {
    explore::when_quiet();
    steps.all().pool().retire(0);
    steps.die(0);
  });
  thread([&] {
    explore::when_quiet();
    steps.all().placing().inject_to(0, t.made(0));
  });
  join_all();
  model_assert(t.was_taken());
}

// What was behind the worker's last task has nobody else to look for it: a sleeper is told.
// req: W-4 LS-K2
MODEL_TEST(drain_tells_a_sleeper, .preemptions = 3) {
  step_by_step steps(2);
  ready_task t;
  steps.put_in_slot(0, t.made(0));
  thread([&] { ready_task::take(steps.sleep_then_find(1)); });
  thread([&] {
    steps.all().pool().retire(0);
    model_assert(steps.find(0) == nullptr);
    steps.die(0);
  });
  join_all();
  model_assert(t.was_taken());
}

// req: W-4 LS-K2
MODEL_TEST(drain_of_a_sleeper, .preemptions = -1) {
  step_by_step steps(2);
  thread([&] {
    model_assert(steps.find(0) == nullptr);
    steps.die(0);
  });
  thread([&] { steps.all().pool().retire(0); });
  join_all();
  model_assert(steps.all().idle().sleeping() == 0 && steps.all().idle().searching() == 0);
}

// What lies in the slot, the ring and among the fresh tasks, while the other worker steals from the same queues.
// req: W-4 LS-K2
MODEL_TEST(drain_of_every_queue_against_a_thief, .preemptions = 3, .old_reads = 1) {
  pool<4> p(true);
  p.steps.put_in_slot(0, p.tasks[0].made(0));
  p.steps.put_in_ring(0, p.tasks[1].made(1));
  p.steps.put_in_fresh(0, p.tasks[2].made(2));
  p.steps.at(0).queues().inbox.push(p.tasks[3].made(3));
  thread([&] { p.leaves(); });
  thread([&] { p.stays(); });
  p.check();
}
