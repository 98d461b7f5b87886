// A flag, a number of rounds, and the waiters for either. It is the core of event, notify, latch and barrier.
//
// Everything happens under the lock, and the lock may be destroyed right after its release. So an event on the stack of
// its waiter is safe, and nothing here is lock-free.
//
// sync.E1. Nobody waits for a flag that is set, or for the end of a round that has ended.  model/event_*, model/barrier
// sync.E2. A set for one goes to one waiter by its claim, or stays for the next one that comes. A waiter that has left
//     takes none with it.                                                                                model/notify_*
#pragma once

#include <cstdint>

#include "base/lock.hpp"
#include "sync/waiters.hpp"
#include <weft/detail/signal_core.hpp>

namespace weft::inline v1::locks {

class signal_core {
 public:
  void lock() noexcept { lock_.acquire(); }
  void unlock() noexcept { lock_.release(); }
  [[nodiscard]] base::lock& own_lock() noexcept { return lock_; }

  // --- with the lock -----------------------------------------------------------------------------------------------
  [[nodiscard]] bool take_flag(bool takes) noexcept {
    const bool was = set_;
    if (takes) set_ = false;
    return was;
  }
  [[nodiscard]] std::uint64_t round() const noexcept { return round_; }
  void publish(waits::node& n) noexcept { waiters_.link_last(n); }
  void unpublish(waits::node& n) noexcept { waiters_.unlink(n); }
  [[nodiscard]] bool is_waited_for() const noexcept { return !waiters_.empty(); }
  void end_round(claimed_waiters& ended) noexcept {
    base::step<"signal.next_round">([&] { ++round_; });
    base::step<"signal.end_round">([&] { waiters_.claim_all(ended); });
  }

  // --- without -----------------------------------------------------------------------------------------------------
  void set_for_one() noexcept;
  void set_for_all() noexcept;
  void wake_present() noexcept;
  void reset() noexcept;
  [[nodiscard]] bool is_set() noexcept;

 private:
  friend struct weft::detail::observer;

  base::lock lock_;
  bool set_ = false;
  std::uint64_t round_ = 0;
  waiters waiters_;
};

}  // namespace weft::inline v1::locks
