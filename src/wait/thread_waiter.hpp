// An outside thread that waits: the same word and the same claim as a task, and a futex instead of a stack to switch to.
#pragma once

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "task/task.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::waits {

class thread_waiter final : public task::parkable {
 public:
  thread_waiter() noexcept : parkable(kind::thread, task::phase::active, 0) {}

  // The claim's winner. The waiter may be gone right after the store: only its address is used then.
  void signal() noexcept {
    base::atomic<std::uint32_t>* address = &woken_;
    address->store(1, base::order<"thread_waiter.signal">(base::release));
    base::futex_wake(address, 1);
  }
  // False: the deadline came first. Somebody may have claimed this waiter all the same; then sleep() on.
  bool sleep(base::time_ns deadline = base::never_ns) noexcept {
    // Pairs with the release in signal(): what the waker did is seen.
    while (woken_.load(base::order<"thread_waiter.sleep">(base::acquire)) == 0) {
      if (deadline != base::never_ns && base::now() >= deadline) return false;
      base::futex_wait(woken_, 0, deadline);
    }
    woken_.store(0, base::relaxed);
    return true;
  }

 private:
  base::atomic<std::uint32_t> woken_{0};
};

}  // namespace weft::inline v1::waits
