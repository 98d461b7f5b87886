// The turns of a dispatcher (src/sched/lane.hpp): enter, leave, move.
// sources: task/state.cpp
// abstract lock
//
// sched.L1. No more run than there are turns: with one turn, two at once are a data race here.
// sched.L2. First come, first served.
// sched.L3. Who waits gets a turn: a deadlock otherwise.
// sched.L4. The last reference frees the lane, once.
#include "sched/lane.hpp"

#include "explore/explore.hpp"

using explore::join_all;
using explore::thread;
namespace base = weft::base;
namespace task = weft::task;
using weft::sched::lane;

namespace {

// A task as the lane sees it, on a virtual thread of its own.
struct member : task::fiber {
  member() : fiber(task::ticket{0}) {}
  base::atomic<std::uint32_t> has_turn{0};

  void enter(lane& l) {
    if (l.enter(this)) return;
    while (has_turn.load(base::acquire) == 0) base::futex_wait(has_turn, 0);
    has_turn.store(0, base::relaxed);
  }
  static void leave(lane& l) {
    auto* next = static_cast<member*>(l.leave());
    if (next == nullptr) return;
    next->has_turn.store(1, base::release);
    base::futex_wake(&next->has_turn, 1);
  }
};

}  // namespace

// req: W-4 KC-1
MODEL_TEST(lane_of_one_excludes, .preemptions = 3) {
  lane l(1);
  member all[3];
  base::plain<int> inside{0};
  for (member& m : all)
    thread([&] {
      m.enter(l);
      inside = inside + 1;
      member::leave(l);
    });
  join_all();
  model_assert(inside == 3);
}

// One that comes back, as after a yield.
// req: W-4 KC-1
MODEL_TEST(lane_is_entered_again, .preemptions = 3) {
  lane l(1);
  member all[2];
  base::plain<int> inside{0};
  for (member& m : all)
    thread([&] {
      for (int i = 0; i < 2; ++i) {
        m.enter(l);
        inside = inside + 1;
        member::leave(l);
      }
    });
  join_all();
  model_assert(inside == 4);
}

// A running task that moves over takes a free turn, or waits as the others do.
// req: W-4 KC-2
MODEL_TEST(lane_move_against_enter, .preemptions = -1) {
  lane l(1);
  member all[2];
  base::plain<int> inside{0};
  thread([&] {
    if (!l.try_enter()) all[0].enter(l);
    inside = inside + 1;
    member::leave(l);
  });
  thread([&] {
    all[1].enter(l);
    inside = inside + 1;
    member::leave(l);
  });
  join_all();
  model_assert(inside == 2);
}

// req: W-4 KC-1
MODEL_TEST(lane_of_two_lets_two_in, .preemptions = 3) {
  lane l(2);
  member all[3];
  base::atomic<int> inside{0};
  for (member& m : all)
    thread([&] {
      m.enter(l);
      model_assert(inside.fetch_add(1, base::relaxed) < 2);
      inside.fetch_sub(1, base::relaxed);
      member::leave(l);
    });
  join_all();
}

// req: W-4 KC-2
MODEL_TEST(lane_goes_with_its_last_reference, .preemptions = -1) {
  auto* l = new lane(1);
  member all[2];
  base::plain<int> inside{0};
  for (member& m : all) {
    l->add_reference();
    thread([&inside, &m, l] {
      m.enter(*l);
      inside = inside + 1;
      member::leave(*l);
      l->drop_reference();
    });
  }
  l->drop_reference();
  join_all();
  model_assert(inside == 2);
}
