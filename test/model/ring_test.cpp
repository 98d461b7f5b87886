// sched::ring (src/sched/ring.hpp), capacity 4.
//
// sched.R1. A task pushed is popped, stolen or handed to overflow exactly once, and is complete when it is taken.
// sched.R2. A slot is not overwritten while a thief copies it (a lost and a doubled task otherwise).
// sched.R3. Two thieves at once: one gives up.
// sched.R4. Overflow: the newer half and the new one, or the new one alone while a thief copies; nothing is lost.
// FIFO: what the owner pops, and what one thief gets, comes in the order pushed.
#include "sched/ring.hpp"

#include "item.hpp"

using explore::join_all;
using explore::thread;
using model::item;
using model::items;
using ring = weft::sched::ring<item>;
using chain = weft::sched::chain<item>;
using explore::watch_slots;

namespace {

struct taker {  // takes and checks the order
  int last = -1;
  int count = 0;
  void take(item* i) {
    if (i == nullptr) return;
    const int n = i->take();
    model_assert(n > last);
    last = n;
    ++count;
  }
  void drain(ring& r) {
    while (item* i = r.pop()) take(i);
  }
};

// Moves the indices on, so that the test crosses the end of the array.
void turn(ring& r, int by) {
  item dummy;
  chain none;
  for (int i = 0; i < by; ++i) {
    r.push(&dummy, none);
    model_assert(r.pop() == &dummy);
  }
}

}  // namespace

// req: W-4 BZ-2
MODEL_TEST(ring_owner_and_thief, .preemptions = 4) {
  items<4> all;
  watch_slots watch;
  ring mine(4), stolen(4);
  turn(mine, 3);
  turn(stolen, 2);
  taker owner, thief;
  chain overflow;
  thread([&] {
    for (int i = 0; i < 3; ++i) mine.push(all.make(i), overflow);
    owner.take(mine.pop());
    mine.push(all.make(3), overflow);
    owner.take(mine.pop());
  });
  thread([&] {
    thief.take(mine.steal_into(stolen));
    thief.drain(stolen);
  });
  join_all();
  taker rest;
  rest.drain(mine);
  model_assert(overflow.empty());
  model_assert(all.taken() == 4 && owner.count + thief.count + rest.count == 4);
}

// req: W-4 BZ-2
MODEL_TEST(ring_owner_and_two_thieves, .preemptions = 3) {
  items<4> all;
  watch_slots watch;
  ring mine(4), first(4), second(4);
  turn(mine, 2);
  chain overflow;
  mine.push(all.make(0), overflow);
  mine.push(all.make(1), overflow);
  taker owner, one, two;
  thread([&] {
    mine.push(all.make(2), overflow);
    owner.take(mine.pop());
    mine.push(all.make(3), overflow);
    owner.take(mine.pop());
  });
  thread([&] {
    one.take(mine.steal_into(first));
    one.drain(first);
  });
  thread([&] {
    two.take(mine.steal_into(second));
    two.drain(second);
  });
  join_all();
  taker rest;
  rest.drain(mine);
  model_assert(overflow.empty());
  model_assert(all.taken() == 4);
}

// A full ring meets a push while a thief comes: sched.R4 both ways, then the slots are used again (sched.R2).
// req: W-4 BZ-2
MODEL_TEST(ring_overflow_against_a_thief, .preemptions = 3) {
  items<7> all;
  watch_slots watch;
  ring mine(4), stolen(4);
  turn(mine, 1);
  chain overflow;
  for (int i = 0; i < 4; ++i) mine.push(all.make(i), overflow);
  taker owner, thief, over;
  thread([&] {
    mine.push(all.make(4), overflow);
    chain later;
    mine.push(all.make(5), later);
    mine.push(all.make(6), later);
    owner.take(mine.pop());
    while (item* i = later.pop_front()) owner.take(i);
  });
  thread([&] {
    thief.take(mine.steal_into(stolen));
    thief.drain(stolen);
  });
  join_all();
  while (item* i = overflow.pop_front()) over.take(i);
  taker rest;
  rest.drain(mine);
  model_assert(all.taken() == 7);
}

// A thief that was slow is overtaken by a second one and by the owner who fills the ring again.
// req: W-4 BZ-2
MODEL_TEST(ring_two_thieves_and_wrap, .preemptions = 3) {
  items<6> all;
  watch_slots watch;
  ring mine(4), first(4), second(4);
  chain overflow;
  for (int i = 0; i < 3; ++i) mine.push(all.make(i), overflow);
  taker owner, one, two, over;
  thread([&] {
    for (int i = 3; i < 6; ++i) {
      chain each;
      mine.push(all.make(i), each);
      while (item* t = each.pop_front()) owner.take(t);
    }
  });
  thread([&] {
    one.take(mine.steal_into(first));
    one.drain(first);
  });
  thread([&] {
    two.take(mine.steal_into(second));
    two.drain(second);
  });
  join_all();
  while (item* i = overflow.pop_front()) over.take(i);
  taker rest;
  rest.drain(mine);
  model_assert(all.taken() == 6);
}

// Thieves of thieves: what was stolen is published to the next.
// req: W-4 BZ-2
MODEL_TEST(ring_stolen_tasks_are_stolen_again, .preemptions = 3) {
  items<4> all;
  watch_slots watch;
  ring mine(4), middle(4), last(4);
  chain overflow;
  taker one, two;
  thread([&] {
    for (int i = 0; i < 4; ++i) mine.push(all.make(i), overflow);
  });
  thread([&] {
    one.take(mine.steal_into(middle));
    one.take(middle.pop());
  });
  thread([&] {
    two.take(middle.steal_into(last));
    two.drain(last);
  });
  join_all();
  taker rest, rest_of_middle;
  rest.drain(mine);
  rest_of_middle.drain(middle);
  model_assert(overflow.empty() && all.taken() == 4);
}

// A thief's own ring wraps by a steal while somebody copies from it: what was read is not overwritten before (sched.R2).
// req: W-4
MODEL_TEST(ring_steal_into_a_ring_that_is_stolen_from, .preemptions = -1) {
  items<7> all;
  watch_slots watch;
  ring victim(4), mine(4), other(4);
  chain overflow;
  for (int i = 0; i < 4; ++i) mine.push(all.make(i), overflow);
  for (int i = 4; i < 7; ++i) victim.push(all.make(i), overflow);
  taker owner, thief;
  thread([&] {
    owner.take(mine.pop());
    owner.take(mine.pop());
    owner.take(victim.steal_into(mine));
  });
  thread([&] {
    thief.take(mine.steal_into(other));
    thief.drain(other);
  });
  join_all();
  taker rest, rest_of_mine;
  rest.drain(victim);
  rest_of_mine.drain(mine);
  model_assert(overflow.empty() && all.taken() == 7);
}
