// The lock inside our own objects: bounded spin, then futex.
//
// Protocol: 0 free, 1 held, 2 held and somebody may sleep.
//  L1. Mutual exclusion; unlock publishes to the next lock.                    test base/lock_*, model/lock
//  L2. It may be destroyed as soon as it has been released and nobody waits: unlock touches the word once, and the futex
//      call after it uses only the address.                                    test base/lock_destroyed_after_release
//  L3. It is held across a switch of fibers and released by another stack or thread than the one that took it: no owner
//      is recorded in the word. Checked builds count locks held by the thread to catch a suspension under a lock.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/check.hpp"

namespace weft::inline v1::base {

class lock {
 public:
  lock() = default;
  lock(const lock&) = delete;
  lock& operator=(const lock&) = delete;

  void acquire() noexcept {
    if (acquire_if_free()) [[likely]]
      return;
    acquire_slow();
    if constexpr (checked_build) count_held(1);
  }
  // The quick half of it. False: acquire() is to be called.
  [[nodiscard]] bool acquire_if_free() noexcept {
    std::uint32_t free = 0;
    // Pairs with the release exchange in release_first(): what the last holder wrote is seen.
    if (!word_.compare_exchange_strong(free, 1, order<"lock.acquire">(base::acquire), relaxed)) [[unlikely]]
      return false;
    if constexpr (checked_build) count_held(1);
    return true;
  }

  [[nodiscard]] bool try_acquire() noexcept {
    std::uint32_t free = 0;
    if (word_.load(relaxed) != 0) return false;
    if (!word_.compare_exchange_strong(free, 1, order<"lock.try_acquire">(base::acquire), relaxed)) return false;
    if constexpr (checked_build) count_held(1);
    return true;
  }

  void release() noexcept {
    if (release_first()) [[unlikely]]
      wake_next(this);
  }
  // The quick half of it. True: wake_next() is to be called with what may be only an address by then (L2).
  [[nodiscard]] bool release_first() noexcept {
    if constexpr (checked_build) count_held(-1);
    // Pairs with the acquire in acquire_if_free()/acquire_slow(). Last touch of the word (L2).
    return check<"lock.release.wake">(word_.exchange(0, order<"lock.release">(base::release)) == 2);
  }
  static void wake_next(lock* released) noexcept { futex_wake(&released->word_, 1); }

 private:
  void acquire_slow() noexcept;
  static void count_held(int change) noexcept;

  atomic<std::uint32_t> word_{0};
};

// How many of these locks the calling thread holds; always 0 outside checked builds.
[[nodiscard]] int locks_held() noexcept;

// From now on `flag` is true while the calling thread sleeps for one of these locks. nullptr: no more.
void tell_of_lock_waits(raw_atomic<bool>* flag) noexcept;

class lock_guard {
 public:
  explicit lock_guard(lock& l) noexcept : lock_(l) { lock_.acquire(); }
  ~lock_guard() { lock_.release(); }
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;

 private:
  lock& lock_;
};

}  // namespace weft::inline v1::base
