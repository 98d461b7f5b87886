// The mutex: lock and unlock against waiters, hand-over against cancel and time-out (src/sync/mutex).
// sources: sync/mutex.cpp sync/caller.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// sync.M1. One at a time, and each sees what those before it did (a data race here).
// sync.M2. No wake is lost, whoever gives up (a deadlock here).
// sync.M5. Who takes the mutex next may destroy it (use after its end here).
#include "sync/mutex.hpp"

#include "sync.hpp"

using namespace model;

namespace {

struct counted {
  locks::mutex_core mutex;
  base::plain<int> count{0};

  void add() {
    locks::lock(mutex, {});
    count = count + 1;
    locks::unlock(mutex);
  }
  bool add_until(base::time_ns when) {
    if (!locks::lock_until(mutex, at(when), {})) return false;
    count = count + 1;
    locks::unlock(mutex);
    return true;
  }
  // When all have ended.
  void expect(int n) {
    model_assert(mutex.is_idle());
    model_assert(count == n);
  }
};

}  // namespace

// req: BZ-13
MODEL_TEST(mutex_two_tasks, .preemptions = -1) {
  counted c;
  fiber a([&] { c.add(); });
  fiber b([&] { c.add(); });
  join_all();
  c.expect(2);
}

// req: BZ-13
MODEL_TEST(mutex_two_waiters_and_one_who_holds_it) {
  counted c;
  locks::lock(c.mutex, {});
  fiber a([&] { c.add(); });
  fiber b([&] { c.add(); });
  locks::unlock(c.mutex);
  join_all();
  c.expect(2);
}

// One that locks again and again beats the one that waits once, and then hands over.
// req: BZ-13
MODEL_TEST(mutex_a_waiter_is_not_beaten_for_ever) {
  counted c;
  fiber barger([&] {
    c.add();
    c.add();
    c.add();
  });
  fiber waiter([&] { c.add(); });
  join_all();
  c.expect(4);
}

// req: BZ-13
MODEL_TEST(mutex_a_task_and_a_thread) {
  counted c;
  fiber a([&] {
    c.add();
    c.add();
  });
  thread([&] { c.add(); });
  join_all();
  c.expect(3);
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(mutex_cancel_of_a_waiter_at_every_step) {
  counted c;
  bool got = false;
  locks::lock(c.mutex, {});
  fiber waiter([&] {
    c.add();
    got = true;
  });
  thread([&] { waiter.cancel(); });
  locks::unlock(c.mutex);
  join_all();
  model_assert(got != waiter.cancelled);
  c.expect(got ? 1 : 0);
}

// Two wait; the first is cancelled while it is woken. The other gets the mutex all the same.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(mutex_a_cancelled_waiter_passes_its_wake_on, .old_reads = 1) {
  counted c;
  locks::lock(c.mutex, {});
  fiber first([&] { c.add(); });
  fiber second([&] { c.add(); });
  explore::when_quiet();
  thread([&] { first.cancel(); });
  locks::unlock(c.mutex);
  join_all();
  c.expect(first.cancelled ? 1 : 2);
}

// The same with somebody who takes the mutex in between.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(mutex_a_cancelled_waiter_and_one_who_barges, .old_reads = 0) {
  counted c;
  locks::lock(c.mutex, {});
  fiber first([&] { c.add(); });
  fiber second([&] { c.add(); });
  explore::when_quiet();
  thread([&] { first.cancel(); });
  locks::unlock(c.mutex);
  c.add();
  join_all();
  c.expect(first.cancelled ? 2 : 3);
}

// The one woken is beaten, waits at the head of the list, and is cancelled when the mutex is about to be handed over.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(mutex_cancel_against_hand_over, .old_reads = 1) {
  counted c;
  bool got = false;
  fiber barger([&] {
    c.add();
    c.add();
  });
  fiber waiter([&] {
    c.add();
    got = true;
  });
  thread([&] { waiter.cancel(); });
  join_all();
  model_assert(got != waiter.cancelled);
  c.expect(got ? 3 : 2);
}

// req: BZ-13 BZ-11 LS-P3
MODEL_TEST(mutex_a_waiter_whose_time_is_up_passes_its_wake_on, .old_reads = 1) {
  counted c;
  weft::timing::wheel w;
  bool got = false;
  locks::lock(c.mutex, {});
  fiber late([&] { got = c.add_until(begin + 3 * tick); }, &w);
  fiber other([&] { c.add(); });
  explore::when_quiet();
  thread([&] { fire(w, begin + 5 * tick); });
  locks::unlock(c.mutex);
  join_all();
  c.expect(got ? 2 : 1);
}

// req: BZ-13 BZ-11 LS-P3
MODEL_TEST(mutex_time_out_against_hand_over, .old_reads = 1) {
  counted c;
  weft::timing::wheel w;
  bool got = false;
  fiber barger([&] {
    c.add();
    c.add();
  });
  fiber late([&] { got = c.add_until(begin + 3 * tick); }, &w);
  thread([&] { fire(w, begin + 5 * tick); });
  join_all();
  c.expect(got ? 3 : 2);
}

// req: BZ-13 BZ-11
MODEL_TEST(mutex_time_out_of_a_thread) {
  counted c;
  bool got = false;
  fiber holder([&] {
    c.add();
    c.add();
  });
  thread([&] { got = c.add_until(begin + 3 * tick); });
  join_all();
  c.expect(got ? 3 : 2);
}

// As a count of references under a mutex does: the last to unlock destroys it, though others are still inside of their unlock().
void last_one_destroys(int tasks, bool with_cancel) {
  struct shared {
    locks::mutex_core mutex;
    base::plain<int> left;
  };
  shared* s = new shared{{}, tasks};
  const auto leave = [s] {
    locks::lock(s->mutex, {});
    s->left = s->left - 1;
    const bool last = s->left == 0;
    locks::unlock(s->mutex);
    if (last) delete s;
  };
  const auto leave_uninterrupted = [s] {
    locks::relock(s->mutex, {});
    s->left = s->left - 1;
    const bool last = s->left == 0;
    locks::unlock(s->mutex);
    if (last) delete s;
  };
  fiber a(leave);
  fiber b([=] {
    try {
      leave();
    } catch (const weft::cancelled&) {
      leave_uninterrupted();
      throw;
    }
  });
  if (with_cancel) thread([&] { b.cancel(); });
  join_all();
}

// req: BZ-13
MODEL_TEST(mutex_the_last_one_destroys) { last_one_destroys(2, false); }
// req: BZ-13 CC-10
MODEL_TEST(mutex_the_last_one_destroys_after_a_cancel, .old_reads = 1) { last_one_destroys(2, true); }
