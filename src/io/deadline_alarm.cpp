#include "io/deadline_alarm.hpp"

#include <utility>

#include "base/clock.hpp"

namespace weft::inline v1::io {

bool deadline_alarm::arm(base::time_ns deadline, sched::timer_source& timers, std::uint64_t driver) noexcept {
  base::lock_guard guard(lock_);
  if (set_in_ != nullptr && driver_.load(base::relaxed) != driver) return false;
  driver_.store(driver, base::release);  // pairs with the acquire in is_set_for()
  set(deadline, timers);
  return true;
}

// Called with the lock. An alarm that cannot be cleared any more is about to ring. It then looks at everybody who is on
// the list by that time, so nothing has to be set.
void deadline_alarm::set(base::time_ns when, sched::timer_source& timers) noexcept {
  if (set_for_.load(base::relaxed) <= when) return;
  if (set_in_ == nullptr || set_in_->clear(*this)) {
    timers.set(*this, when);
    set_in_ = &timers;
  }
  set_for_.store(when, base::relaxed);
}

// The numbers are those at the head of deadline_alarm.hpp. The timers in which the alarm was set exist until ring() has
// returned, because a worker of their runtime calls it. If another runtime has set the alarm since (1), those who wait
// are tasks of that one, which has seen to their deadlines.
void deadline_alarm::ring() noexcept {
  sched::timer_source* rang_in;
  std::uint64_t rang_for;
  {
    base::lock_guard guard(lock_);  // (1)
    rang_in = std::exchange(set_in_, nullptr);
    rang_for = driver_.load(base::relaxed);
    set_for_.store(base::never_ns, base::relaxed);
  }
  locks::claimed_waiters late;
  base::time_ns next;
  {
    base::lock_guard guard(direction_.own_lock());  // (2)
    next = direction_.expire(base::now(), late);
  }
  if (next != base::never_ns) {
    base::lock_guard guard(lock_);  // (3)
    if (driver_.load(base::relaxed) == rang_for) set(next, *rang_in);
  }
  late.resume();
}

// Nobody of that runtime waits any more.
void deadline_alarm::timers_end() noexcept {
  base::lock_guard guard(lock_);
  set_in_ = nullptr;
  set_for_.store(base::never_ns, base::relaxed);
}

}  // namespace weft::inline v1::io
