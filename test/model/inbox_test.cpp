// sched::inbox (src/sched/inbox.hpp).
//
// sched.N1. A task pushed is taken exactly once, complete, and the tasks of one pusher come in the order it pushed them.
#include "sched/inbox.hpp"

#include "item.hpp"

using explore::join_all;
using explore::thread;
using model::item;
using model::items;
using inbox = weft::sched::inbox<item>;

namespace {
// Numbers below 10 come from the first pusher, the others from the second.
struct taker {
  int last[2] = {-1, -1};
  void take_all(inbox& box) {
    auto batch = box.take_all();
    while (item* i = batch.pop_front()) {
      const int n = i->take();
      model_assert(n > last[n / 10]);
      last[n / 10] = n;
    }
  }
};
}  // namespace

MODEL_TEST(inbox_two_pushers_one_owner, .preemptions = -1) {
  items<4> all;
  inbox box;
  taker owner;
  for (int p = 0; p < 2; ++p)
    thread([&, p] {
      box.push(all[2 * p]->made(10 * p));
      box.push(all[2 * p + 1]->made(10 * p + 1));
    });
  thread([&] { owner.take_all(box); });
  join_all();
  owner.take_all(box);
  model_assert(all.taken() == 4);
}

MODEL_TEST(inbox_pusher_owner_and_thief, .preemptions = -1) {
  items<3> all;
  inbox box;
  taker owner, thief;
  thread([&] {
    for (int i = 0; i < 3; ++i) box.push(all.make(i));
  });
  thread([&] {
    owner.take_all(box);
    owner.take_all(box);
  });
  thread([&] { thief.take_all(box); });
  join_all();
  taker rest;
  rest.take_all(box);
  model_assert(all.taken() == 3 && box.empty());
}
