// The slot for the task that was woken last. It runs next on this worker, while what it was sent is still in the cache.
//
// sched.O1. The owner puts and takes. A thief may take, so no task is stranded behind one that runs for long.
//     model/lifo_slot
// sched.O2. Only the owner makes the slot non-empty, so a slot that the owner has seen empty stays empty until it puts.
//     model/lifo_slot
#pragma once

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

template <class Task>
class lifo_slot {
 public:
  // The owner puts `t` and gets the task that it displaces.
  [[nodiscard]] Task* put(Task* t) noexcept {
    if (task_.load(base::relaxed) == nullptr) {  // sched.O2
      // Publishes the task; pairs with the acquire in steal().
      task_.store(t, base::order<"lifo.put">(base::release));
      return nullptr;
    }
    return task_.exchange(t, base::order<"lifo.displace">(base::acq_rel));
  }
  // Only the owner calls this.
  [[nodiscard]] Task* take() noexcept {
    if (task_.load(base::relaxed) == nullptr) return nullptr;
    return task_.exchange(nullptr, base::relaxed);  // relaxed: the task is our own put, so there is nothing to acquire
  }
  // Anybody may call this.
  [[nodiscard]] Task* steal() noexcept {
    Task* t = task_.load(base::relaxed);
    // Pairs with the release in put().
    if (t == nullptr ||
        !task_.compare_exchange_strong(t, nullptr, base::order<"lifo.steal">(base::acquire), base::relaxed))
      return nullptr;
    return t;
  }
  [[nodiscard]] bool empty() const noexcept { return task_.load(base::relaxed) == nullptr; }

 private:
  base::atomic<Task*> task_{nullptr};
};

}  // namespace weft::inline v1::sched
