// Sleep against enqueue: the real worker loop and scheduler (src/sched/worker_loop.cpp, scheduler.cpp, idle_set.hpp).
// whole runtime
// abstract driver
// abstract watch
//
// I1. Work that was made visible before wake_one() is taken by somebody: a worker that sleeps for ever beside it is a
//     deadlock here, because nothing has a deadline.
// I2. At most half of the workers search (one at least); in the end nobody is counted as searching or sleeping.
// K4. A worker sleeps only when no work is visible.
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
  // As scheduler::schedule() does for a waker from outside.
  void enqueue(int i) { steps.all().inject(tasks[i].made(i)); }
  void check() {
    join_all();
    for (ready_task& t : tasks) model_assert(t.was_taken());
    model_assert(steps.all().idle().sleeping() == 0 && steps.all().idle().searching() == 0);
  }
};

}  // namespace

// req: W-4
MODEL_TEST(idle_one_worker_one_task, .preemptions = -1) {
  pool<1> p(1);
  thread([&] { p.work(0); });
  thread([&] { p.enqueue(0); });
  p.check();
}

// req: W-4
MODEL_TEST(idle_one_worker_two_tasks, .preemptions = 3) {
  pool<2> p(1);
  thread([&] { p.work(0); });
  thread([&] {
    p.enqueue(0);
    p.enqueue(1);
  });
  p.check();
}

// req: W-4
MODEL_TEST(idle_one_worker_two_enqueuers, .preemptions = 3) {
  pool<2> p(1);
  thread([&] { p.work(0); });
  thread([&] { p.enqueue(0); });
  thread([&] { p.enqueue(1); });
  p.check();
}

// req: W-4
MODEL_TEST(idle_two_workers_one_task, .preemptions = 3, .old_reads = 1) {
  pool<1> p(2);
  thread([&] { p.work(0); });
  thread([&] { p.work(1); });
  thread([&] { p.enqueue(0); });
  p.check();
}
