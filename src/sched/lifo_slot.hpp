// The slot for the task woken last: it runs next on this worker, while what it was sent is still warm.
//
// O1. The owner puts and takes; a thief may take, so nobody is stranded behind a long-running task. model/lifo_slot
// O2. Only the owner makes it non-empty, so an empty slot seen by the owner stays empty until it puts.
#pragma once

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

template <class Task>
class lifo_slot {
 public:
  // Owner: puts `t`, returns the one it displaces.
  [[nodiscard]] Task* put(Task* t) noexcept {
    if (task_.load(base::relaxed) == nullptr) {  // O2
      // Publishes the task; pairs with the acquire in steal().
      task_.store(t, base::order<"lifo.put">(base::release));
      return nullptr;
    }
    return task_.exchange(t, base::order<"lifo.displace">(base::acq_rel));
  }
  // Owner.
  [[nodiscard]] Task* take() noexcept {
    if (task_.load(base::relaxed) == nullptr) return nullptr;
    return task_.exchange(nullptr, base::relaxed);  // our own put: nothing to acquire
  }
  // Anybody.
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
