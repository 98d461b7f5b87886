// The end of a runtime: who may still come in, when all tasks have ended, and who is still inside.
//
// Outside threads count the tasks that they spawn here. Tasks count what they spawn and end in the counters of the
// worker on which they run. All tasks have ended when as many have finished as were spawned. The thread that closes the
// runtime waits for that on a futex, and the last worker that goes to sleep wakes it.
//
// sched.C1. A spawn from outside is refused, or close() waits for the task. The spawner counts the task and then reads
//     closing_. close() sets closing_ and then reads the counts. So one of the two sees the other.
//     model/close, test sched/closing
// sched.C2. Whoever ends last, or is refused last, wakes the thread that closes.
//     model/close, test sched/closing
// sched.C3. What a task did is visible when close() returns, because the counts of finished tasks are published.
//     model/close
// sched.C4. A *guest* is a thread that belongs to no worker here and is inside the scheduler on behalf of a task. The
//     scheduler waits for its guests before it goes, though their tasks may have ended.
//     model/close, test sched/closing
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/clock.hpp"
#include "base/known_threads.hpp"
#include "base/thread.hpp"

namespace weft::inline v1::sched {

class closing {
 public:
  closing() = default;
  closing(const closing&) = delete;
  closing& operator=(const closing&) = delete;

  // --- outside threads --------------------------------------------------------------------------------------------
  // A hint, with which a spawn can be refused before any work is done. admit() decides.
  [[nodiscard]] bool accepts() const noexcept { return !closing_.load(base::relaxed); }
  // Returns false once closing has begun. Otherwise the coming task is counted, and the caller either submits it or
  // calls forget_admitted().
  [[nodiscard]] bool admit() noexcept {
    // sched.C1: the count comes before the look at closing_. Partner: close(), which sets closing_ before it reads the
    // counts.
    outside_spawned_.fetch_add(1, base::order<"close.admit">(base::seq_cst));
    if (!closing_.load(base::order<"close.admit.look">(base::seq_cst))) return true;
    forget_admitted();
    return false;
  }
  // Called for a spawn that was admitted and then refused or abandoned.
  void forget_admitted() noexcept {
    outside_refused_.fetch_add(1, base::seq_cst);
    tell();
  }
  [[nodiscard]] std::uint64_t spawned_from_outside() const noexcept {
    return outside_spawned_.load(base::relaxed) - outside_refused_.load(base::relaxed);
  }

  // A thread that is inside the scheduler on behalf of a task, which may run and end meanwhile (sched.C4).
  class guest {
   public:
    // The task has not ended yet, so the scheduler is still there. relaxed: the push of the task publishes this count
    // to the worker that runs it, and that worker's count of finished tasks publishes it to close(). So whoever sees
    // that the task has ended sees the guest too.
    explicit guest(closing& of) noexcept : of_(of) { of.guests_.fetch_add(1, base::relaxed); }
    // The guest's last touch. Pairs with the acquire in wait_for_guests().
    ~guest() { of_.guests_.fetch_sub(1, base::order<"visitors.leave">(base::release)); }
    guest(const guest&) = delete;
    guest& operator=(const guest&) = delete;

   private:
    closing& of_;
  };

  // --- the thread that closes, which is no worker of this runtime --------------------------------------------------
  // Refuses outside spawns from now on and waits until all_over() returns true (it calls all_ended()). Returns false if
  // the deadline comes first. Any number of threads may call this, any number of times.
  template <class AllOver>
  bool close(AllOver all_over, base::time_ns deadline = base::never_ns) noexcept {
    closing_.store(true, base::seq_cst);
    for (;;) {
      const std::uint32_t seen = quiet_.load(base::acquire);
      // The fence stands inside the loop. A worker that missed a refusal has had its own fence before that refusal, so
      // we see the worker's counts once the refusal has woken us.
      base::step<"close.fence">([] { base::fence_seq_cst(); });
      if (all_over()) return true;
      if (deadline != base::never_ns && base::now() >= deadline) return false;
      // Whoever looks for deadlocks learns that the thread does nothing while a task lives.
      const base::thread_rest rest(deadline == base::never_ns ? base::known_thread::of_caller() : nullptr, this);
      base::futex_wait(quiet_, seen, deadline);
    }
  }
  // Called by the scheduler's destructor after close(). A guest stays for a few instructions only.
  void wait_for_guests() noexcept {
    // Pairs with the release in ~guest: the last touch of a waker from outside comes before the scheduler's end.
    while (base::check<"visitors.wait">(guests_.load(base::acquire) != 0)) base::yield_thread();
  }

  // Whether somebody is inside on behalf of a task. relaxed: whoever asks to prove something has seen the guest's
  // thread rest or end.
  [[nodiscard]] bool has_guests() const noexcept { return guests_.load(base::relaxed) != 0; }

  // --- workers ----------------------------------------------------------------------------------------------------
  // `workers()` returns pointers to everything that has worker_counters. It is called anew for each sum.
  //
  // The finished tasks are counted first. If their number equals that of the spawned tasks, which are counted later, no
  // task lived in between. The workers are listed anew for the second sum because a worker that was made meanwhile may
  // have spawned what another one finished.
  template <class Workers>
  [[nodiscard]] bool all_ended(Workers workers) const noexcept {
    std::uint64_t finished = outside_refused_.load(base::acquire);
    for (const auto* w : workers()) finished += w->counters().finished.get();
    std::uint64_t spawned = 0;
    for (const auto* w : workers()) spawned += w->counters().spawned.get();
    return finished == spawned + outside_spawned_.load(base::acquire);
  }
  // Called by a worker on its way to sleep (sched.C2). The worker has stored its own counts before the fence of
  // enter_sleep(). close() stores closing_ (or has been woken), has a fence and then reads the counts. So one of the
  // two sees that all tasks have ended.
  template <class Workers>
  void tell_if_all_ended(Workers workers) noexcept {
    if (base::check<"close.tell">(closing_.load(base::relaxed) && all_ended(workers))) tell();
  }

 private:
  void tell() noexcept {
    quiet_.fetch_add(1, base::release);
    base::futex_wake(&quiet_, INT32_MAX);
  }

  base::atomic<bool> closing_{false};  // written once, read by every worker that goes to sleep
  // Outside threads write this line at each spawn and wake.
  alignas(base::cache_line) base::atomic<std::uint64_t> outside_spawned_{0};
  base::atomic<std::uint64_t> outside_refused_{0};
  base::atomic<std::uint32_t> guests_{0};
  base::atomic<std::uint32_t> quiet_{0};  // futex: bumped when all tasks may have ended
};

}  // namespace weft::inline v1::sched
