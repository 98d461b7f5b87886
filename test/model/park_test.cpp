// fiber_wait against whoever wakes (src/wait/fiber_wait.hpp, fiber_wait.cpp, permit.cpp; src/task/state.hpp).
// sources: wait/fiber_wait.cpp wait/stop_bridge.cpp wait/permit.cpp wait/errors.cpp wait/thread_waiter.cpp wait/join.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// wait.F1. A wake that lands at any point of the park is never lost (a deadlock here).
// task.S2. PARKED is left by exactly one winner; a task is scheduled once (scheduling it twice is reported).
// task.S3. A waker that meets PARKING leaves WP, and the commit makes the claim.
// task.S4. A cancel or permit set in any phase is seen.
// wait.N2. A waker with an old ticket changes nothing.
// wait.F2. Whoever wins, the node is on no list when fiber_wait returns, and what the winner wrote is seen.
#include "fiber.hpp"
#include "wait/permit.hpp"
#include "weft/cancelled.hpp"

namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;
using explore::join_all;
using explore::thread;
using model::event;
using weft::sched::model_task;
using weft::sched::worker;

namespace {

waits::outcome wait_for(event& e, bool interruptible = true) { return e.wait_for(interruptible); }

}  // namespace

// req: W-4 LS-P1 LS-P2 CSP-6
MODEL_TEST(park_one_waker, .preemptions = -1) {
  event e;
  base::plain<int> told{0};
  model_task t(false);
  thread([&] {
    worker::run(t, [&] {
      model_assert(wait_for(e) == waits::outcome::completed);
      model_assert(told == 1);  // what the waker did before is seen
    });
  });
  thread([&] {
    told = 1;
    e.set();
  });
  join_all();
  model_assert(e.nobody_waits());
}

// req: W-4 LS-F4 CSP-6
MODEL_TEST(park_two_wakers, .preemptions = -1) {
  event e;
  model_task t(false);
  int woke[2] = {};
  thread([&] { worker::run(t, [&] { model_assert(wait_for(e) == waits::outcome::completed); }); });
  for (int& w : woke) thread([&] { w = e.set(); });
  join_all();
  model_assert(woke[0] + woke[1] <= 1);
}

// req: W-4 LS-P3 LS-F4
MODEL_TEST(park_wake_against_cancel, .preemptions = 4) {
  event e;
  base::plain<int> told{0};
  model_task t(false);
  waits::outcome o{};
  int woke = 0;
  thread([&] {
    worker::run(t, [&] {
      o = wait_for(e);
      if (o == waits::outcome::completed) model_assert(told == 1);
    });
  });
  thread([&] {
    told = 1;
    woke = e.set();
  });
  thread([&] { waits::cancel(t); });
  join_all();
  model_assert(o == waits::outcome::completed || o == waits::outcome::cancelled);
  if (woke == 1) model_assert(o == waits::outcome::completed);  // what was handed over is not dropped
  model_assert(e.nobody_waits());
  model_assert((t.word.load() & task::state_word::cancel_requested) != 0);  // sticky
}

MODEL_TEST(park_cancel_alone_ends_the_wait, .preemptions = -1) {
  event e;
  base::plain<int> why{0};
  model_task t(false);
  thread([&] {
    worker::run(t, [&] {
      model_assert(wait_for(e) == waits::outcome::cancelled);
      model_assert(why == 1);  // what the canceller did before is seen
    });
  });
  thread([&] {
    why = 1;
    waits::cancel(t);
  });
  join_all();
  model_assert(e.nobody_waits());
}

MODEL_TEST(park_uninterruptible_wait_ignores_cancel, .preemptions = -1) {
  event e;
  model_task t(false);
  thread([&] { worker::run(t, [&] { model_assert(wait_for(e, false) == waits::outcome::completed); }); });
  thread([&] {
    waits::cancel(t);
    e.set();
  });
  join_all();
  model_assert(e.nobody_waits());
}

