// The state word itself, without the wait layer (src/task/state.hpp).
// sources: task/state.cpp wait/join.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/errors.cpp wait/thread_waiter.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// task.S1. "Ticket still valid" and "claimed" are one decision: a waker claims only the wait whose ticket it has.
// task.S2. One winner, whose reason is the one that is read.
// task.S3. A waker that meets PARKING leaves WP; what it stored before is seen by the task that finds it.
// task.S4. What the sender of a cancel or permit stored before is seen by the task that finds it.
#include "explore/explore.hpp"
#include "sched/scheduler.hpp"

namespace base = weft::base;
namespace task = weft::task;
using explore::join_all;
using explore::thread;
using task::state_word;
using task::wake_result;
using weft::sched::model_task;
using weft::sched::scheduler;
using weft::sched::worker;

namespace {

struct sleeper : model_task {
  sleeper() : model_task(false) {}
  // True: parked and woken. False: a wake came before the commit.
  bool commit() {
    context = 1;  // as the switch does
    if (!word.commit_park()) return false;
    in_no_queue.acquire();
    return true;
  }
};

// Claims with this reason, or leaves word.
wake_result wake(sleeper& s, task::ticket t, std::uint64_t reason) {
  const wake_result r = s.word.wake(t);
  if (r == wake_result::claimed) {
    s.wake_value = reason;
    scheduler::schedule(&s);
  }
  return r;
}

}  // namespace

MODEL_TEST(state_pending_wake_brings_its_reason, .preemptions = -1) {
  sleeper s;
  base::plain<int> stored{0};
  const task::ticket next = state_word::ticket_of(s.word.peek()) + 1;
  thread([&] {
    (void)s.word.begin_park(0);
    (void)s.commit();
    model_assert(stored == 1);
  });
  thread([&] {
    stored = 1;
    while (wake(s, next, 1) == wake_result::stale) base::cpu_relax();  // not parking yet
  });
  join_all();
}

MODEL_TEST(state_aborted_park_sees_a_pending_wake, .preemptions = -1) {
  sleeper s;
  base::plain<int> stored{0};
  base::atomic<int> left{0};
  const task::ticket next = state_word::ticket_of(s.word.peek()) + 1;
  thread([&] {
    (void)s.word.begin_park(0);
    if (left.load(base::relaxed) == 0) {
      (void)s.commit();
    } else {
      s.word.abort_park();
      model_assert(stored == 1);
    }
  });
  thread([&] {
    stored = 1;
    wake_result r;
    while ((r = wake(s, next, 1)) == wake_result::stale) base::cpu_relax();
    if (r == wake_result::left_pending) left.store(1, base::relaxed);
  });
  join_all();
}

MODEL_TEST(state_two_wakers_one_reason, .preemptions = -1, .once_more_without_pruning = true) {
  sleeper s;
  const std::uint64_t w = s.word.begin_park(0);
  std::uint64_t reason = 0;
  bool parked = false;
  wake_result r[2] = {};
  thread([&] {
    parked = s.commit();
    reason = s.wake_value;
  });
  for (int i = 0; i < 2; ++i)
    thread([&, i] { r[i] = wake(s, state_word::ticket_of(w), static_cast<std::uint64_t>(i) + 1); });
  join_all();
  explore::outcome("%d%d%d%d", static_cast<int>(r[0]), static_cast<int>(r[1]), parked, static_cast<int>(reason));
  model_assert(!(r[0] == wake_result::claimed && r[1] == wake_result::claimed));
  if (parked) model_assert(reason != 0 && r[reason - 1] == wake_result::claimed);
  if (!parked) model_assert(reason == 0 && (r[0] == wake_result::left_pending || r[1] == wake_result::left_pending));
}

MODEL_TEST(state_old_ticket_claims_nothing, .preemptions = 4) {
  sleeper s;
  base::atomic<task::ticket> published{0};
  const task::ticket first = state_word::ticket_of(s.word.peek()) + 1;
  thread([&] {
    for (task::ticket t = first; t < first + 2; ++t) {
      s.wake_value = 0;
      model_assert(state_word::ticket_of(s.word.begin_park(0)) == t);
      published.store(t, base::release);  // a waker has the ticket from a list under a lock
      if (s.commit()) model_assert(s.wake_value == t);
    }
  });
  thread([&] {  // wakes both, each when it is due
    for (task::ticket t = first; t < first + 2; ++t) {
      while (published.load(base::acquire) < t) base::cpu_relax();
      (void)wake(s, t, t);
    }
  });
  thread([&] { (void)wake(s, first, first); });  // at any time
  join_all();
}

namespace {
template <class Send>
void sticky(Send send, std::uint64_t bit, std::uint64_t flag) {
  sleeper s;
  base::plain<int> stored{0};
  thread([&] {
    const std::uint64_t w = s.word.begin_park(flag);
    if ((w & bit) != 0)
      s.word.abort_park();
    else
      (void)s.commit();
    model_assert(stored == 1);
    model_assert((s.word.peek() & bit) != 0);
  });
  thread([&] {
    stored = 1;
    if (send(s.word) == wake_result::claimed) scheduler::schedule(&s);
  });
  join_all();
}
}  // namespace

MODEL_TEST(state_cancel_brings_its_reason, .preemptions = -1) {
  sticky([](state_word& w) { return w.request_cancel(); }, state_word::cancel_requested, state_word::interruptible);
}
MODEL_TEST(state_permit_brings_its_reason, .preemptions = -1) {
  sticky([](state_word& w) { return w.grant_permit(); }, state_word::permit, state_word::takes_permit);
}
MODEL_TEST(state_cancel_and_wake_one_winner, .preemptions = -1) {
  sleeper s;
  const std::uint64_t w = s.word.begin_park(state_word::interruptible);
  wake_result by_wake{}, by_cancel{};
  thread([&] { (void)s.commit(); });
  thread([&] { by_wake = wake(s, state_word::ticket_of(w), 1); });
  thread([&] {
    by_cancel = s.word.request_cancel();
    if (by_cancel == wake_result::claimed) scheduler::schedule(&s);
  });
  join_all();
  model_assert(!(by_wake == wake_result::claimed && by_cancel == wake_result::claimed));
  model_assert((s.word.load() & state_word::cancel_requested) != 0);
}
