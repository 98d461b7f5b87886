// Task groups (src/scope/group.*): the end of a round against children that end, fail and spawn, against cancellation of the group and
// of its owner, and against the deadline.
// sources: scope/core.cpp scope/group.cpp scope/failures.cpp scope/errors.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/errors.cpp wait/thread_waiter.cpp wait/join.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// scope.G6. Nothing of a round reaches the next one. scope.G7. A deadline that is being rung ends with the round it was set in.
// scope.G1. The owner goes on when the last child has ended, and what it frees then nobody touches.
#include "event.hpp"
#include "explore/explore.hpp"
#include "offspring.hpp"
#include "sched/alarm.hpp"
#include "sched/scheduler.hpp"
#include "scope/group.hpp"

namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;
using explore::join_all;
using explore::thread;
using model::is_cancelled;
using model::offspring;
using weft::detail::group_core;
using weft::sched::model_task;
using weft::sched::worker;

namespace {

group_core* made_by(const task::record& owner) { return new group_core(*owner.owner, weft::failures::cancel_rest, {}); }

void leave(group_core* g) {
  (void)g->end();
  g->drop_reference();
}

// A child of a new round, which nobody cancels, is not cancelled.
void check_next_round(group_core* g, offspring& next) {
  model_assert(g->admit(next.place));
  model_assert(!is_cancelled(next));
  next.end();
}

// Rings when it is told to, at most once.
class bell final : public weft::sched::timer_source {
 public:
  [[nodiscard]] base::time_ns next_deadline() const noexcept override { return base::never_ns; }
  std::size_t fire(base::time_ns, std::size_t, weft::sched::fired_timers&) noexcept override { return 0; }
  void insert(weft::timing::entry&) noexcept override {}
  void remove(weft::timing::entry&) noexcept override {}
  void set(weft::sched::alarm& a, base::time_ns) noexcept override {
    base::lock_guard guard(lock_);
    set_ = &a;
  }
  [[nodiscard]] bool clear(weft::sched::alarm&) noexcept override {
    base::lock_guard guard(lock_);
    return std::exchange(set_, nullptr) != nullptr;
  }
  void ring() {
    lock_.acquire();
    weft::sched::alarm* a = std::exchange(set_, nullptr);
    lock_.release();
    if (a != nullptr) a->ring();
  }

 private:
  weft::sched::alarm* set_ = nullptr;
};

}  // namespace

// req: W-4 UX-5
MODEL_TEST(group_two_children_end_while_the_owner_joins_and_leaves, .preemptions = 4) {
  model_task owner(false);
  offspring first, second;
  base::plain<int> done_by_first{0}, done_by_second{0};
  group_core* g = made_by(owner);
  model_assert(g->admit(first.place) && g->admit(second.place));
  thread([&] {
    done_by_first = 1;
    first.end();
  });
  thread([&] {
    done_by_second = 1;
    second.end();
  });
  thread([&] {
    worker::run(owner, [&] {
      const group_core::round ended = g->end_round({});
      model_assert(done_by_first == 1 && done_by_second == 1);
      model_assert(ended.cut_short() == 0);
      leave(g);
    });
  });
  join_all();
}

// req: W-4 UX-5
MODEL_TEST(group_of_an_outside_thread, .preemptions = 4) {
  model_task some(false);
  offspring child;
  base::plain<int> done{0};
  group_core* g = made_by(some);
  model_assert(g->admit(child.place));
  thread([&] {
    done = 1;
    child.end();
  });
  thread([&] {
    (void)g->end_round({});
    model_assert(done == 1);
    leave(g);
  });
  join_all();
}

// Somebody who is neither owner nor child spawns while the owner ends a round and leaves: refused, or ended before the owner goes on.
// req: W-4 UX-5
MODEL_TEST(group_spawn_by_another_against_the_end_of_a_round, .preemptions = 4) {
  model_task owner(false);
  offspring child;
  base::plain<int> done{0};
  base::atomic<bool> admitted{false};
  group_core* g = made_by(owner);
  g->add_reference();
  thread([&] {
    if (g->admit(child.place)) {
      admitted.store(true, base::relaxed);
      done = 1;
      child.end();
    }
    g->drop_reference();
  });
  thread([&] {
    worker::run(owner, [&] {
      (void)g->end_round({});
      (void)g->end();
      if (admitted.load(base::relaxed)) model_assert(done == 1);
      g->drop_reference();
    });
  });
  join_all();
}

// A round does not end while such a child is in it: the child's cancellation, and that it was cut short, would be
// forgotten.
MODEL_TEST(group_a_child_of_another_is_counted_in_the_round_that_was_cancelled, .preemptions = 4) {
  model_task owner(false);
  offspring child;
  std::size_t ended_by_cancellation = 0, counted = 0;
  group_core* g = made_by(owner);
  g->add_reference();
  thread([&] {
    if (g->admit(child.place)) {
      g->cancel();
      ended_by_cancellation = 1;
      child.end(task::phase::cancelled);
    }
    g->drop_reference();
  });
  thread([&] {
    worker::run(owner, [&] {
      counted += g->end_round({}).cut_short();
      counted += g->end().cut_short();
      g->drop_reference();
    });
  });
  join_all();
  model_assert(counted == ended_by_cancellation);
}

