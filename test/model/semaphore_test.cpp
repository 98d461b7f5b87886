// The counting semaphore: release against acquire, cancel and time-out (src/sync/semaphore).
// sources: sync/semaphore.cpp sync/caller.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// sync.P2. No permit lies idle beside a request that it would fulfil (a deadlock here).
// sync.P3. Permits are neither lost nor doubled by who leaves.
// sync.P4. Who acquires may destroy it (use after its end here).
#include "sync/semaphore.hpp"

#include "sync.hpp"

using namespace model;

namespace {

void release(locks::semaphore_core& s, std::uint64_t n) { model_assert(s.give(n)); }

}  // namespace

// What was done before a release is seen after the acquire that it made possible.
// req: BZ-13
MODEL_TEST(semaphore_release_against_acquire, .preemptions = -1) {
  locks::semaphore_core s(0);
  base::plain<int> told{0};
  fiber waiter([&] {
    locks::acquire(s, 1, {});
    model_assert(told == 1);
  });
  fiber teller([&] {
    told = 1;
    release(s, 1);
  });
  join_all();
  model_assert(s.permits() == 0 && !s.is_waited_for());
}

// req: BZ-13
MODEL_TEST(semaphore_as_a_lock, .old_reads = 1) {
  locks::semaphore_core s(1);
  base::plain<int> count{0};
  const auto add = [&] {
    locks::acquire(s, 1, {});
    count = count + 1;
    release(s, 1);
  };
  fiber a(add);
  fiber b(add);
  fiber c(add);
  join_all();
  model_assert(count == 3 && s.permits() == 1 && !s.is_waited_for());
}

// Two releases by two who do not know of each other; both were needed, and what both did is seen.
// req: BZ-13
MODEL_TEST(semaphore_a_request_for_two) {
  locks::semaphore_core s(0);
  base::plain<int> first{0}, second{0};
  fiber waiter([&] {
    locks::acquire(s, 2, {});
    model_assert(first == 1 && second == 1);
  });
  fiber a([&] {
    first = 1;
    release(s, 1);
  });
  fiber b([&] {
    second = 1;
    release(s, 1);
  });
  join_all();
  model_assert(s.permits() == 0 && !s.is_waited_for());
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(semaphore_cancel_against_release_at_every_step) {
  locks::semaphore_core s(0);
  fiber waiter([&] { locks::acquire(s, 1, {}); });
  thread([&] { waiter.cancel(); });
  fiber giver([&] { release(s, 1); });
  join_all();
  model_assert(s.permits() == (waiter.cancelled ? 1 : 0) && !s.is_waited_for());
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(semaphore_a_cancelled_waiter_takes_no_permit_with_it, .old_reads = 1) {
  locks::semaphore_core s(0);
  fiber first([&] { locks::acquire(s, 1, {}); });
  fiber second([&] { locks::acquire(s, 1, {}); });
  explore::when_quiet();
  thread([&] { first.cancel(); });
  fiber giver([&] {
    release(s, 1);
    release(s, 1);
  });
  join_all();
  model_assert(s.permits() == (first.cancelled ? 1 : 0) && !s.is_waited_for());
}

// The large request at the head leaves; what there is goes to the small one behind it.
// req: BZ-13 CC-10
MODEL_TEST(semaphore_a_cancelled_large_request_lets_others_pass, .old_reads = 1) {
  locks::semaphore_core s(0);
  fiber large([&] { locks::acquire(s, 2, {}); });
  fiber small([&] { locks::acquire(s, 1, {}); });
  explore::when_quiet();
  thread([&] { large.cancel(); });
  fiber giver([&] {
    release(s, 1);
    release(s, 2);
  });
  join_all();
  model_assert(s.permits() == (large.cancelled ? 2 : 0) && !s.is_waited_for());
}

// Nobody gives again: only the one that leaves can let the other pass. It sees what was done before the release.
// req: BZ-13 CC-10
MODEL_TEST(semaphore_the_one_that_leaves_lets_the_next_pass) {
  locks::semaphore_core s(0);
  base::plain<int> told{0};
  fiber large([&] { locks::acquire(s, 2, {}); });
  fiber small([&] {
    locks::acquire(s, 1, {});
    model_assert(told == 1);
  });
  fiber giver([&] {
    told = 1;
    release(s, 1);
    large.cancel();
  });
  join_all();
  model_assert(large.cancelled && s.permits() == 0 && !s.is_waited_for());
}

// As above, with somebody who does not wait: it finds by itself what the one that left did not take.
// req: BZ-13 CC-10
MODEL_TEST(semaphore_what_is_left_by_one_that_leaves_can_be_taken) {
  locks::semaphore_core s(0);
  base::plain<int> told{0};
  fiber large([&] { locks::acquire(s, 2, {}); });
  fiber giver([&] {
    told = 1;
    release(s, 1);
  });
  thread([&] { large.cancel(); });
  fiber looker([&] {
    if (s.try_take(1)) model_assert(told == 1);
  });
  join_all();
}

// req: BZ-13 BZ-11 LS-P3
MODEL_TEST(semaphore_time_out_against_release) {
  locks::semaphore_core s(0);
  weft::timing::wheel w;
  bool got = false;
  fiber late([&] { got = locks::try_acquire_until(s, 1, at(begin + 3 * tick), {}); }, &w);
  fiber giver([&] { release(s, 1); });
  thread([&] { fire(w, begin + 5 * tick); });
  join_all();
  model_assert(s.permits() == (got ? 0 : 1) && !s.is_waited_for());
}

// The waiter owns the semaphore, which ends while release() has not yet returned.
MODEL_TEST(semaphore_who_acquires_destroys, .preemptions = -1) {
  auto* s = new locks::semaphore_core(0);
  fiber waiter([=] {
    locks::acquire(*s, 1, {});
    delete s;
  });
  fiber giver([=] { release(*s, 1); });
  join_all();
}

// req: BZ-13 CC-10
MODEL_TEST(semaphore_who_acquires_destroys_after_another_has_left, .old_reads = 1) {
  auto* s = new locks::semaphore_core(0);
  base::atomic<bool> left{false};
  fiber cancelled([&, s] {
    try {
      locks::acquire(*s, 2, {});
    } catch (const weft::cancelled&) {}
    left.store(true, base::release);
  });
  fiber waiter([&, s] {
    locks::acquire(*s, 1, {});
    while (!left.load(base::acquire)) base::cpu_relax();
    delete s;
  });
  fiber giver([=] { release(*s, 1); });
  thread([&] { cancelled.cancel(); });
  join_all();
}

// The semaphore is seen with a waiter, and a moment later without one. A release must not undo what others do without
// the lock.
MODEL_TEST(semaphore_two_releases_while_the_waiter_leaves) {
  locks::semaphore_core s(0);
  fiber waiter([&] { locks::acquire(s, 3, {}); });
  explore::when_quiet();
  thread([&] { waiter.cancel(); });
  thread([&] { release(s, 1); });
  release(s, 1);
  join_all();
  model_assert(waiter.cancelled && s.permits() == 2 && !s.is_waited_for());
}

// One takes its permit under the lock; the other, who takes the rest without it, sees what was done before the release, too.
// req: BZ-13
MODEL_TEST(semaphore_the_rest_of_a_release) {
  locks::semaphore_core s(0);
  base::plain<int> told{0};
  fiber first([&] { locks::acquire(s, 1, {}); });
  fiber giver([&] {
    told = 1;
    release(s, 2);
  });
  fiber second([&] {
    if (s.try_take(1)) model_assert(told == 1);
  });
  join_all();
}
