// sched::lifo_slot (src/sched/lifo_slot.hpp).
//
// sched.O1. A task put is taken, displaced or stolen exactly once, and is complete when it is taken.
// sched.O2. An empty slot seen by the owner stays empty until it puts.
#include "sched/lifo_slot.hpp"

#include "item.hpp"

using explore::join_all;
using explore::thread;
using model::item;
using model::items;
using slot = weft::sched::lifo_slot<item>;

namespace {
void take(item* i) {
  if (i != nullptr) i->take();
}
}  // namespace

MODEL_TEST(lifo_owner_and_thief, .preemptions = -1) {
  items<3> all;
  slot s;
  thread([&] {
    take(s.put(all.make(0)));
    take(s.put(all.make(1)));
    take(s.take());
    take(s.put(all.make(2)));
  });
  thread([&] {
    take(s.steal());
    take(s.steal());
  });
  join_all();
  take(s.take());
  model_assert(all.taken() == 3);
}

MODEL_TEST(lifo_owner_and_two_thieves, .preemptions = -1, .once_more_without_pruning = true) {
  items<2> all;
  slot s;
  int got[3] = {};  // by whom: a bit per item
  const auto note = [&](int who, item* i) {
    if (i != nullptr) got[who] |= 1 << i->take();
  };
  thread([&] {
    note(0, s.put(all.make(0)));
    note(0, s.put(all.make(1)));
    note(0, s.take());
  });
  thread([&] { note(1, s.steal()); });
  thread([&] { note(2, s.steal()); });
  join_all();
  explore::outcome("%d%d%d", got[0], got[1], got[2]);
  take(s.take());
  model_assert(all.taken() == 2);
}

// What a thief has taken comes back: the same task is put a second time, perhaps while another thief holds its old address.
MODEL_TEST(lifo_same_task_again, .preemptions = -1) {
  items<1> all;
  slot s;
  weft::base::plain<int> runs{0};
  item* i = all.make(0);
  const auto run = [&](item* t) {
    if (t == nullptr) return;
    runs = runs + 1;  // the one who holds the task
  };
  thread([&] {
    run(s.put(i));
    item* t = s.take();
    run(t);
    if (t != nullptr) run(s.put(t));
  });
  thread([&] { run(s.steal()); });
  join_all();
  run(s.take());
  model_assert(runs == 1 || runs == 2);
}
