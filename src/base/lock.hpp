// The lock inside our own objects: bounded spin, then futex.
//
// Protocol: 0 free, 1 held, 2 held and somebody may sleep.
//
// base.L1. Mutual exclusion; unlock publishes to the next lock, and no sleeper is forgotten.
//                                                                                          model/lock, test base/lock_*
// base.L2. It may be destroyed as soon as it has been released and nobody waits: unlock accesses the word once, and the
//     futex call after it uses only the address.
//                                                model/lock_destroyed_right_after_release, test base/may_be_destroyed_*
// base.L3. It is held across a switch of fibers, and may be released by another stack or thread than the one that took
//     it: the word records no owner.      model/lock_released_by_another_thread, test base/may_be_released_by_another_*
// base.L4. Checked builds count the locks that a thread holds, and abort when a task suspends under one.
//                                                                   test base/checked_builds_count_*, wait/suspension_*
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
  // The fast half of acquire(). If it returns false, the caller must call acquire().
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
  // The fast half of release(). If it returns true, the caller must call wake_next(). By then the lock may be gone, so
  // wake_next() uses its address only (base.L2).
  [[nodiscard]] bool release_first() noexcept {
    if constexpr (checked_build) count_held(-1);
    // Pairs with the acquire in acquire_if_free()/acquire_slow(). Last touch of the word (base.L2).
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

// From now on `flag` is true while the calling thread sleeps for one of these locks. nullptr ends that.
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
