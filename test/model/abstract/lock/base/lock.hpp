// What base::lock promises, as one step each: for model tests of what stands on it, which would otherwise spend most of their
// schedules inside the lock. lock_test.cpp explores the real one. A test file asks for it with `// abstract lock`.
//
// Kept: mutual exclusion, release publishes to the next acquire, any waiter may be next, one touch by release(), which may be
// called by another thread than the holder. Left out: spinning, futex, order of arrival (the real one has none either), and
// try_acquire: that nobody can see whether it is held is what lets the explorer join its steps with their neighbours
// (engine::glue_next).
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/check.hpp"
#include "explore/explore.hpp"

namespace weft::inline v1::base {

class lock {
 public:
  lock() = default;
  lock(const lock&) = delete;
  lock& operator=(const lock&) = delete;

  void acquire(explore::where w = explore::where::current()) noexcept {
    if (explore::exploring) explore::lock_acquire(&word_, word_.initial_bits(), w);
  }
  // What the quick halves say depends on who else is there, and so they may say anything: in a test that asks for it, both.
  [[nodiscard]] bool acquire_if_free(explore::where w = explore::where::current()) noexcept {
    if (halves_say_anything && explore::choose(2) == 1) return false;
    acquire(w);
    return true;
  }
  [[nodiscard]] bool release_first(explore::where w = explore::where::current()) noexcept {
    release(w);
    return halves_say_anything && explore::choose(2) == 1;
  }
  static inline bool halves_say_anything = false;
  static void wake_next(lock*) noexcept {}
  void release(explore::where w = explore::where::current()) noexcept {
    if (explore::exploring) explore::lock_release(&word_, word_.initial_bits(), w);
  }

 private:
  atomic<std::uint32_t> word_{0};
};

[[nodiscard]] inline int locks_held() noexcept { return 0; }

inline void tell_of_lock_waits(raw_atomic<bool>*) noexcept {}

class lock_guard {
 public:
  explicit lock_guard(lock& l, explore::where w = explore::where::current()) noexcept : lock_(l) { lock_.acquire(w); }
  ~lock_guard() { lock_.release(); }
  lock_guard(const lock_guard&) = delete;
  lock_guard& operator=(const lock_guard&) = delete;

 private:
  lock& lock_;
};

}  // namespace weft::inline v1::base
