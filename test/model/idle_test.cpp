// sched::idle_set and the futex driver (src/sched/idle_set.hpp, futex_driver.cpp): sleep against enqueue.
// sources: sched/futex_driver.cpp
// abstract lock
//
// I1. Work that was made visible before wake_one() is taken by somebody: a worker that sleeps for ever beside it is a
//     deadlock here, because nothing has a deadline.
// I2. At most half of the workers search (one at least).
// K4. A worker sleeps only when no work is visible; its driver's token is never lost and never left over for the next sleep.
//
// The worker below is worker::find_work and worker::sleep (sched/worker_loop.cpp) with one queue, an inbox, that stands for
// another worker's: only a searcher takes from it, and a sleeper that sees work there leaves it to a searcher if there is one.
#include "sched/idle_set.hpp"

#include <memory>

#include "item.hpp"
#include "sched/driver.hpp"
#include "sched/inbox.hpp"

using explore::join_all;
using explore::thread;
using model::item;
using model::items;
namespace base = weft::base;
namespace sched = weft::sched;

namespace {

struct pool {
  explicit pool(int workers) : idle(static_cast<std::size_t>(workers)) {
    for (int i = 0; i < workers; ++i) drivers[i] = sched::make_futex_driver();
  }
  sched::idle_set idle;
  sched::inbox<item> work;
  std::unique_ptr<sched::driver> drivers[2];
  base::atomic<int> left{0};  // tasks still to come; 0: stop

  void notify() {
    const int chosen = idle.wake_one();
    if (chosen != sched::idle_set::nobody) drivers[chosen]->wake();
  }
  void end_search() {
    if (idle.stop_searching() && !work.empty()) notify();
  }
  void enqueue(item* i) {
    work.push(i);
    notify();
  }
  bool stopping() { return left.load(base::acquire) == 0; }
  void done(int n) {
    if (left.fetch_sub(n, base::seq_cst) != n) return;
    for (auto& d : drivers)
      if (d != nullptr) d->wake();
  }
};

int take(pool& p) {
  auto batch = p.work.take_all();
  int n = 0;
  // One is run, the others go back where all can see them, as a worker does with its ring.
  item* first = batch.pop_front();
  while (item* i = batch.pop_front()) p.work.push(i);
  if (first != nullptr) {
    first->take();
    n = 1;
  }
  return n;
}

bool sleep(pool& p, int id, bool was_searching) {
  p.idle.enter_sleep(id, was_searching);
  while ((p.work.empty() || p.idle.left_to_searcher()) && !p.stopping()) {
    p.drivers[id]->sleep(base::never_ns);
    if (!p.idle.is_asleep(id)) return true;
  }
  return !p.idle.leave_sleep(id);
}

void work(pool& p, int id) {
  bool searching = false;
  for (;;) {
    if (!searching) searching = p.idle.start_searching();
    const int n = searching ? take(p) : 0;
    if (n != 0) {
      if (searching) p.end_search();
      searching = false;
      p.done(n);
      continue;
    }
    if (p.stopping()) {
      if (searching) p.end_search();
      return;
    }
    searching = sleep(p, id, searching);
  }
}

}  // namespace

MODEL_TEST(idle_one_worker_one_task, .preemptions = -1) {
  items<1> all;
  pool p(1);
  p.left.store(1, base::relaxed);
  thread([&] { work(p, 0); });
  thread([&] { p.enqueue(all.make(0)); });
  join_all();
  model_assert(all.taken() == 1 && p.idle.sleeping() == 0 && p.idle.searching() == 0);
}

// Two tasks that need each other, left to one searcher: it takes one and must hand on, or the other never runs (I1). Both
// workers begin asleep.
MODEL_TEST(idle_last_searcher_hands_on, .preemptions = 3, .old_reads = 2) {
  items<2> all;
  pool p(2);
  p.left.store(2, base::relaxed);
  base::atomic<std::uint32_t> running{0};
  const auto meet = [&] {
    if (running.fetch_add(1, base::acq_rel) == 1) return base::futex_wake(&running, 2);
    while (running.load(base::acquire) < 2) base::futex_wait(running, 1);
  };
  for (int id = 0; id < 2; ++id) {
    p.idle.enter_sleep(id, false);
    thread([&, id] {
      bool searching = true;
      p.drivers[id]->sleep(base::never_ns);
      for (;;) {
        if (searching && take(p) != 0) {
          if (searching) p.end_search();
          return meet();
        }
        searching = sleep(p, id, searching);
        if (!searching) searching = p.idle.start_searching();
      }
    });
  }
  thread([&] {
    p.enqueue(all.make(0));
    p.enqueue(all.make(1));
  });
  join_all();
  model_assert(all.taken() == 2);
}

MODEL_TEST(idle_one_worker_two_tasks, .preemptions = 4) {
  items<2> all;
  pool p(1);
  p.left.store(2, base::relaxed);
  thread([&] { work(p, 0); });
  thread([&] {
    p.enqueue(all.make(0));
    p.enqueue(all.make(1));
  });
  join_all();
  model_assert(all.taken() == 2 && p.idle.sleeping() == 0 && p.idle.searching() == 0);
}

MODEL_TEST(idle_two_workers_one_task, .preemptions = 3, .old_reads = 1) {
  items<1> all;
  pool p(2);
  p.left.store(1, base::relaxed);
  thread([&] { work(p, 0); });
  thread([&] { work(p, 1); });
  thread([&] { p.enqueue(all.make(0)); });
  join_all();
  model_assert(all.taken() == 1 && p.idle.sleeping() == 0 && p.idle.searching() == 0);
}
MODEL_TEST(idle_one_worker_two_enqueuers, .preemptions = 3) {
  items<2> all;
  pool p(1);
  p.left.store(2, base::relaxed);
  thread([&] { work(p, 0); });
  thread([&] { p.enqueue(all.make(0)); });
  thread([&] { p.enqueue(all.make(1)); });
  join_all();
  model_assert(all.taken() == 2 && p.idle.sleeping() == 0 && p.idle.searching() == 0);
}

MODEL_TEST(idle_two_workers_two_tasks, .preemptions = 1, .old_reads = 1) {
  items<2> all;
  pool p(2);
  p.left.store(2, base::relaxed);
  thread([&] { work(p, 0); });
  thread([&] { work(p, 1); });
  thread([&] {
    p.enqueue(all.make(0));
    p.enqueue(all.make(1));
  });
  join_all();
  model_assert(all.taken() == 2 && p.idle.sleeping() == 0 && p.idle.searching() == 0);
}
