// A second opinion on the park protocol by another explorer (relacy), transcribed by hand: src/task/state.hpp and wait/fiber_wait.hpp.
//
// A task waits for an event; one wakes it under the event's lock, one cancels it without the lock. The broken twins must be
// noticed: a commit that overlooks the pending wake (task.S3), and one that does not publish the saved context.
#include "second_opinion.hpp"

namespace {

enum class breaks { nothing, pending, publication };

enum : unsigned {
  active = 0,
  parking = 1,
  parked = 2,
  phase_mask = 3,
  wake_pending = 4,
  cancel_requested = 8,
  one_ticket = 16
};

// Threads: the task, who cancels it, and who wakes it, if anybody does.
template <unsigned Threads, breaks Break, rl::test_result_e Expected>
struct wake_against_cancel : rl::test_suite<wake_against_cancel<Threads, Break, Expected>, Threads, Expected> {
  rl::atomic<unsigned> word;
  rl::mutex lock;
  rl::var<bool> set, published;  // under the lock
  rl::var<int> frame;  // what the switch saves
  rl::var<int> told;  // what the waker did before
  rl::atomic<unsigned> scheduled;
  bool ended = false;

  void before() {
    word.store(active, rl::mo_relaxed, $);
    scheduled.store(0, rl::mo_relaxed, $);
    set($) = published($) = false;
    frame($) = told($) = 0;
    ended = false;
  }
  void after() { RL_ASSERT(ended && scheduled.load(rl::mo_relaxed, $) <= 1); }

  bool commit_park() {
    unsigned w = word.load(rl::mo_relaxed, $);
    for (;;) {
      const bool woken = Break != breaks::pending && (w & wake_pending) != 0;
      const unsigned next = woken ? (w & ~(phase_mask | wake_pending)) | active : (w & ~phase_mask) | parked;
      if (word.compare_exchange_weak(w, next, Break == breaks::publication ? rl::mo_relaxed : rl::mo_acq_rel, $,
                                     rl::mo_relaxed, $))
        return !woken;
    }
  }
  // True: claimed; the caller schedules.
  bool wake(unsigned ticket) {
    unsigned w = word.load(rl::mo_relaxed, $);
    for (;;) {
      if (w / one_ticket != ticket) return false;
      if ((w & phase_mask) == parked) {
        if (word.compare_exchange_weak(w, (w & ~(phase_mask | wake_pending)) | active, rl::mo_acq_rel, $,
                                       rl::mo_relaxed, $))
          return true;
      } else if ((w & phase_mask) == parking) {
        if (word.compare_exchange_weak(w, w | wake_pending, rl::mo_release, $, rl::mo_relaxed, $)) return false;
      } else {
        return false;
      }
    }
  }
  bool request_cancel() {
    unsigned w = word.load(rl::mo_relaxed, $);
    for (;;) {
      const unsigned phase = w & phase_mask;
      unsigned next = w | cancel_requested;
      if (phase == parked) next = (next & ~(phase_mask | wake_pending)) | active;
      if (phase == parking) next |= wake_pending;
      if (word.compare_exchange_weak(w, next, rl::mo_acq_rel, $, rl::mo_relaxed, $)) return phase == parked;
    }
  }
  void schedule() {
    RL_ASSERT(frame($) == 1);
    frame($) = 2;
    scheduled.fetch_add(1, rl::mo_release, $);
  }

  void abort_park() {
    unsigned w = word.load(rl::mo_relaxed, $);
    while (!word.compare_exchange_weak(w, (w & ~(phase_mask | wake_pending)) | active, rl::mo_acquire, $,
                                       rl::mo_relaxed, $)) {}
  }
  void task() {
    lock.lock($);
    if (!set($)) {
      const unsigned before_park = word.fetch_add(one_ticket + parking, rl::mo_acq_rel, $);
      if ((before_park & cancel_requested) != 0) {
        abort_park();
      } else {
        published($) = true;
        frame($) = 1;
        const bool is_parked = commit_park();
        lock.unlock($);
        rl::linear_backoff wait;
        if (is_parked)
          while (scheduled.load(rl::mo_acquire, $) == 0) wait.yield($);
        lock.lock($);
        published($) = false;
      }
    }
    if (set($)) RL_ASSERT(told($) == 1);
    lock.unlock($);
    ended = true;
  }
  void thread(unsigned who) {
    if (who == 0) {
      task();
    } else if (who == 1) {
      if (request_cancel()) schedule();
    } else {
      told($) = 1;
      lock.lock($);
      set($) = true;
      const bool mine = published($) && wake(1);
      lock.unlock($);
      if (mine) schedule();
    }
  }
};

}  // namespace

int main() {
  return second_opinion<wake_against_cancel<3, breaks::nothing, rl::test_result_success>>("park", 3) &&
                 second_opinion<wake_against_cancel<2, breaks::pending, rl::test_result_livelock>>(
                     "park that overlooks a pending wake", 3) &&
                 second_opinion<wake_against_cancel<3, breaks::publication, rl::test_result_data_race>>(
                     "park that does not publish the frame", 3)
             ? 0
             : 1;
}
