// Who waits for a notification. A waiter joins the list while it still holds the mutex, lets go of it, and then parks.
//
// V1. A notification after the waiter has let go of the mutex finds it on the list: parked, and then it is claimed; or on its way, and
//     then it is marked and will not park. So none is missed.                                       model/condvar
// V2. A notification goes to one who waits for it: one that cannot be claimed has left, and the next is tried; a marked one that is
//     cancelled passes it on.                                                                       model/condvar
// V3. The mutex is held again when a wait ends, however it ends.                                    test sync/condition_variable_*
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
    bool parked = false;  // or about to be: who and ticket are valid
    bool notified = false;  // before it parked
  };
  // True: it went to somebody.
  [[nodiscard]] bool notify(entry& first, claimed_waiters& claimed) noexcept;

  base::lock lock_;
  waiters waiters_;  // under lock_
};

// On the list from the start; off it at the end.
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
  void unpublish(waits::node&) noexcept override { condition_.waiters_.unlink(entry_); }
  void lock() noexcept override { condition_.lock_.acquire(); }
  void unlock() noexcept override { condition_.lock_.release(); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &condition_.lock_; }
  [[nodiscard]] const char* reason() const noexcept override { return "condition_variable"; }
  [[nodiscard]] const void* object() const noexcept override { return &condition_; }
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
