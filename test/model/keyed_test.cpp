// keyed_mutex (include/weft/keyed_mutex.hpp): hand-over on one key against cancel and time-out, the end of an entry against newcomers.
// sources: sync/keyed_mutex.cpp sync/mutex.cpp sync/caller.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// One at a time holds a key (a data race here); nobody waits for ever (a deadlock); an entry ends with its last user and not before
// (use after its end), and none is left behind.
#include <weft/keyed_mutex.hpp>

#include "sync.hpp"

using namespace model;

namespace {

struct by_key {
  weft::keyed_mutex<int> locks;
  base::plain<int> count{0};  // under key 1

  void add() {
    const auto held = locks.lock(1);
    count = count + 1;
  }
  void expect(int n) {
    model_assert(count == n);
    model_assert(locks.size() == 0);
  }
};

}  // namespace

// The last holder takes the entry out while another comes for it.
// req: BZ-13
MODEL_TEST(keyed_the_last_holder_against_a_newcomer) {
  by_key k;
  fiber a([&] { k.add(); });
  fiber b([&] { k.add(); });
  join_all();
  k.expect(2);
}

// req: BZ-13
MODEL_TEST(keyed_a_holder_and_a_thread_that_does_not_wait) {
  by_key k;
  bool got = false;
  fiber a([&] { k.add(); });
  thread([&] {
    if (const auto held = k.locks.try_lock(1)) {
      k.count = k.count + 1;
      got = true;
    }
  });
  join_all();
  k.expect(got ? 2 : 1);
}

// req: BZ-13
MODEL_TEST(keyed_two_keys, .old_reads = 1) {
  by_key k;
  fiber a([&] { k.add(); });
  fiber b([&] {
    const auto held = k.locks.lock(2);
    k.add();
  });
  join_all();
  k.expect(2);
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(keyed_cancel_against_the_hand_over_of_a_key, .old_reads = 1) {
  by_key k;
  bool got = false;
  auto held = k.locks.lock(1);
  fiber waiter([&] {
    k.add();
    got = true;
  });
  explore::when_quiet();
  thread([&] { waiter.cancel(); });
  held.unlock();
  join_all();
  model_assert(got != waiter.cancelled);
  k.expect(got ? 1 : 0);
}

// The wake of the one that leaves goes to the other.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(keyed_a_cancelled_waiter_passes_the_key_on, .old_reads = 0) {
  by_key k;
  auto held = k.locks.lock(1);
  fiber leaves([&] { k.add(); });
  explore::when_quiet();
  fiber stays([&] { k.add(); });
  explore::when_quiet();
  thread([&] { leaves.cancel(); });
  held.unlock();
  join_all();
  k.expect(leaves.cancelled ? 1 : 2);
}

// The one that was woken is beaten by a newcomer and cancelled: the newcomer finds its entry, or makes one.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(keyed_a_cancelled_waiter_against_a_newcomer, .old_reads = 0) {
  by_key k;
  auto held = k.locks.lock(1);
  fiber leaves([&] { k.add(); });
  explore::when_quiet();
  held.unlock();
  thread([&] { leaves.cancel(); });
  fiber newcomer([&] { k.add(); });
  join_all();
  k.expect(leaves.cancelled ? 1 : 2);
}

// req: BZ-13 BZ-11 LS-P3
MODEL_TEST(keyed_time_out_against_the_hand_over_of_a_key, .old_reads = 1) {
  by_key k;
  weft::timing::wheel w;
  bool got = false;
  auto held = k.locks.lock(1);
  fiber late(
      [&] {
        const auto mine = k.locks.try_lock_until(1, at(begin + 3 * tick));
        if (!mine) return;
        k.count = k.count + 1;
        got = true;
      },
      &w);
  explore::when_quiet();
  thread([&] { fire(w, begin + 5 * tick); });
  held.unlock();
  join_all();
  k.expect(got ? 1 : 0);
}