MODEL_TEST(park_two_cancels, .preemptions = -1) {
  event e;
  model_task t(false);
  thread([&] { worker::run(t, [&] { model_assert(wait_for(e) == waits::outcome::cancelled); }); });
  for (int i = 0; i < 2; ++i) thread([&] { waits::cancel(t); });
  join_all();
  model_assert(e.nobody_waits());
}

// A waker that remembers the ticket of the first wait, as a timer does, comes at any later time.
// req: W-4 LS-T1
MODEL_TEST(park_old_ticket_does_not_end_the_next_wait, .preemptions = 4) {
  event first, second;
  model_task t(false);
  base::plain<bool> second_is_due{false};
  const task::ticket of_first = task::state_word::ticket_of(t.word.peek()) + 1;
  thread([&] {
    worker::run(t, [&] {
      (void)wait_for(first);
      (void)wait_for(second);
      model_assert(second_is_due == true);  // ended by its own event and by nothing else
    });
  });
  thread([&] {
    first.set();
    second_is_due = true;
    second.set();
  });
  thread([&] {
    // What a timer would do: claim by ticket, without the object's lock.
    if (t.word.wake(of_first) == task::wake_result::claimed) {
      t.wake_value = task::wake_value(task::wake_reason::none, 0);
      weft::sched::scheduler::schedule(&t);
    }
  });
  join_all();
  model_assert(first.nobody_waits() && second.nobody_waits());
}

MODEL_TEST(park_permit, .preemptions = -1) {
  base::atomic<bool> ready{false};
  base::plain<int> told{0};
  model_task t(false);
  thread([&] {
    worker::run(t, [&] {
      while (!ready.load(base::relaxed))
        waits::park_if([](const void* r) { return !static_cast<const base::atomic<bool>*>(r)->load(base::relaxed); },
                       &ready, {});
    });
  });
  thread([&] {
    told = 1;
    ready.store(true, base::relaxed);
    waits::unpark(t);
  });
  join_all();
}

// unpark() alone hands over: the permit is acquired.
MODEL_TEST(park_permit_publishes, .preemptions = -1) {
  base::plain<int> told{0};
  model_task t(false);
  thread([&] {
    worker::run(t, [&] {
      waits::park_if([](const void*) { return true; }, nullptr, {});
      model_assert(told == 1);
    });
  });
  thread([&] {
    told = 1;
    waits::unpark(t);
  });
  join_all();
}

MODEL_TEST(park_permit_does_not_disturb_another_wait, .preemptions = 4) {
  event e;
  base::plain<bool> due{false};
  model_task t(false);
  thread([&] {
    worker::run(t, [&] {
      (void)wait_for(e);
      model_assert(due == true);
      waits::park_if([](const void*) { return true; }, nullptr, {});  // the permit is still there, or comes
    });
  });
  thread([&] { waits::unpark(t); });
  thread([&] {
    due = true;
    e.set();
  });
  join_all();
}

MODEL_TEST(park_permit_against_cancel, .preemptions = -1) {
  model_task t(false);
  bool cancelled = false;
  thread([&] {
    worker::run(t, [&] {
      try {
        waits::park_if([](const void*) { return true; }, nullptr, {});
      } catch (const weft::cancelled&) {
        cancelled = true;
      }
    });
  });
  thread([&] { waits::unpark(t); });
  thread([&] { waits::cancel(t); });
  join_all();
}

// Several fibers on one waitable: each is woken once, or was cancelled, and none stays on the list.
// req: W-4 LS-P1
MODEL_TEST(park_two_waiters_against_wake_and_cancel, .preemptions = 3) {
  event e;
  waits::outcome o[2] = {};
  model::fiber first([&] { o[0] = wait_for(e); });
  model::fiber second([&] { o[1] = wait_for(e); });
  int woke = 0;
  thread([&] { woke = e.set(); });
  thread([&] { first.cancel(); });
  join_all();
  model_assert(o[1] == waits::outcome::completed && woke <= 2 && e.nobody_waits());
}
