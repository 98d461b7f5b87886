// The mutex: one word, and behind it a list of waiters with a lock of its own.
//
//   word_   2   1   0                   H  held     W  somebody is on the list
//         [ K ][ W ][ H ]               K  one waiter was woken and is on its way to try
//
// Whoever finds the mutex free takes it, also ahead of those that wait (barging). So the running task continues at the
// price of one read-modify-write, and a waiter that it wakes costs it nothing until it stops by itself. A waiter that
// was woken and was not fast enough goes to the head of the list, and the next unlock hands the mutex over to it, so no
// waiter loses twice. Both were measured: docs/decisions/0007-mutex.md.
//
// sync.M1. H is set by one operation of the taker, and cleared or handed over by the holder: mutual exclusion, and the
//     next holder sees what was done under the mutex.                                    model/mutex, test sync/mutex_*
// sync.M2. W without H implies K: an unlock that would leave a free mutex to waiters claims one of them and sets K,
//     both under the list's lock. K ends when that waiter takes the mutex, waits again (because somebody holds it) or
//     gives up. A waiter that gives up wakes the next one if the mutex is free. So no wake is lost.
//                                                                                     model/mutex, test sync/a_waiter_*
// sync.M3. W is set under the list's lock, on a mutex that is held, so the holder's unlock sees it.         model/mutex
// sync.M4. While the mutex is held and K is not set, the word changes only under the list's lock and by the holder:
//     whoever tries to take it sets a bit that is set already.                                  follows from sync.M1–M3
// sync.M5. unlock() ends with one compare-exchange, or with the release of the list's lock while another waiter is yet
//     to be served: whoever takes the mutex next may destroy it.                                 model/mutex_*_destroys
#pragma once

#include <chrono>
#include <source_location>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sync/caller.hpp"
#include "sync/held_locks.hpp"
#include "sync/waiters.hpp"

namespace weft::inline v1::locks {

class mutex_core {
  using state = std::uint32_t;

 public:
  // Sets H, which changes nothing if it is set already: one operation, whether somebody waits or not. It looks at this
  // one bit only, so the compiler can use a single instruction where there is one (lock bts).
  [[nodiscard]] bool try_take(owner me) noexcept {
    // acquire pairs with the release in release() and release_to_waiter(): the taker sees what the last holder did.
    if ((word_.fetch_or(held, base::order<"mutex.take">(base::acquire)) & held) != 0) return false;
    owner_.store(me, base::relaxed);
    return true;
  }
  void release() noexcept {
    owner_.store(0, base::relaxed);
    state w = held;
    // The expected value is a guess, so nothing has to be loaded first. release pairs with the acquire in try_take().
    // This is the last access (sync.M5).
    while (!word_.compare_exchange_strong(w, w & ~held, base::order<"mutex.release">(base::release), base::relaxed))
      // sync.M2: without K the mutex may become free in this way only if nobody waits.
      if (base::check<"mutex.release.wake">((w & woken) == 0)) return release_to_waiter(w);
  }

  [[nodiscard]] bool is_held_by(owner who) const noexcept { return owner_.load(base::relaxed) == who; }
  [[nodiscard]] bool is_held() const noexcept { return (word_.load(base::relaxed) & held) != 0; }
  [[nodiscard]] bool is_idle() const noexcept { return word_.load(base::relaxed) == 0; }

 private:
  friend class lock_operation;
  friend struct weft::detail::observer;
  static constexpr state held = 1, waiting = 2, woken = 4;

  struct claimant : waits::node {
    owner me = 0;
    bool woken = false;  // K stands for this waiter
    bool beaten = false;  // it was woken before, and another task was faster
  };

  [[nodiscard]] bool take_for(claimant& c) noexcept;
  [[nodiscard]] bool publish(claimant& c) noexcept;
  void unpublish(claimant& c) noexcept;
  void give_up_wake() noexcept;
  void release_to_waiter(state seen) noexcept;
  [[nodiscard]] state others() const noexcept { return waiters_.empty() ? 0 : waiting; }

  base::atomic<state> word_{0};
  base::lock lock_;
  base::atomic<owner> owner_{0};  // written by the holder only; detects a task that waits for itself
  waiters waiters_;  // under lock_
};

inline constexpr waits::wait_kind mutex_kind{"mutex", waits::kind_number::mutex};

// A wait for the mutex. However it ends, a wake that it was given and did not use is passed on (sync.M2).
class lock_operation final : public waits::waitable {
 public:
  lock_operation(mutex_core& m, owner me) noexcept : mutex_(m) { entry_.me = me; }
  ~lock_operation() {
    if (entry_.woken) base::step<"mutex.pass_on">([&] { mutex_.give_up_wake(); });
  }
  lock_operation(const lock_operation&) = delete;
  lock_operation& operator=(const lock_operation&) = delete;

  bool try_complete() noexcept override { return mutex_.take_for(entry_); }
  bool publish(waits::node&) noexcept override { return mutex_.publish(entry_); }
  void unpublish(waits::node&) noexcept override { mutex_.unpublish(entry_); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &mutex_.lock_; }
  [[nodiscard]] waits::subject what() const noexcept override { return {&mutex_kind, &mutex_}; }
  [[nodiscard]] waits::node& node() noexcept { return entry_; }

 private:
  mutex_core& mutex_;
  mutex_core::claimant entry_;
};

// Cancellation points.
void lock(mutex_core& m, std::source_location where);
[[nodiscard]] bool lock_until(mutex_core& m, std::chrono::steady_clock::time_point when, std::source_location where);
// Never cancellation points.
void relock(mutex_core& m, std::source_location where) noexcept;
[[nodiscard]] inline bool try_lock(mutex_core& m) noexcept {
  if (!m.try_take(this_owner())) return false;
  now_held(&m, "mutex");
  return true;
}
void unlock(mutex_core& m) noexcept;

}  // namespace weft::inline v1::locks
