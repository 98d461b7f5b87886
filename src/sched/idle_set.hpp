// Who sleeps, who searches, and the proof that the workers never all sleep while there is work.
//
// Both sides of the argument, as in rayon's sleep/README:
//   an enqueuer   e1 makes the task visible, e2 fence, e3 reads searching_ and sleeping_;
//   a worker      w1 leaves searching_ and enters sleeping_, w2 fence, w3 looks at every queue once more, then sleeps.
// If e3 misses w1, then e2 comes before w2 in the order of fences, so w3 sees e1: the worker stays up. If e3 sees w1,
// the enqueuer wakes a sleeper, or leaves the task to a searcher. A searcher that finds a task while it is the last
// searcher looks once more: s1 leaves searching_, s2 fence, s3 looks at every queue, and wakes the next worker if there
// is work (the last searcher hands on). So work that two enqueuers left to one searcher is found too. s3 sees it for
// the same reason as w3.
//
// At w3 a worker may see work in the queue of another worker, where only a search would find it. It then reads
// searching_ (w4). If somebody searches, the worker leaves the work to that searcher and sleeps. w4 needs no fence of
// its own. A searcher that left without seeing the work had its s2 (or w2) before e2, and e2 came before our w2, or
// else e3 saw us. So we see that the searcher left. Staying up instead would be a loop, because the worker may not
// search (sched.I2). On a busy machine that loop takes the very processor on which the searcher was about to run: it
// cost milliseconds.
//
// sched.I1. Work that is visible before e2 is seen by the enqueuer's wake, by a searcher, or by w3; never by nobody.
//     model/idle, test sched/idle_*
// sched.I2. At most half of the workers search at a time (one at least).
//     test sched/at_most_half_*, sched/never_more_than_half_*
// sched.I3. A sleeper is chosen in O(1): the lowest set bit of the first non-empty word. The number of workers is not
//     bounded.
//     test sched/every_one_of_a_hundred_thirty_*
// sched.I4. Choosing, entering and leaving happen under one lock. Sleeping and waking cost a system call anyway, and
//     with the lock a worker that finds work in w3 can take its own bit back without a second protocol.
//     model/idle, test sched/a_sleeper_that_finds_work_*
// Rejected: bitmap and counters as independent atomics. A sleeper that takes its bit back and a waker that was promised
// a sleeper by the counter can then miss each other.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"

namespace weft::inline v1::sched {

class idle_set {
 public:
  static constexpr int nobody = -1;

  // `most` is the number of workers to which the pool may grow.
  explicit idle_set(std::size_t workers, std::size_t most = 0)
      : workers_(workers),
        asleep_((std::max(workers, most) + 63) / 64, 0) {}

  // The pool has grown or shrunk, which changes what half of it is (sched.I2). relaxed: one search more or less loses
  // no work.
  void set_workers(std::size_t n) noexcept { workers_.store(n, base::relaxed); }

  // Called by an enqueuer after its push. Returns the worker to wake, which is counted as searching already, or nobody.
  // Chooses the preferred worker if that sleeps.
  [[nodiscard]] int wake_one(int preferred = nobody) noexcept {
    // e2: the task is visible before the counts are read. Mirror: w2 in enter_sleep().
    base::step<"idle.e2">([] { base::fence_seq_cst(); });
    if (searching_.load(base::relaxed) != 0 || sleeping_.load(base::relaxed) == 0) return nobody;
    base::lock_guard guard(lock_);
    if (searching_.load(base::relaxed) != 0) return nobody;
    const int chosen = preferred != nobody && contains(preferred) ? preferred : lowest();
    if (chosen == nobody) return nobody;
    remove(chosen);
    // This is inside the lock, so that two enqueuers do not wake two workers for one task.
    searching_.fetch_add(1, base::relaxed);
    return chosen;
  }

  // As wake_one(), for a task that only this worker may take because stealing is switched off: a searcher would not
  // help. Returns false if the worker is awake; it will look by itself.
  [[nodiscard]] bool wake_exactly(int worker) noexcept {
    // The fence is for the caller, who asks next whether the worker has died. Mirror: the fence in worker::die().
    // Against enter_sleep() the lock is enough.
    base::step<"idle.exactly.fence">([] { base::fence_seq_cst(); });
    base::lock_guard guard(lock_);
    if (!contains(worker)) return false;
    remove(worker);
    searching_.fetch_add(1, base::relaxed);
    return true;
  }

