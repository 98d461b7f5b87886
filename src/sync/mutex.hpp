// The mutex: one word, and behind it a list of waiters with a lock of its own.
//
//   word_   2   1   0                   H  held     W  somebody is on the list
//         [ K ][ W ][ H ]               K  one waiter was woken and is on its way to try
//
// Whoever finds it free takes it, also past those that wait (barging): the running task goes on at the price of one
// read-modify-write, and a waiter that it wakes costs it nothing until it stops by itself. A waiter that was woken and beaten to it
// goes to the head of the list, and the next unlock hands the mutex over to it: nobody is beaten twice. Both were
// measured: docs/decisions/0007-mutex.md.
//
// M1. H is set by the one operation of the one who takes it, and cleared, or handed over, by the one who holds it: mutual exclusion,
//     and what was done under the mutex is seen by the next.                                  model/mutex, test sync/mutex_*
// M2. W without H implies K: the unlock that would leave a free mutex to waiters claims one of them and sets K, both under the
//     list's lock. K ends when that waiter takes the mutex, waits again (for one who holds it) or gives up, and who gives up wakes
//     the next if the mutex is free. So no wake is lost.                                      model/mutex, test sync/mutex_waiter_*
// M3. W is set under the list's lock, on a mutex that is held, and so seen by its holder's unlock.           model/mutex
// M4. While it is held and K is not set, the word changes only under the list's lock and by the holder; whoever tries to take it
//     sets what is set.                                                                       (follows)
// M5. unlock() ends with one compare-exchange, or with the release of the list's lock while somebody else is still to come: who takes
//     the mutex next may destroy it.                                                          model/mutex_*_destroys
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
  // Sets H, which changes nothing if it is set: one operation, whoever waits. Only the one bit is looked at, so that it is a single
  // instruction where there is one (lock bts).
  [[nodiscard]] bool try_take(owner me) noexcept {
    // acquire pairs with the release in release() and release_to_waiter(): what the last holder did is seen.
    if ((word_.fetch_or(held, base::order<"mutex.take">(base::acquire)) & held) != 0) return false;
    owner_.store(me, base::relaxed);
    return true;
  }
  void release() noexcept {
    owner_.store(0, base::relaxed);
    state w = held;
    // A guess: nothing has to be loaded first. release pairs with the acquire in try_take(). The last touch (M5).
    while (!word_.compare_exchange_strong(w, w & ~held, base::order<"mutex.release">(base::release), base::relaxed))
      // M2: only with K, or without waiters, may it become free just so.
      if (base::check<"mutex.release.wake">((w & woken) == 0)) return release_to_waiter(w);
  }

  [[nodiscard]] bool is_held_by(owner who) const noexcept { return owner_.load(base::relaxed) == who; }
  [[nodiscard]] bool is_held() const noexcept { return (word_.load(base::relaxed) & held) != 0; }
  [[nodiscard]] bool is_idle() const noexcept { return word_.load(base::relaxed) == 0; }

 private:
  friend class lock_operation;
  static constexpr state held = 1, waiting = 2, woken = 4;

  struct claimant : waits::node {
    owner me = 0;
    bool woken = false;  // K stands for this one
    bool beaten = false;  // it was woken before, and somebody else was faster
  };

  [[nodiscard]] bool take_for(claimant& c) noexcept;
  [[nodiscard]] bool publish(claimant& c) noexcept;
  void unpublish(claimant& c) noexcept;
  void give_up_wake() noexcept;
  void release_to_waiter(state seen) noexcept;
  [[nodiscard]] state others() const noexcept { return waiters_.empty() ? 0 : waiting; }

  base::atomic<state> word_{0};
  base::lock lock_;
  base::atomic<owner> owner_{0};  // written by the holder only; to tell a task that waits for itself
  waiters waiters_;  // under lock_
};

// A wait for the mutex. Whatever it ends with, a wake it was given and did not use is passed on (M2).
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
  void lock() noexcept override { mutex_.lock_.acquire(); }
  void unlock() noexcept override { mutex_.lock_.release(); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &mutex_.lock_; }
  [[nodiscard]] const char* reason() const noexcept override { return "mutex"; }
  [[nodiscard]] const void* object() const noexcept override { return &mutex_; }
  [[nodiscard]] waits::node& node() noexcept { return entry_; }

 private:
  mutex_core& mutex_;
  mutex_core::claimant entry_;
};

// Cancellation points.
void lock(mutex_core& m, std::source_location where);
[[nodiscard]] bool lock_until(mutex_core& m, std::chrono::steady_clock::time_point when, std::source_location where);
// Not.
void relock(mutex_core& m, std::source_location where) noexcept;
[[nodiscard]] inline bool try_lock(mutex_core& m) noexcept {
  if (!m.try_take(this_owner())) return false;
  now_held(&m, "mutex");
  return true;
}
void unlock(mutex_core& m) noexcept;

}  // namespace weft::inline v1::locks
