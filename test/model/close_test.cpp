// The end of a runtime: who is still admitted, who is waited for (src/sched/closing.hpp; placement.cpp inject_to, ~scheduler).
// whole runtime
// abstract bed
// abstract watch
//
// sched.C1. A spawn from outside is refused, or close() waits for the task (a data race here with what comes after close()).
// sched.C2. Whoever ends last, or is refused last, tells the one who closes (a deadlock otherwise).
// sched.C3. What a task did is seen when close() returns.
// sched.C4. A thread that has pushed the last task is waited for, though the task may have ended (use after its end otherwise).
// runtime_test has the same with whole workers; here they are cut down to the steps that count.
#include "step_by_step.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using weft::sched::step_by_step;
namespace base = weft::base;

namespace {

// What a worker does when its last task has ended.
void end_and_sleep(step_by_step& steps, std::size_t id) {
  steps.count_finished(id);
  steps.all().idle().enter_sleep(static_cast<int>(id), false);
  steps.all().ending().tell_if_all_ended([&] { return steps.all().workers(); });
}

}  // namespace

// req: W-4
MODEL_TEST(close_refuses_or_waits, .preemptions = -1) {
  step_by_step steps(1);
  base::plain<int> x{0};
  thread([&] {
    if (!steps.all().ending().admit()) return;
    x = 1;
    end_and_sleep(steps, 0);
  });
  steps.all().close();
  x = 2;
  join_all();
}

// One task is under way already, on the other worker.
MODEL_TEST(close_refuses_or_waits_for_two, .preemptions = 3) {
  step_by_step steps(2);
  base::plain<int> x[2];
  model_assert(steps.all().ending().admit());
  thread([&] {
    x[0] = 1;
    end_and_sleep(steps, 0);
  });
  thread([&] {
    if (!steps.all().ending().admit()) return;
    x[1] = 1;
    end_and_sleep(steps, 1);
  });
  steps.all().close();
  x[0] = 2;
  x[1] = 2;
  join_all();
}

// req: W-4
MODEL_TEST(close_by_two, .preemptions = 4) {
  step_by_step steps(1);
  base::plain<int> x{0};
  model_assert(steps.all().ending().admit());
  thread([&] {
    x = 1;
    end_and_sleep(steps, 0);
  });
  for (int i = 0; i < 2; ++i)
    thread([&] {
      steps.all().close();
      model_assert(x == 1);
    });
  join_all();
}

// req: W-4
MODEL_TEST(close_waits_for_a_visitor, .preemptions = -1) {
  auto* steps = new step_by_step(1);
  ready_task t;
  model_assert(steps->all().ending().admit());
  steps->run(0, [&] {
    ready_task::take(steps->sleep_then_find(0));
    end_and_sleep(*steps, 0);
  });
  thread([&] {
    explore::when_quiet();
    steps->all().placing().inject_to(0, t.made(0));
  });
  delete steps;
  join_all();
}

// The same without stealing, where exactly this worker is woken.
// req: W-4
MODEL_TEST(close_waits_for_a_visitor_without_stealing, .preemptions = -1) {
  auto* steps = new step_by_step(2, false);
  ready_task t;
  model_assert(steps->all().ending().admit());
  steps->run(1, [&] {
    ready_task::take(steps->sleep_then_find(1));
    end_and_sleep(*steps, 1);
  });
  thread([&] {
    explore::when_quiet();
    steps->all().placing().inject_to(1, t.made(0));
  });
  delete steps;
  join_all();
}
