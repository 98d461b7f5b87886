// The timers of one worker, as sched sees them. `time` implements them as a wheel. Any thread may fire them, so a stuck
// worker delays no timer (watch.hpp).
#pragma once

#include <cstddef>
#include <memory>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sched/chain.hpp"
#include "task/task.hpp"

namespace weft::inline v1::timing {
struct entry;
}
namespace weft::inline v1::waits {
struct node;
}

namespace weft::inline v1::sched {

class alarm;

// What fire() has claimed. The caller queues the tasks first and then resumes the others, because an alarm calls the
// user's stop callbacks, for whose end no task should have to wait.
struct fired_timers {
  chain<task::record> tasks;
  waits::node* others = nullptr;  // threads and alarms
};
// Defined by the time layer.
void resume_others(fired_timers& f) noexcept;

class timer_source {
 public:
  virtual ~timer_source() = default;
  // The earliest moment at which fire() may have something to do; never_ns if there is no timer. Any thread may ask,
  // without a lock.
  [[nodiscard]] virtual base::time_ns next_deadline() const noexcept = 0;
  // Claims what is due at `now`, at most `most`, adds it to `into`, and returns how many there were. What is left stays
  // due, and next_deadline() says so.
  virtual std::size_t fire(base::time_ns now, std::size_t most, fired_timers& into) noexcept = 0;

  // The lock of all timers here. The caller of insert() and remove() holds it.
  [[nodiscard]] base::lock& own_lock() noexcept { return lock_; }
  virtual void insert(timing::entry& t) noexcept = 0;
  virtual void remove(timing::entry& t) noexcept = 0;

  // Makes the alarm ring at that time or, if it is past, soon.
  virtual void set(alarm& a, base::time_ns when) noexcept = 0;
  // Returns false if the alarm is ringing now or has rung.
  [[nodiscard]] virtual bool clear(alarm& a) noexcept = 0;
  // Called once, when nobody fires these timers any more and before they are destroyed. Tells every alarm that is still
  // set (alarm::timers_end()), without the lock: its owner may be about to ask for it to be cleared, and waits for the
  // lock in that case.
  virtual void end() noexcept {}

 protected:
  base::lock lock_;
};

// Defined by the time layer.
[[nodiscard]] std::unique_ptr<timer_source> make_timer_source();

}  // namespace weft::inline v1::sched
