// Scopes (src/scope/core.*): children's ends, spawns and cancellations against the owner that waits and leaves.
// sources: scope/core.cpp scope/failures.cpp scope/errors.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/errors.cpp wait/thread_waiter.cpp wait/join.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// scope.G1. The owner leaves when the last child has ended, is woken once, and what it frees then nobody touches.
// scope.G2. A spawn is counted or refused.
// scope.G3. Whoever is admitted to a cancelled scope, before or after, is cancelled.
// scope.G4. Leaving takes back the scope's own cancellation and no other.
#include "event.hpp"
#include "explore/explore.hpp"
#include "offspring.hpp"
#include "sched/scheduler.hpp"
#include "scope/core.hpp"

namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;
using explore::join_all;
using explore::thread;
using model::is_cancelled;
using model::offspring;
using weft::detail::scope_core;
using weft::sched::model_task;
using weft::sched::worker;

namespace {

scope_core* opened_by(task::record& owner) {
  auto* s = new scope_core(*owner.owner, &owner, weft::failures::cancel_rest, {});
  s->open();
  return s;
}

void close(scope_core* s) {
  s->drain();
  s->leave();
  s->drop_reference();
}

// Somebody spawns while the owner waits and leaves: refused, or ended before the owner goes on.
struct late_spawn {
  void race(model_task& owner, scope_core* s) {
    s->add_reference();
    thread([this, s] {
      if (s->admit(child.place)) {
        admitted.store(true, base::relaxed);
        done = 1;
        child.end();
      }
      s->drop_reference();
    });
    thread([this, &owner, s] {
      worker::run(owner, [&] {
        s->drain();
        if (admitted.load(base::relaxed)) model_assert(done == 1);
        s->leave();
        s->drop_reference();
      });
    });
  }
  offspring child;
  base::plain<int> done{0};
  base::atomic<bool> admitted{false};
};

}  // namespace

// req: W-4 LS-N1 W-3
MODEL_TEST(scope_two_children_end_while_the_owner_waits, .preemptions = 4) {
  model_task owner(false);
  offspring first, second;
  base::plain<int> done_by_first{0}, done_by_second{0};
  scope_core* s = opened_by(owner);
  model_assert(s->admit(first.place) && s->admit(second.place));
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
      close(s);
      model_assert(done_by_first == 1 && done_by_second == 1);
    });
  });
  join_all();
}

// req: W-4 W-3
MODEL_TEST(scope_spawn_against_close, .preemptions = -1) {
  model_task owner(false);
  late_spawn spawn;
  spawn.race(owner, opened_by(owner));
  join_all();
}

// req: W-4 W-3
MODEL_TEST(scope_spawn_against_the_last_child, .preemptions = 4) {
  model_task owner(false);
  offspring first;
  late_spawn spawn;
  scope_core* s = opened_by(owner);
  model_assert(s->admit(first.place));
  thread([&] { first.end(); });
  spawn.race(owner, s);
  join_all();
}

// req: W-4 W-3
MODEL_TEST(scope_reservation_against_close, .preemptions = -1) {
  model_task owner(false);
  base::plain<bool> owner_is_there{true};
  scope_core* s = opened_by(owner);
  s->add_reference();
  thread([&] {
    if (s->reserve()) {
      model_assert(owner_is_there);
      s->release();
    }
    s->drop_reference();
  });
  thread([&] {
    worker::run(owner, [&] {
      close(s);
      owner_is_there = false;
    });
  });
  join_all();
}

// req: W-4 W-3 LS-P3
MODEL_TEST(scope_cancel_against_spawn, .preemptions = -1) {
  model_task owner(false);
  offspring child;
  scope_core* s = opened_by(owner);
  thread([&] { s->cancel(); });
  thread([&] { model_assert(s->admit(child.place)); });
  join_all();
  model_assert(is_cancelled(child) && is_cancelled(owner));
  child.end();
  worker::run(owner, [&] { close(s); });
  model_assert(!is_cancelled(owner));
}

// req: W-4 W-3 LS-P3
MODEL_TEST(scope_cancel_at_every_step_of_a_childs_wait, .preemptions = 4) {
  model_task owner(false);
  offspring child;
  model::event never;
  scope_core* s = opened_by(owner);
  model_assert(s->admit(child.place));
  s->add_reference();
  thread([&] {
    s->cancel();
    s->drop_reference();
  });
  thread([&] { child.wait_for_ever(never); });
  thread([&] { worker::run(owner, [&] { close(s); }); });
  join_all();
  model_assert(!is_cancelled(owner));
}

// req: W-4 W-3 LS-P3
MODEL_TEST(scope_owner_is_cancelled_while_it_waits, .preemptions = 4) {
  model_task owner(false);
  offspring child;
  model::event never;
  scope_core* s = opened_by(owner);
  model_assert(s->admit(child.place));
  thread([&] { waits::cancel(owner); });
  thread([&] { child.wait_for_ever(never); });
  thread([&] { worker::run(owner, [&] { close(s); }); });
  join_all();
  model_assert(is_cancelled(owner));
}

// req: W-4 W-3
MODEL_TEST(scope_outer_is_cancelled_while_the_inner_one_is_left, .preemptions = -1) {
  model_task owner(false);
  scope_core* outer = opened_by(owner);
  scope_core* inner = opened_by(owner);
  inner->cancel();
  thread([&] { outer->cancel(); });
  thread([&] { worker::run(owner, [&] { close(inner); }); });
  join_all();
  model_assert(is_cancelled(owner));
  worker::run(owner, [&] { close(outer); });
  model_assert(!is_cancelled(owner));
}

// req: W-4 W-3
MODEL_TEST(scope_is_left_while_its_task_is_cancelled, .preemptions = -1) {
  model_task owner(false);
  scope_core* s = opened_by(owner);
  s->cancel();
  thread([&] { waits::cancel(owner); });
  thread([&] { worker::run(owner, [&] { close(s); }); });
  join_all();
  model_assert(is_cancelled(owner));
}

// req: W-4 W-3
MODEL_TEST(scope_is_cancelled_while_it_is_left, .preemptions = -1) {
  model_task owner(false);
  scope_core* s = opened_by(owner);
  s->add_reference();
  thread([&] {
    s->cancel();
    s->drop_reference();
  });
  thread([&] {
    worker::run(owner, [&] { close(s); });
    model_assert(!is_cancelled(owner));
  });
  join_all();
  model_assert(!is_cancelled(owner));
}