  // Returns whether a worker without work may search (sched.I2). It ends the search with stop_searching() or
  // enter_sleep().
  [[nodiscard]] bool start_searching() noexcept {
    std::uint32_t n = searching_.load(base::relaxed);
    do {
      if (std::size_t{2} * n >= workers_.load(base::relaxed) && n != 0) return false;
    } while (!searching_.compare_exchange_weak(n, n + 1, base::relaxed, base::relaxed));
    return true;
  }

  // The searcher has found work. If this returns true, it was the last one: it must look at every queue and call
  // wake_one() if there is work, to hand on.
  [[nodiscard]] bool stop_searching() noexcept {
    // s1. relaxed, as everywhere on searching_: an enqueuer that reads it before s1 has its fence e2 before s2, and
    // nothing else depends on the order.
    const bool last = base::check<"idle.hand_on">(searching_.fetch_sub(1, base::relaxed) == 1);
    // s2: we have stopped searching before the queues are read. Mirror: e2 in wake_one().
    if (last) base::step<"idle.s2">([] { base::fence_seq_cst(); });
    return last;
  }

  // w1 and w2. The caller looks at every queue afterwards, and then sleeps or calls leave_sleep().
  void enter_sleep(int worker, bool was_searching) noexcept {
    {
      base::lock_guard guard(lock_);
      asleep_[word(worker)] |= bit(worker);
      sleeping_.store(sleeping_.load(base::relaxed) + 1, base::relaxed);
      if (was_searching) searching_.fetch_sub(1, base::relaxed);
    }
    // w2: our counts are visible before the queues are read. Mirror: e2 in wake_one().
    base::step<"idle.w2">([] { base::fence_seq_cst(); });
  }

  // w4, after w3 has found work that only a search would find. True: somebody searches, and the work is left to that
  // searcher. Ordered by w2.
  [[nodiscard]] bool left_to_searcher() const noexcept { return searching_.load(base::relaxed) != 0; }

  // A sleeper has found work, or its time has come. Returns true if it is awake again and does not count as searching.
  // Returns false if somebody is already waking it and has counted it as searching; the wake's token is on its way.
  [[nodiscard]] bool leave_sleep(int worker) noexcept {
    base::lock_guard guard(lock_);
    if (!contains(worker)) return false;
    remove(worker);
    return true;
  }

  // Whether the worker is still asleep as far as others know. It asks this itself when it comes back from its bed,
  // because the token that woke it may be an old one.
  [[nodiscard]] bool is_asleep(int worker) noexcept {
    base::lock_guard guard(lock_);
    return contains(worker);
  }
  // Returns some sleeper, which stays counted as sleeping.
  [[nodiscard]] int any_sleeper() noexcept {
    base::lock_guard guard(lock_);
    return lowest();
  }

  [[nodiscard]] std::size_t sleeping() const noexcept { return sleeping_.load(base::acquire); }
  [[nodiscard]] std::size_t searching() const noexcept { return searching_.load(base::acquire); }

 private:
  static std::size_t word(int worker) noexcept { return static_cast<std::size_t>(worker) / 64; }
  static std::uint64_t bit(int worker) noexcept { return std::uint64_t{1} << (worker % 64); }
  [[nodiscard]] bool contains(int worker) const noexcept { return (asleep_[word(worker)] & bit(worker)) != 0; }
  void remove(int worker) noexcept {
    asleep_[word(worker)] &= ~bit(worker);
    sleeping_.store(sleeping_.load(base::relaxed) - 1, base::relaxed);
  }
  [[nodiscard]] int lowest() const noexcept {
    for (std::size_t i = 0; i < asleep_.size(); ++i)
      if (asleep_[i] != 0) return static_cast<int>(i * 64) + std::countr_zero(asleep_[i]);
    return nobody;
  }

  base::atomic<std::size_t> workers_;
  alignas(base::cache_line) base::atomic<std::uint32_t> searching_{0};
  base::atomic<std::uint32_t> sleeping_{0};
  alignas(base::cache_line) base::lock lock_;
  std::vector<std::uint64_t> asleep_;  // under lock_
};

}  // namespace weft::inline v1::sched
