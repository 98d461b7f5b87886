// Who sleeps, who searches, and the proof that no work is left behind by all of them sleeping.
//
// Both sides of the argument, as in rayon's sleep/README:
//   an enqueuer   E1 makes the task visible, E2 fence, E3 reads searching_ and sleeping_;
//   a worker      W1 leaves searching_ and enters sleeping_, W2 fence, W3 looks at every queue once more, then sleeps.
// If E3 misses W1, then E2 comes before W2 in the order of fences, so W3 sees E1: the worker stays up. If E3 sees W1, the
// enqueuer wakes a sleeper, or leaves it to a searcher; and a searcher that finds a task while it is the last one looks once
// more, S1 leaves searching_, S2 fence, S3 looks at every queue, and wakes the next if there is work (last searcher hands on),
// so work that two enqueuers left to one searcher is found too. S3 sees it for the same reason as W3.
//
// A worker that sees at W3 work in another's queue, where only a search would find it, reads searching_ (W4). If somebody searches,
// the work is left to him and the worker sleeps. W4 needs no fence of its own: a searcher that left without seeing the work had
// its S2 (or W2) before E2, and E2 came before our W2, or else E3 saw us; so we see that it left. Staying up instead would be a
// loop, because the worker may not search (I2), and on a busy machine that loop takes the very processor on which the searcher
// was about to run: it cost milliseconds.
//
// I1. Work visible before E2 is seen by E's wake, by a searcher, or by W3; never by nobody.   model/idle, test sched/idle_*
// I2. At most half of the workers search at a time (one at least).
// I3. A sleeper is chosen in O(1): the lowest set bit of the first non-empty word. Any number of workers.
// I4. Choosing, entering and leaving are under one lock: sleeping and waking cost a system call anyway, and with the lock
//     a worker that finds work in W3 can take its own bit back without a second protocol.
// Rejected: bitmap and counters as independent atomics. A sleeper that takes its bit back and a waker that was promised one
// by the counter can then miss each other.
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

  // `most`: to how many the pool may grow.
  explicit idle_set(std::size_t workers, std::size_t most = 0)
      : workers_(workers),
        asleep_((std::max(workers, most) + 63) / 64, 0) {}

  // The pool has grown or shrunk: what half of it is (I2). relaxed: a search more or less loses nothing.
  void set_workers(std::size_t n) noexcept { workers_.store(n, base::relaxed); }

  // Enqueuer, after its push: the worker to wake, already counted as searching; or nobody. The preferred one if it sleeps.
  [[nodiscard]] int wake_one(int preferred = nobody) noexcept {
    // E2: the task is visible before the counts are read. Mirror: W2 in enter_sleep().
    base::step<"idle.e2">([] { base::fence_seq_cst(); });
    if (searching_.load(base::relaxed) != 0 || sleeping_.load(base::relaxed) == 0) return nobody;
    base::lock_guard guard(lock_);
    if (searching_.load(base::relaxed) != 0) return nobody;
    const int chosen = preferred != nobody && contains(preferred) ? preferred : lowest();
    if (chosen == nobody) return nobody;
    remove(chosen);
    // Inside the lock, so that two enqueuers do not wake two for one task.
    searching_.fetch_add(1, base::relaxed);
    return chosen;
  }

  // As wake_one, for a task that only this worker may take (stealing switched off): a searcher would not help. False: it is
  // awake and will look.
  [[nodiscard]] bool wake_exactly(int worker) noexcept {
    // For the caller, who looks next whether the worker has died: mirror in scheduler::worker_died(). Against enter_sleep()
    // the lock is enough.
    base::step<"idle.exactly.fence">([] { base::fence_seq_cst(); });
    base::lock_guard guard(lock_);
    if (!contains(worker)) return false;
    remove(worker);
    searching_.fetch_add(1, base::relaxed);
    return true;
  }

  // A worker without work may look around (I2). It ends the search with stop_searching() or enter_sleep().
  [[nodiscard]] bool start_searching() noexcept {
    std::uint32_t n = searching_.load(base::relaxed);
    do {
      if (std::size_t{2} * n >= workers_.load(base::relaxed) && n != 0) return false;
    } while (!searching_.compare_exchange_weak(n, n + 1, base::relaxed, base::relaxed));
    return true;
  }

  // The searcher found work. True: it was the last one, so it must look at every queue and, if there is work, call wake_one()
  // to hand on.
  [[nodiscard]] bool stop_searching() noexcept {
    // S1. relaxed, as everywhere on searching_: who reads it before S1 has its fence E2 before S2; nothing else hangs on it.
    const bool last = base::check<"idle.hand_on">(searching_.fetch_sub(1, base::relaxed) == 1);
    // S2: we are no searcher any more before the queues are read. Mirror: E2 in wake_one().
    if (last) base::step<"idle.s2">([] { base::fence_seq_cst(); });
    return last;
  }

  // W1 and W2. The caller looks at every queue after it, then sleeps or calls leave_sleep().
  void enter_sleep(int worker, bool was_searching) noexcept {
    {
      base::lock_guard guard(lock_);
      asleep_[word(worker)] |= bit(worker);
      sleeping_.store(sleeping_.load(base::relaxed) + 1, base::relaxed);
      if (was_searching) searching_.fetch_sub(1, base::relaxed);
    }
    // W2: our counts are visible before the queues are read. Mirror: E2 in wake_one().
    base::step<"idle.w2">([] { base::fence_seq_cst(); });
  }

  // W4, after W3 found work that only a search would get: somebody searches, so it is his. Ordered by W2.
  [[nodiscard]] bool left_to_searcher() const noexcept { return searching_.load(base::relaxed) != 0; }

  // Work turned up (or a time-out passed). True: awake again, not searching. False: somebody is waking it already and
  // has counted it as searching; its wake token is on the way.
  [[nodiscard]] bool leave_sleep(int worker) noexcept {
    base::lock_guard guard(lock_);
    if (!contains(worker)) return false;
    remove(worker);
    return true;
  }

  // Still asleep, as far as others know? Asked by that worker when its driver returns: a token may be an old one.
  [[nodiscard]] bool is_asleep(int worker) noexcept {
    base::lock_guard guard(lock_);
    return contains(worker);
  }
  // Somebody who sleeps, and stays counted as sleeping.
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
