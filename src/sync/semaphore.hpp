// The counting semaphore: one word, and behind it a list of requests with a lock of its own.
//
//   63              1   0
//  [ permits         ][ W ]       W  somebody is on the list, or is about to be
//
// sync.P1. While W is set, the word changes only under the lock. While it is not, the word changes by compare-exchanges
//     alone, which fail when W comes.                        model/semaphore, test sync/a_large_request_is_not_passed_*
// sync.P2. A request waits only while it is behind another one or wants more permits than there are: whoever adds
//     permits or leaves the list looks at the head again. So no permit lies idle beside a request that it would fulfil.
//                                                                                model/semaphore, test sync/semaphore_*
// sync.P3. Permits for a waiter are taken out of the word after the waiter is claimed, so a waiter that has left was
//     given none.                                                                                       model/semaphore
// sync.P4. release() ends with one compare-exchange, or with the lock's release while somebody still waits or is yet to
//     be resumed: whoever acquires may destroy the semaphore.                                model/semaphore_*_destroys
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
      // acquire pairs with the release in give() and the stores under the lock: the caller sees what was done before
      // release().
      if (word_.compare_exchange_weak(w, w - n * one, base::order<"semaphore.take">(base::acquire), base::relaxed))
        return true;
    return false;
  }
  // Returns false if there would be more than semaphore::max() permits.
  [[nodiscard]] bool give(std::uint64_t n) noexcept {
    std::uint64_t w = word_.load(base::relaxed);
    while ((w & waiting) == 0) {
      if (n > semaphore::max() - w / one) return false;
      // release pairs with the acquire in try_take(). This is the last access (sync.P4).
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
