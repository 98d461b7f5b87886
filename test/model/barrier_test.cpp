// Latch and barrier (src/sync/barrier): arrivals against waiters that are cancelled or late.
// sources: sync/barrier.cpp sync/signal.cpp sync/caller.cpp wait/this_task.cpp wait/handle.cpp wait/permit.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// The last count ends every wait, whoever leaves meanwhile (a deadlock here), and those who waited see what all did who arrived (a
// data race here). A round ends once, when all have arrived, and the next one begins with as many (a deadlock, or a failed assertion).
#include <weft/barrier.hpp>

#include <weft/latch.hpp>

#include "sync.hpp"

using namespace model;

namespace {

// How often a round was completed; who has passed it reads it without a race.
struct tally {
  void operator()() const noexcept { *rounds = *rounds + 1; }
  base::plain<int>* rounds;
};
using counting_barrier = weft::barrier<tally>;

}  // namespace

// ---- latch ------------------------------------------------------------------------------------------------------------

// req: BZ-13
MODEL_TEST(latch_who_waited_sees_what_all_did) {
  weft::latch l(2);
  base::plain<int> done[2];
  fiber waiter([&] {
    l.wait();
    model_assert(done[0] == 1 && done[1] == 1);
  });
  fiber a([&] {
    done[0] = 1;
    l.count_down();
  });
  fiber b([&] {
    done[1] = 1;
    l.count_down();
  });
  join_all();
}

// The latch belongs to the waiter, and ends while the last count_down() has not yet returned.
MODEL_TEST(latch_who_waits_destroys) {
  auto* l = new weft::latch(2);
  fiber waiter([=] {
    l->wait();
    delete l;
  });
  fiber a([=] { l->count_down(); });
  thread([=] { l->count_down(); });
  join_all();
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(latch_cancel_against_the_last_count) {
  weft::latch l(1);
  fiber leaves([&] { l.wait(); });
  fiber stays([&] { l.wait(); });
  thread([&] { leaves.cancel(); });
  fiber counter([&] { l.count_down(); });
  join_all();
  model_assert(l.try_wait() && !stays.cancelled);
}

// req: BZ-13 BZ-11 LS-P3
MODEL_TEST(latch_time_out_against_the_last_count) {
  weft::latch l(1);
  weft::timing::wheel w;
  base::plain<int> done{0};
  bool got = false;
  fiber late(
      [&] {
        got = l.wait_until(at(begin + 3 * tick));
        if (got) model_assert(done == 1);
      },
      &w);
  fiber stays([&] { l.wait(); });
  fiber counter([&] {
    done = 1;
    l.count_down();
  });
  thread([&] { fire(w, begin + 5 * tick); });
  join_all();
  model_assert(l.try_wait());
}

// Cancelled before it arrives, it has not counted; cancelled while it waits, it has.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(latch_cancel_at_every_step_of_arrive_and_wait) {
  weft::latch l(2);
  bool helped = false;
  fiber leaves([&] { l.arrive_and_wait(); });
  fiber stays([&] { l.arrive_and_wait(); });
  thread([&] { leaves.cancel(); });
  thread([&] {
    explore::when_quiet();
    if (l.try_wait()) return;
    l.count_down();  // in its place
    helped = true;
  });
  join_all();
  model_assert(l.try_wait() && !stays.cancelled && (!helped || leaves.cancelled));
}

// ---- barrier ----------------------------------------------------------------------------------------------------------

// req: BZ-13
MODEL_TEST(barrier_two_rounds_of_two) {
  base::plain<int> rounds{0};
  base::plain<int> mine[2];
  counting_barrier b(2, {&rounds});
  const auto body = [&](int me) {
    mine[me] = 1;
    b.arrive_and_wait();
    model_assert(mine[1 - me] == 1 && rounds == 1);
    b.arrive_and_wait();
    model_assert(rounds == 2);
  };
  fiber first([&] { body(0); });
  fiber second([&] { body(1); });
  join_all();
}

// req: BZ-13
MODEL_TEST(barrier_a_task_and_a_thread_and_who_passes_last_destroys) {
  base::plain<int> rounds{0};
  auto* b = new counting_barrier(2, {&rounds});
  base::atomic<int> inside{2};
  const auto body = [&, b] {
    b->arrive_and_wait();
    if (inside.fetch_sub(1, base::acq_rel) == 1) delete b;
  };
  fiber first(body);
  thread(body);
  join_all();
  model_assert(rounds == 1);
}

// The cancelled one has arrived, and the round ends without it. A third one stands in for it in the next round.
MODEL_TEST(barrier_cancel_against_the_last_to_arrive) {
  base::plain<int> rounds{0};
  counting_barrier b(2, {&rounds});
  fiber leaves([&] { b.arrive_and_wait(); });
  explore::when_quiet();  // it waits
  thread([&] { leaves.cancel(); });
  fiber last([&] {
    b.arrive_and_wait();
    model_assert(rounds == 1);
    b.arrive_and_wait();
    model_assert(rounds == 2);
  });
  fiber stands_in([&] {
    explore::when_quiet();
    b.arrive_and_wait();
    model_assert(rounds == 2);
  });
  join_all();
  model_assert(rounds == 2 && b.expected() == 2);
}

// The same with another that waits and stays.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(barrier_cancel_of_one_of_two_waiters) {
  base::plain<int> rounds{0};
  counting_barrier b(3, {&rounds});
  const auto body = [&] {
    b.arrive_and_wait();
    model_assert(rounds == 1);
  };
  fiber leaves(body);
  explore::when_quiet();
  fiber stays(body);
  thread([&] { leaves.cancel(); });
  fiber last(body);
  join_all();
  model_assert(rounds == 1 && !stays.cancelled && !last.cancelled);
}

// At any step: if it left before it arrived, its place is free; the round ends once all the same.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(barrier_cancel_at_every_step_of_an_arrival) {
  base::plain<int> rounds{0};
  counting_barrier b(2, {&rounds});
  base::atomic<int> passed{0};
  fiber leaves([&] {
    b.arrive_and_wait();
    passed.fetch_add(1, base::acq_rel);
  });
  fiber stays([&] {
    b.arrive_and_wait();
    passed.fetch_add(1, base::acq_rel);
  });
  thread([&] { leaves.cancel(); });
  fiber stands_in([&] {
    explore::when_quiet();
    if (passed.load(base::acquire) == 0) b.arrive_and_drop();
  });
  join_all();
  model_assert(rounds == 1 && !stays.cancelled);
}

// The one that drops out is the last of this round, or not; the next round is the other's alone.
// req: BZ-13
MODEL_TEST(barrier_one_drops_out) {
  base::plain<int> rounds{0};
  counting_barrier b(2, {&rounds});
  fiber stays([&] {
    b.arrive_and_wait();
    model_assert(rounds == 1);
    b.arrive_and_wait();
    model_assert(rounds == 2);
  });
  fiber drops([&] { b.arrive_and_drop(); });
  join_all();
  model_assert(rounds == 2 && b.expected() == 1);
}
