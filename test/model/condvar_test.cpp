// The condition variable: notify against wait and cancel (src/sync/condition_variable).
// sources: sync/condition_variable.cpp sync/mutex.cpp sync/caller.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// sync.V1. A notification after the mutex was let go of is not missed (a deadlock here).
// sync.V2. A waiter that is cancelled takes none with it (a deadlock here).
// sync.V3. The mutex is held when a wait ends, however it ends (a data race here).
#include "sync/condition_variable.hpp"

#include "sync.hpp"

using namespace model;

namespace {

struct condition {
  locks::mutex_core mutex;
  locks::condition_core changed;
  base::plain<int> tokens{0};

  // Takes a token; waits for one if need be.
  void take() {
    locks::lock(mutex, {});
    try {
      while (tokens == 0) locks::wait(changed, mutex, {});
    } catch (...) {
      tokens = tokens + 0;  // sync.V3
      locks::unlock(mutex);
      throw;
    }
    tokens = tokens - 1;
    locks::unlock(mutex);
  }
  void put() {
    locks::lock(mutex, {});
    tokens = tokens + 1;
    locks::unlock(mutex);
    changed.notify_one();
  }
};

}  // namespace

// req: BZ-13
MODEL_TEST(condvar_notify_against_wait) {
  condition c;
  fiber taker([&] { c.take(); });
  fiber putter([&] { c.put(); });
  join_all();
  model_assert(c.mutex.is_idle() && !c.changed.is_waited_for() && c.tokens == 0);
}

// req: BZ-13
MODEL_TEST(condvar_two_takers, .preemptions = 3, .old_reads = 1) {
  condition c;
  fiber a([&] { c.take(); });
  fiber b([&] { c.take(); });
  explore::when_quiet();
  thread([&] { c.put(); });
  c.put();
  join_all();
  model_assert(c.mutex.is_idle() && !c.changed.is_waited_for() && c.tokens == 0);
}

// req: BZ-13
MODEL_TEST(condvar_notify_all, .preemptions = 3, .old_reads = 1) {
  condition c;
  fiber a([&] { c.take(); });
  fiber b([&] { c.take(); });
  explore::when_quiet();
  locks::lock(c.mutex, {});
  c.tokens = 2;
  locks::unlock(c.mutex);
  c.changed.notify_all();
  join_all();
  model_assert(c.mutex.is_idle() && c.tokens == 0);
}

// The waiter is about to park, or parked: a notification that meets a cancelled waiter goes to the other one.
MODEL_TEST(condvar_a_cancelled_waiter_passes_the_notification_on, .old_reads = 1) {
  condition c;
  fiber leaves([&] { c.take(); });
  explore::when_quiet();
  fiber other([&] { c.take(); });
  explore::when_quiet();
  thread([&] { leaves.cancel(); });
  c.put();
  explore::when_quiet();
  if (!leaves.cancelled) c.put();
  join_all();
  model_assert(c.mutex.is_idle() && !c.changed.is_waited_for() && c.tokens == 0);
}

// Wherever on its way the first one is when it is cancelled and notified: the other one is woken.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(condvar_cancel_at_every_step_of_the_wait, .old_reads = 0) {
  condition c;
  base::atomic<bool> left{false};
  const auto wait_once = [&] {
    locks::lock(c.mutex, {});
    c.tokens = c.tokens + 1;
    try {
      locks::wait(c.changed, c.mutex, {});
    } catch (const weft::cancelled&) {
      left.store(true, base::relaxed);
    }
    locks::unlock(c.mutex);
  };
  fiber first(wait_once);
  fiber other(wait_once);
  for (int waiting = 0; waiting < 2; base::cpu_relax()) {
    locks::lock(c.mutex, {});
    waiting = c.tokens;
    locks::unlock(c.mutex);
  }
  first.cancel();
  c.changed.notify_one();
  explore::when_quiet();
  if (!left.load(base::relaxed)) c.changed.notify_one();  // the first one was told before it knew that it was cancelled
  join_all();
  model_assert(c.mutex.is_idle() && !c.changed.is_waited_for());
}

// The same when the notification comes before the waiter has parked: one that was used is not passed on.
MODEL_TEST(condvar_a_notification_wakes_one, .old_reads = 0) {
  condition c;
  base::atomic<int> woken{0};
  const auto wait_once = [&] {
    locks::lock(c.mutex, {});
    c.tokens = c.tokens + 1;
    locks::wait(c.changed, c.mutex, {});
    woken.fetch_add(1, base::relaxed);
    locks::unlock(c.mutex);
  };
  fiber first(wait_once);
  fiber other(wait_once);
  for (int waiting = 0; waiting < 2; base::cpu_relax()) {
    locks::lock(c.mutex, {});
    waiting = c.tokens;
    locks::unlock(c.mutex);
  }
  c.changed.notify_one();
  explore::when_quiet();
  model_assert(woken.load(base::relaxed) == 1);
  c.changed.notify_one();
  join_all();
  model_assert(c.mutex.is_idle() && !c.changed.is_waited_for());
}

// req: BZ-13 BZ-11
MODEL_TEST(condvar_time_out_against_notify, .old_reads = 1) {
  condition c;
  weft::timing::wheel w;
  bool in_time = false;
  fiber late(
      [&] {
        locks::lock(c.mutex, {});
        if (c.tokens == 0) in_time = locks::wait_until(c.changed, c.mutex, at(begin + 3 * tick), {});
        (void)c.tokens.get();
        locks::unlock(c.mutex);
      },
      &w);
  fiber putter([&] { c.put(); });
  thread([&] { fire(w, begin + 5 * tick); });
  join_all();
  model_assert(c.mutex.is_idle() && !c.changed.is_waited_for());
}
