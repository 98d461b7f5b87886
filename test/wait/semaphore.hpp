// A counting semaphore written on the waitable interface alone, as somebody who builds a primitive on Weft would: no
// queue, no worker, no state word.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "wait/fiber_wait.hpp"

namespace weft_test {

namespace base = weft::base;
namespace task = weft::task;
namespace waits = weft::waits;

class semaphore final : public waits::waitable {
 public:
  explicit semaphore(std::uint32_t count = 0) noexcept : count_(count) {}

  // --- what its users call ---
  [[nodiscard]] waits::outcome take(waits::node& n, bool interruptible = true) {
    return waits::fiber_wait(*this, n, {.interruptible = interruptible});
  }
  [[nodiscard]] waits::outcome take(bool interruptible = true) {
    waits::node n;
    return take(n, interruptible);
  }
  void post() noexcept {
    task::parkable* woken = nullptr;
    {
      base::lock_guard guard(lock_);
      while (waits::node* n = waiters_) {
        waits::unlink(waiters_, *n);
        ++looked_at_;
        if (!waits::claim(*n, task::wake_reason::data)) continue;  // it was cancelled meanwhile
        woken = n->who;
        break;
      }
      if (woken == nullptr) count_.fetch_add(1, base::release);
    }
    if (woken != nullptr) waits::resume(*woken);
  }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_.load(base::acquire); }
  [[nodiscard]] std::size_t waiters() noexcept {
    base::lock_guard guard(lock_);
    std::size_t n = 0;
    for (const waits::node* w = waiters_; w != nullptr; w = w->next) ++n;
    return n;
  }

  // --- waitable ---
  bool try_complete() noexcept override {
    std::uint32_t n = count_.load(base::relaxed);
    while (n != 0)
      if (count_.compare_exchange_weak(n, n - 1, base::acquire, base::relaxed)) return true;
    return false;
  }
  bool publish(waits::node& n) noexcept override {
    if (try_complete()) return false;  // a post came since the first look
    waits::link_last(waiters_, n);
    return true;
  }
  void unpublish(waits::node& n) noexcept override { waits::unlink(waiters_, n); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &lock_; }
  [[nodiscard]] waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"semaphore"};
    return {&kind, this};
  }

 private:
  base::lock lock_;
  base::atomic<std::uint32_t> count_;
  waits::node* waiters_ = nullptr;  // under lock_
  std::size_t looked_at_ = 0;      // under lock_
};

}  // namespace weft_test
