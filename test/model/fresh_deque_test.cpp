// sched::fresh_deque (src/sched/fresh_deque.hpp), capacity 2 and 4.
//
// sched.D1. A task pushed is popped, stolen or handed to overflow exactly once, and is complete when it is taken.
// sched.D2. Owner and thief meet at the last task: one of them gets it, never both, and never neither for good.
// sched.D3. A slot is overwritten only after a thief that reads it has won or lost.
// sched.D4. The owner takes a run of the newest at once; thieves get the rest, each once.
#include "sched/fresh_deque.hpp"

#include "item.hpp"

using explore::join_all;
using explore::thread;
using explore::watch_slots;
using model::item;
using model::items;
using deque = weft::sched::fresh_deque<item>;
using chain = weft::sched::chain<item>;

namespace {
void take(item* i) {
  if (i != nullptr) i->take();
}
void drain(deque& d) {
  while (item* i = d.pop()) i->take();
}
}  // namespace

MODEL_TEST(fresh_last_task_one_thief, .preemptions = -1, .outcomes = "01 10") {
  items<1> all;
  watch_slots watch;
  deque d(4);
  chain overflow;
  item *mine = nullptr, *theirs = nullptr;
  thread([&] {
    d.push(all.make(0), overflow);
    mine = d.pop();
    take(mine);
  });
  thread([&] {
    theirs = d.steal();
    take(theirs);
  });
  join_all();
  explore::outcome("%d%d", mine != nullptr, theirs != nullptr);
  model_assert((mine != nullptr) != (theirs != nullptr));  // the owner loses it only to a thief
  model_assert(all.taken() == 1);
}

MODEL_TEST(fresh_push_pop_against_two_thieves, .preemptions = 3) {
  items<3> all;
  watch_slots watch;
  deque d(4);
  chain overflow;
  thread([&] {
    d.push(all.make(0), overflow);
    d.push(all.make(1), overflow);
    take(d.pop());
    d.push(all.make(2), overflow);
    take(d.pop());
  });
  thread([&] { take(d.steal()); });
  thread([&] { take(d.steal()); });
  join_all();
  drain(d);
  model_assert(overflow.empty() && all.taken() == 3);
}

MODEL_TEST(fresh_thief_steals_twice, .preemptions = 4) {
  items<3> all;
  watch_slots watch;
  deque d(4);
  chain overflow;
  int stolen[2] = {-1, -1};
  thread([&] {
    for (int i = 0; i < 3; ++i) d.push(all.make(i), overflow);
    take(d.pop());
    take(d.pop());
  });
  thread([&] {
    for (int& s : stolen)
      if (item* i = d.steal()) s = i->take();
  });
  join_all();
  model_assert(stolen[1] < 0 || stolen[0] < stolen[1]);  // oldest first
  drain(d);
  model_assert(overflow.empty() && all.taken() == 3);
}

// A full deque gives its older half away while thieves are at it, and its slots are used again (sched.D3).
MODEL_TEST(fresh_overflow_and_wrap_against_a_thief, .preemptions = 3) {
  items<5> all;
  watch_slots watch;
  deque d(2);
  chain overflow;
  thread([&] {
    for (int i = 0; i < 5; ++i) d.push(all.make(i), overflow);
    take(d.pop());
  });
  thread([&] {
    take(d.steal());
    take(d.steal());
  });
  join_all();
  while (item* i = overflow.pop_front()) i->take();
  drain(d);
  model_assert(all.taken() == 5);
}

// The owner loses the last one to a thief and goes on without looking at top_ again (sched.D3 by what pop() saw).
MODEL_TEST(fresh_wrap_after_a_lost_pop, .preemptions = 3) {
  items<4> all;
  watch_slots watch;
  deque d(2);
  chain overflow;
  d.push(all.make(0), overflow);
  thread([&] {
    take(d.pop());
    d.push(all.make(1), overflow);
    d.push(all.make(2), overflow);
    d.push(all.make(3), overflow);
  });
  thread([&] { take(d.steal()); });
  thread([&] { take(d.steal()); });
  join_all();
  while (item* i = overflow.pop_front()) i->take();
  drain(d);
  model_assert(all.taken() == 4);
}

MODEL_TEST(fresh_wrap_against_two_thieves, .preemptions = 3) {
  items<3> all;
  watch_slots watch;
  deque d(2);
  chain overflow;
  d.push(all.make(0), overflow);
  thread([&] {
    d.push(all.make(1), overflow);
    take(d.pop());
    d.push(all.make(2), overflow);
  });
  thread([&] { take(d.steal()); });
  thread([&] { take(d.steal()); });
  join_all();
  while (item* i = overflow.pop_front()) i->take();
  drain(d);
  model_assert(all.taken() == 3);
}

// The owner takes a run of the newest at once, while thieves are at the oldest (sched.D4), and its slots are used again.
MODEL_TEST(fresh_newest_two_against_two_thieves, .preemptions = 3) {
  items<4> all;
  watch_slots watch;
  deque d(4);
  chain overflow;
  for (int i = 0; i < 3; ++i) d.push(all.make(i), overflow);
  thread([&] {
    int last = -1;
    d.pop_newest(2, [&](item* i) {
      const int taken = i->take();
      model_assert(taken > last);  // in the order in which they were pushed
      last = taken;
    });
    d.push(all.make(3), overflow);
    take(d.pop());
  });
  thread([&] { take(d.steal()); });
  thread([&] {
    take(d.steal());
    take(d.steal());
  });
  join_all();
  drain(d);
  model_assert(overflow.empty() && all.taken() == 4);
}

// What it leaves is a thief's, who may know of it only by what the owner stored then.
MODEL_TEST(fresh_newest_leaves_the_oldest, .preemptions = -1) {
  items<3> all;
  watch_slots watch;
  deque d(4);
  chain overflow;
  thread([&] {
    for (int i = 0; i < 3; ++i) d.push(all.make(i), overflow);
    d.pop_newest(2, [](item* i) { i->take(); });
  });
  thread([&] { take(d.steal()); });
  join_all();
  drain(d);
  model_assert(overflow.empty() && all.taken() == 3);
}

// All of them are wanted, and a thief has come as far.
MODEL_TEST(fresh_newest_all_against_a_thief, .preemptions = -1, .outcomes = "20 11") {
  items<4> all;
  watch_slots watch;
  deque d(2);
  chain overflow;
  int mine = 0, theirs = 0;
  thread([&] {
    d.push(all.make(0), overflow);
    d.push(all.make(1), overflow);
    d.pop_newest(2, [&](item* i) {
      i->take();
      ++mine;
    });
    model_assert(d.pop() == nullptr);
  });
  thread([&] {
    if (item* i = d.steal()) {
      i->take();
      ++theirs;
    }
  });
  join_all();
  explore::outcome("%d%d", mine, theirs);
  model_assert(mine + theirs == 2);
}

MODEL_TEST(fresh_newest_all_then_wrap_against_two_thieves, .preemptions = 3) {
  items<4> all;
  watch_slots watch;
  deque d(2);
  chain overflow;
  d.push(all.make(0), overflow);
  d.push(all.make(1), overflow);
  thread([&] {
    d.pop_newest(2, [](item* i) { i->take(); });
    d.push(all.make(2), overflow);
    d.push(all.make(3), overflow);
  });
  thread([&] { take(d.steal()); });
  thread([&] { take(d.steal()); });
  join_all();
  while (item* i = overflow.pop_front()) i->take();
  drain(d);
  model_assert(all.taken() == 4);
}