// A child that spawns another as its last step: the round ends after both.
// req: W-4 UX-5
MODEL_TEST(group_late_spawn_by_the_last_child, .preemptions = 4) {
  model_task owner(false);
  offspring first, second;
  base::plain<int> done{0};
  group_core* g = made_by(owner);
  model_assert(g->admit(first.place));
  thread([&] {
    model_assert(g->admit(second.place));
    first.end();
    done = 1;
    second.end();
  });
  thread([&] {
    worker::run(owner, [&] {
      (void)g->end_round({});
      model_assert(done == 1);
      leave(g);
    });
  });
  join_all();
}

// req: W-4 UX-5
MODEL_TEST(group_a_child_fails_while_its_sibling_waits_and_the_owner_joins, .preemptions = 3) {
  model_task owner(false);
  offspring failing, waiting, next;
  model::event never;
  group_core* g = made_by(owner);
  model_assert(g->admit(failing.place) && g->admit(waiting.place));
  thread([&] { failing.fail(); });
  thread([&] { waiting.wait_for_ever(never); });
  thread([&] {
    worker::run(owner, [&] {
      {
        group_core::round ended = g->end_round({});
        model_assert(ended.failed().take() != nullptr);
        model_assert(ended.cut_short() == 1);
        model_assert(!is_cancelled(owner));
      }
      check_next_round(g, next);
      group_core::round last = g->end_round({});
      model_assert(last.failed().take() == nullptr && last.cut_short() == 0);
      leave(g);
    });
  });
  join_all();
}

// The group's cancellation hits this round or the next, not both.
// req: W-4 UX-5
MODEL_TEST(group_cancel_against_the_end_of_a_round, .preemptions = 4) {
  model_task owner(false);
  offspring child, next;
  group_core* g = made_by(owner);
  model_assert(g->admit(child.place));
  g->add_reference();
  thread([&] {
    g->cancel();
    g->drop_reference();
  });
  thread([&] { child.end(); });
  thread([&] {
    worker::run(owner, [&] {
      (void)g->end_round({});
      model_assert(g->admit(next.place));
      next.end();
      (void)g->end_round({});
      leave(g);
    });
  });
  join_all();
  model_assert(!is_cancelled(owner));
  model_assert(!is_cancelled(child) || !is_cancelled(next));
}

// req: W-4 UX-5
MODEL_TEST(group_owner_is_cancelled_while_it_joins, .preemptions = 4) {
  model_task owner(false);
  offspring child;
  model::event never;
  group_core* g = made_by(owner);
  model_assert(g->admit(child.place));
  thread([&] { waits::cancel(owner); });
  thread([&] { child.wait_for_ever(never); });
  thread([&] {
    worker::run(owner, [&] {
      model_assert(g->end_round({}).cut_short() == 1);
      leave(g);
    });
  });
  join_all();
  model_assert(is_cancelled(owner));
}

// req: W-4 UX-5
MODEL_TEST(group_is_left_while_its_owner_is_cancelled, .preemptions = 4) {
  model_task owner(false);
  offspring child;
  model::event never;
  group_core* g = made_by(owner);
  model_assert(g->admit(child.place));
  thread([&] { waits::cancel(owner); });
  thread([&] { child.wait_for_ever(never); });
  thread([&] {
    worker::run(owner, [&] {
      model_assert(g->end().cut_short() == 1);
      g->drop_reference();
    });
  });
  join_all();
}

// req: W-4 UX-5
MODEL_TEST(group_deadline_rings_while_its_round_ends, .preemptions = -1) {
  model_task owner(false);
  bell timers;
  owner.timers = &timers;
  offspring next;
  group_core* g = made_by(owner);
  worker::run(owner, [&] { g->cancel_at(base::never_ns - 1); });
  thread([&] { timers.ring(); });
  thread([&] {
    worker::run(owner, [&] {
      (void)g->end_round({});
      check_next_round(g, next);
      leave(g);
    });
  });
  join_all();
  model_assert(!is_cancelled(next));
}

// The same alarm is set again as soon as the round has ended.
// req: W-4 UX-5
MODEL_TEST(group_deadline_is_set_anew_in_the_next_round, .preemptions = 4) {
  model_task owner(false);
  bell timers;
  owner.timers = &timers;
  group_core* g = made_by(owner);
  worker::run(owner, [&] { g->cancel_at(base::never_ns - 1); });
  thread([&] { timers.ring(); });
  thread([&] {
    worker::run(owner, [&] {
      (void)g->end_round({});
      g->cancel_at(base::never_ns - 1);
      leave(g);
    });
  });
  join_all();
}
