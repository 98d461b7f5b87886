// Sleep against enqueue: the real worker loop and scheduler (src/sched/work_search.cpp, placement.cpp, idle_set.hpp).
// whole runtime
// abstract bed
// abstract watch
//
// sched.I1. Work that was made visible before wake_one() is taken by somebody: a worker that sleeps for ever beside it is a
//     deadlock here, because nothing has a deadline.
// sched.I2. At most half of the workers search (one at least); in the end nobody is counted as searching or sleeping.
// sched.K4. A worker sleeps only when no work is visible.
#include "sched/idle_set.hpp"

#include "step_by_step.hpp"

using explore::join_all;
using explore::thread;
using model::ready_task;
using weft::sched::step_by_step;
namespace base = weft::base;

namespace {

// Tasks to take, by workers that end when all are taken.
template <int N>
struct pool {
  explicit pool(std::size_t workers, bool stealing = true) : steps(workers, stealing) {}
  step_by_step steps;
  ready_task tasks[N];
  base::atomic<int> left{N};

  void work(std::size_t id) {
    while (auto* t = steps.find(id)) {
      ready_task::take(t);
      if (left.fetch_sub(1, base::relaxed) == 1) steps.stop();
    }
  }
  // As placement::schedule() does for a waker from outside.
  void enqueue(int i) { steps.all().placing().inject(tasks[i].made(i)); }
  void check() {
    join_all();
    for (ready_task& t : tasks) model_assert(t.was_taken());
    model_assert(steps.all().idle().sleeping() == 0 && steps.all().idle().searching() == 0);
  }
};

}  // namespace

// req: W-4 BZ-5
MODEL_TEST(idle_one_worker_one_task, .preemptions = -1) {
  pool<1> p(1);
  thread([&] { p.work(0); });
  thread([&] { p.enqueue(0); });
  p.check();
}

// req: W-4 BZ-5
MODEL_TEST(idle_one_worker_two_tasks, .preemptions = 3) {
  pool<2> p(1);
  thread([&] { p.work(0); });
  thread([&] {
    p.enqueue(0);
    p.enqueue(1);
  });
  p.check();
}

// req: W-4 BZ-5
MODEL_TEST(idle_one_worker_two_enqueuers, .preemptions = 3, .old_reads = 1) {
  pool<2> p(1);
  thread([&] { p.work(0); });
  thread([&] { p.enqueue(0); });
  thread([&] { p.enqueue(1); });
  p.check();
}

// req: W-4 BZ-5
MODEL_TEST(idle_two_workers_one_task, .preemptions = 3, .old_reads = 1) {
  pool<1> p(2);
  thread([&] { p.work(0); });
  thread([&] { p.work(1); });
  thread([&] { p.enqueue(0); });
  p.check();
}

// Two tasks that need each other, left to one searcher: it takes one and must hand on, or the other never runs (sched.I1). Both
// workers begin asleep.
// req: W-4 BZ-5
MODEL_TEST(idle_last_searcher_hands_on, .preemptions = 3, .old_reads = 1) {
  pool<2> p(2);
  base::atomic<std::uint32_t> running{0};
  for (std::size_t id = 0; id < 2; ++id)
    thread([&, id] {
      ready_task::take(p.steps.sleep_then_find(id));
      if (running.fetch_add(1, base::acq_rel) == 1) return base::futex_wake(&running, 2);
      while (running.load(base::acquire) < 2) base::futex_wait(running, 1);
    });
  thread([&] {
    p.enqueue(0);
    p.enqueue(1);
  });
  p.check();
}

// The end of the same: one sleeps, the other searches already.
// req: W-4 BZ-5
MODEL_TEST(idle_a_lone_searcher_hands_on, .preemptions = 3) {
  pool<2> p(2);
  base::atomic<std::uint32_t> running{0};
  const auto both_run = [&] {
    if (running.fetch_add(1, base::acq_rel) == 1) return base::futex_wake(&running, 2);
    while (running.load(base::acquire) < 2) base::futex_wait(running, 1);
  };
  thread([&] {
    ready_task::take(p.steps.sleep_then_find(1));
    both_run();
  });
  model_assert(p.steps.all().idle().start_searching());
  thread([&] {
    explore::when_quiet();
    ready_task::take(p.steps.search_on(0));
    both_run();
  });
  thread([&] {
    explore::when_quiet();
    p.enqueue(0);
    p.enqueue(1);
  });
  p.check();
}

// Without stealing a task is its worker's alone: wake_exactly, not wake_one.
// req: W-4
MODEL_TEST(idle_exactly_this_worker, .preemptions = 3, .old_reads = 1) {
  pool<1> p(2, false);
  bool by_the_other = false;
  thread([&] { p.work(0); });
  thread([&] {
    while (auto* t = p.steps.find(1)) {
      ready_task::take(t);
      by_the_other = true;
    }
  });
  thread([&] { p.steps.all().placing().inject_to(0, p.tasks[0].made(0)); });
  p.check();
  model_assert(!by_the_other);
}

// req: W-4
MODEL_TEST(idle_exactly_two_enqueuers, .preemptions = 3, .old_reads = 1) {
  pool<2> p(1, false);
  thread([&] { p.work(0); });
  thread([&] { p.enqueue(0); });
  thread([&] { p.enqueue(1); });
  p.check();
}
