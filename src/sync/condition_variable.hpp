// The waiters of a condition variable. A waiter joins the list while it still holds the mutex, unlocks the mutex, and
// then parks.
//
// sync.V1. A notification that comes after the waiter has unlocked the mutex finds the waiter on the list. If it is
//     parked, it is claimed; if it is about to park, it is marked and will not park. So no notification is missed.
//                                                                                                         model/condvar
// sync.V2. A notification goes to a task that waits for it. A waiter that cannot be claimed has left, and the next one
//     is tried; a marked waiter that is cancelled passes the notification on.                             model/condvar
// sync.V3. The mutex is held again when a wait ends, however it ends.                    test sync/condition_variable_*
#pragma once

#include <chrono>
#include <source_location>

#include "base/lock.hpp"
#include "sync/mutex.hpp"
#include "sync/waiters.hpp"

namespace weft::inline v1::locks {

class condition_core {
 public:
  void notify_one() noexcept;
  void notify_all() noexcept;
  [[nodiscard]] bool is_waited_for() const noexcept { return !waiters_.empty(); }

 private:
  friend class notification_operation;
  struct entry : waits::node {
    bool parked = false;  // it is parked or about to park: who and ticket are valid
    bool notified = false;  // it was notified before it parked
  };
  // Returns true if the notification went to a waiter.
  [[nodiscard]] bool notify(entry& first, claimed_waiters& claimed) noexcept;

  base::lock lock_;
  waiters waiters_;  // under lock_
};

inline constexpr waits::wait_kind condition_variable_kind{"condition_variable", waits::kind_number::condition_variable};

// It is on the list from its construction to its destruction.
class notification_operation final : public waits::waitable {
 public:
  explicit notification_operation(condition_core& c) noexcept;
  ~notification_operation();
  notification_operation(const notification_operation&) = delete;
  notification_operation& operator=(const notification_operation&) = delete;

  bool try_complete() noexcept override { return false; }
  bool try_locked() noexcept override;
  bool publish(waits::node&) noexcept override {
    entry_.parked = true;
    return true;
  }
  // publish() does not link it again: nobody wakes a waiter of this list to look again.
  void unpublish(waits::node&) noexcept override { condition_.waiters_.unlink(entry_); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &condition_.lock_; }
  [[nodiscard]] waits::subject what() const noexcept override { return {&condition_variable_kind, &condition_}; }
  [[nodiscard]] waits::node& node() noexcept { return entry_; }

 private:
  condition_core& condition_;
  condition_core::entry entry_;
};

// Cancellation points. The caller holds the mutex before and after.
void wait(condition_core& c, mutex_core& m, std::source_location where);
[[nodiscard]] bool wait_until(condition_core& c, mutex_core& m, std::chrono::steady_clock::time_point when,
                              std::source_location where);

}  // namespace weft::inline v1::locks
