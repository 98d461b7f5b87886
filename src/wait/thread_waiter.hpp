// An outside thread that waits. It has the same word and is claimed like a task, and sleeps on a futex instead of
// switching to another stack.
#pragma once

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "base/known_threads.hpp"
#include "task/task.hpp"
#include "wait/wait.hpp"

namespace weft::inline v1::waits {

class thread_waiter final : public task::parkable {
 public:
  thread_waiter() noexcept : task::parkable(kind::thread, task::phase::active, 0) {}

  // Called by the winner of the claim. The waiter may destroy itself right after the store, so the futex call uses only
  // the address of the word.
  void signal() noexcept {
    base::atomic<std::uint32_t>* address = &woken_;
    if (known_ != nullptr) known_->was_signalled();  // base.T1
    address->store(1, base::order<"thread_waiter.signal">(base::release));
    base::futex_wake(address, 1);
  }
  // Returns false if the deadline came first. Somebody may have claimed this waiter nevertheless; the caller finds out
  // by claiming itself, and sleeps on if it loses.
  bool sleep(base::time_ns deadline = base::never_ns) noexcept {
    // Whoever looks for deadlocks learns that the thread does nothing by itself until it is signalled.
    const base::thread_rest rest(deadline == base::never_ns ? known_ : nullptr);
    // Pairs with the release in signal(): the waiter sees what its waker did before.
    while (woken_.load(base::order<"thread_waiter.sleep">(base::acquire)) == 0) {
      if (deadline != base::never_ns && base::now() >= deadline) return false;
      base::futex_wait(woken_, 0, deadline);
    }
    woken_.store(0, base::relaxed);
    return true;
  }

  // --- what wait.hpp calls. A thread leaves no worker, so it passes no gate. ---
  [[nodiscard]] task::parkable& parkable() noexcept { return *this; }
  template <class W>
  void arrive_at(W&) noexcept {
    known_ = base::known_thread::of_caller();
    if (known_ != nullptr) known_->expects_signal();
  }
  void stay() noexcept {}
  void was_moved() noexcept {}
  // Commits, unlocks and then sleeps. A thread switches to no other stack, so it can be claimed as soon as the word
  // says PARKED: a wake that comes before the sleep is found in woken_.
  template <class W>
  void park(W& w) noexcept {
    const bool parked = word.commit_park();
    unlock(w);
    if (parked) (void)sleep();
  }

 private:
  base::known_thread* known_ = nullptr;  // this thread; set before anybody can claim the waiter
  base::atomic<std::uint32_t> woken_{0};
};

}  // namespace weft::inline v1::waits
