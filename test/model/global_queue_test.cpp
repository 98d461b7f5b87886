// sched::global_queue (src/sched/global_queue.hpp) over base::lock.
// sources: base/lock.cpp
//
// sched.G1. FIFO; a task is taken exactly once, complete; a batch stays together.
// sched.G2. size() == 0 means that nothing whose push happened before is inside: a worker that was told of a task finds it.
#include "sched/global_queue.hpp"

#include "item.hpp"

using explore::join_all;
using explore::thread;
using model::item;
using model::items;
using queue = weft::sched::global_queue<item>;
using chain = weft::sched::chain<item>;
namespace base = weft::base;

namespace {
int take(queue& q) {
  chain share = q.take_share(2);
  int last[2] = {-1, -1}, n = 0;  // numbers below 10 come from one thread, the others from another
  for (; item* i = share.pop_front(); ++n) {
    const int number = i->take();
    model_assert(number > last[number / 10]);
    last[number / 10] = number;
  }
  return n;
}
}  // namespace

MODEL_TEST(global_batch_and_single_against_two_takers, .preemptions = 3) {
  items<3> all;
  queue q;
  thread([&] {
    chain two;
    two.push_back(all.make(0));
    two.push_back(all.make(1));
    q.push(std::move(two));
  });
  thread([&] { q.push(all[2]->made(10)); });
  thread([&] { take(q); });
  join_all();
  while (take(q) != 0) {}
  model_assert(all.taken() == 3 && q.size() == 0);
}

MODEL_TEST(global_two_takers, .preemptions = 4) {
  items<2> all;
  queue q;
  q.push(all.make(0));
  thread([&] { q.push(all.make(1)); });
  thread([&] { take(q); });
  thread([&] { take(q); });
  join_all();
  while (take(q) != 0) {}
  model_assert(all.taken() == 2 && q.size() == 0);
}

MODEL_TEST(global_told_of_a_task_finds_it, .preemptions = -1) {
  items<1> all;
  queue q;
  base::atomic<int> told{0};
  int found = -1;
  thread([&] {
    q.push(all.make(0));
    told.store(1, base::release);
  });
  thread([&] {
    if (told.load(base::acquire) == 1) found = take(q);
  });
  join_all();
  model_assert(found != 0);
  take(q);
  model_assert(all.taken() == 1);
}
