// The counting semaphore: one word, and behind it a list of requests with a lock of its own.
//
//   63              1   0
//  [ permits         ][ W ]       W  somebody is on the list, or is about to be
//
// P1. With W set the word changes only under the lock; without it by compare-exchanges alone, which fail when W comes.  (by code)
// P2. A request waits only while it is behind another or wants more than there is: whoever adds permits or leaves the list looks at
//     the head again. So no permit lies idle beside a request it would fulfil.     model/semaphore, test sync/semaphore_*
// P3. Permits given to a waiter are taken out of the word after its claim, so one that left has been given none. model/semaphore
// P4. release() ends with one compare-exchange, or with the lock's release while somebody is still waiting or yet to be resumed:
//     who acquires may destroy it.                                                 model/semaphore_*_destroys
#pragma once

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sync/caller.hpp"
#include "sync/waiters.hpp"
#include <weft/semaphore.hpp>

namespace weft::inline v1::locks {

class semaphore_core {
 public:
  explicit semaphore_core(std::uint64_t permits) noexcept : word_(permits * one) {}

  [[nodiscard]] bool try_take(std::uint64_t n) noexcept {
    std::uint64_t w = word_.load(base::relaxed);
    while ((w & waiting) == 0 && w / one >= n)
      // acquire pairs with the release in give() and the stores under the lock: what was done before release() is seen.
      if (word_.compare_exchange_weak(w, w - n * one, base::order<"semaphore.take">(base::acquire), base::relaxed))
        return true;
    return false;
  }
  // False: there would be more than semaphore::max().
  [[nodiscard]] bool give(std::uint64_t n) noexcept {
    std::uint64_t w = word_.load(base::relaxed);
    while ((w & waiting) == 0) {
      if (n > semaphore::max() - w / one) return false;
      // release pairs with the acquire in try_take(). The last touch (P4).
      if (word_.compare_exchange_weak(w, w + n * one, base::order<"semaphore.give">(base::release), base::relaxed))
        return true;
    }
    return give_to_waiters(n);
  }
  [[nodiscard]] std::uint64_t permits() const noexcept { return word_.load(base::relaxed) / one; }
  [[nodiscard]] bool is_waited_for() const noexcept { return (word_.load(base::relaxed) & waiting) != 0; }

 private:
  friend permit_operation;
  using request = permit_operation::request;
  static constexpr std::uint64_t waiting = 1, one = 2;

  [[nodiscard]] bool publish(request& r) noexcept;
  void unpublish(request& r) noexcept;
  [[nodiscard]] std::uint64_t grant(std::uint64_t permits, claimed_waiters& to) noexcept;
  [[nodiscard]] bool give_to_waiters(std::uint64_t n) noexcept;

  base::atomic<std::uint64_t> word_;
  base::lock lock_;
  waiters waiters_;  // under lock_
};

// Cancellation points.
void acquire(semaphore_core& s, std::uint64_t n, std::source_location where);
[[nodiscard]] bool try_acquire_until(semaphore_core& s, std::uint64_t n, std::chrono::steady_clock::time_point when,
                                     std::source_location where);

}  // namespace weft::inline v1::locks
