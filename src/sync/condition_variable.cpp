#include "sync/condition_variable.hpp"

#include "base/check.hpp"
#include <weft/condition_variable.hpp>
#include <weft/errors.hpp>

namespace weft::inline v1::locks {

// ---- notifying ------------------------------------------------------------------------------------------------------

bool condition_core::notify(entry& first, claimed_waiters& claimed) noexcept {
  if (!first.parked) {
    waiters_.unlink(first);
    first.notified = true;
    return true;
  }
  if (!waiters_.claim(first, task::wake_reason::data)) return false;
  claimed.add(first);
  return true;
}

void condition_core::notify_one() noexcept {
  claimed_waiters claimed;
  lock_.acquire();
  while (waits::node* n = waiters_.first())
    if (notify(static_cast<entry&>(*n), claimed)) break;
  lock_.release();
  claimed.resume();
}

void condition_core::notify_all() noexcept {
  claimed_waiters claimed;
  lock_.acquire();
  while (waits::node* n = waiters_.first()) (void)notify(static_cast<entry&>(*n), claimed);
  lock_.release();
  claimed.resume();
}

// ---- waiting --------------------------------------------------------------------------------------------------------

notification_operation::notification_operation(condition_core& c) noexcept : condition_(c) {
  base::lock_guard guard(condition_.lock_);
  base::step<"condvar.join">([&] { condition_.waiters_.link_last(entry_); });
}

// If the waiter was cancelled before it parked, a notification that it was given meanwhile goes to the next (sync.V2).
notification_operation::~notification_operation() {
  condition_.lock_.acquire();
  condition_.waiters_.unlink(entry_);
  const bool unused = entry_.notified;
  condition_.lock_.release();
  if (unused) base::step<"condvar.pass_on">([&] { condition_.notify_one(); });
}

bool notification_operation::try_locked() noexcept {
  const bool notified = base::check<"condvar.marked">(entry_.notified);
  if (notified) entry_.notified = false;
  return notified;
}

namespace {

// Unlocks the mutex, and locks it again at the end.
class meanwhile_unlocked {
 public:
  meanwhile_unlocked(mutex_core& m, std::source_location where) noexcept : mutex_(m), where_(where) {}
  ~meanwhile_unlocked() {
    if (unlocked_) relock(mutex_, where_);
  }
  meanwhile_unlocked(const meanwhile_unlocked&) = delete;
  meanwhile_unlocked& operator=(const meanwhile_unlocked&) = delete;

  void begin() noexcept {
    unlocked_ = true;
    locks::unlock(mutex_);
  }

 private:
  mutex_core& mutex_;
  std::source_location where_;
  bool unlocked_ = false;
};

void check_held(const mutex_core& m, std::source_location where) {
  if (!m.is_held_by(this_owner())) [[unlikely]]
    weft::detail::throw_usage("a condition variable is waited for with a mutex that the caller does not hold", where);
}

}  // namespace

void wait(condition_core& c, mutex_core& m, std::source_location where) {
  check_held(m, where);
  waits::check_cancelled();
  meanwhile_unlocked mutex(m, where);
  notification_operation op(c);  // leaves the list before the mutex is locked again
  mutex.begin();
  complete(op, where);
}

bool wait_until(condition_core& c, mutex_core& m, std::chrono::steady_clock::time_point when,
                std::source_location where) {
  check_held(m, where);
  waits::check_cancelled();
  meanwhile_unlocked mutex(m, where);
  notification_operation op(c);  // leaves the list before the mutex is locked again
  mutex.begin();
  return complete_until(op, when, where);
}

}  // namespace weft::inline v1::locks

namespace weft::inline v1 {

using locks::condition_core;
using locks::core_in;
using locks::mutex_core;

condition_variable::~condition_variable() {
  base::require(
      !core_in<condition_core>(room_).is_waited_for(),
      "a condition variable is destroyed while it is waited for; let it live until every task that uses it has ended");
}
void condition_variable::notify_one() noexcept { core_in<condition_core>(room_).notify_one(); }
void condition_variable::notify_all() noexcept { core_in<condition_core>(room_).notify_all(); }
void condition_variable::look_at_cancellation() { waits::check_cancelled(); }
void condition_variable::refuse(std::source_location where) {
  detail::throw_usage("a condition variable is waited for with a lock that holds no mutex", where);
}
void condition_variable::wait_with(mutex& m, std::source_location where) {
  locks::wait(core_in<condition_core>(room_), core_in<mutex_core>(m.room_), where);
}
bool condition_variable::wait_with(mutex& m, std::chrono::steady_clock::time_point when, std::source_location where) {
  return locks::wait_until(core_in<condition_core>(room_), core_in<mutex_core>(m.room_), when, where);
}

}  // namespace weft::inline v1
