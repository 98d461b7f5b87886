// The alarm of one direction: it ends the waits whose time is up.
//
// A server limits every read, and nearly every read ends long before. So a wait does not set a timer and take it off
// again. It writes its deadline into its own entry of the direction's list, and makes sure that the alarm rings no later
// than that. The alarm stays set when the wait ends, and mostly rings in time for the next one, too. When it rings it ends
// the waits that are late and sets itself for the earliest deadline of the others. A connection that is busy for hours
// under a limit of 30 seconds sets a timer every 30 seconds.
//
//   wait    arm(deadline), if the alarm is not set for as early a time; then, with the direction's lock, look once more
//           that it is, and link the entry; otherwise begin again
//   ring    (1) mark the alarm as not set; (2) with the direction's lock, claim who is late and find the earliest
//           deadline of the others; (3) set the alarm for that
//
// io.T1. No deadline is forgotten. While an entry is on the list, the alarm is set for its deadline or earlier, or is
//     about to ring and has not done (2), or has seen the entry in (2) and will do (3). If an entry is linked after (2),
//     the lock says that (1) was before, so the look before the linking has seen it.
//     model/deadline_alarm, test io/a_limit_*
// io.T2. A wait ends by its own deadline only, and never early: (2) compares the deadline in the entry with the clock. An
//     alarm that was set for an earlier wait, or in an earlier life of the descriptor's record, changes nothing for it.
//     model/deadline_alarm, test io/an_alarm_*
// io.T3. The timers in which the alarm is set are there as long as a wait needs them: they are those of the runtime whose
//     task waits. While the alarm is still set in another runtime, from an earlier life of the record, arm() refuses, and
//     so it does for ever when a second runtime watches the descriptor in the same life. Those waits set timers of their
//     own. Timers that go away tell the alarm.
//     test io/a_runtime_ends_*, io/another_runtime_*
//
// The alarm's own lock is taken before that of the timers. It is not the direction's, because a select takes the locks of
// directions and timers in the order of their addresses (wait.A3).
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "io/direction.hpp"
#include "sched/alarm.hpp"
#include "sched/timer_source.hpp"

namespace weft::inline v1::io {

class deadline_alarm final : public sched::alarm {
 public:
  explicit deadline_alarm(direction& of) noexcept : direction_(of) {}
  deadline_alarm(const deadline_alarm&) = delete;
  deadline_alarm& operator=(const deadline_alarm&) = delete;

  // Whether it rings soon enough, in the timers of the runtime with that driver. With the direction's lock held the
  // answer is good for an entry that is linked now. relaxed: see io.T1; without the lock it is a hint. Two loads are
  // enough, because in one life of a record only one runtime sets the alarm (io.T3). acquire pairs with the release in
  // arm(): with a new driver, what was set for the one before is not seen any more.
  [[nodiscard]] bool is_set_for(base::time_ns deadline, std::uint64_t driver) const noexcept {
    return driver_.load(base::acquire) == driver && set_for_.load(base::relaxed) <= deadline;
  }
  // Makes it ring by then, in the timers of a worker of the runtime with that driver. Returns false if another runtime
  // has it.
  [[nodiscard]] bool arm(base::time_ns deadline, sched::timer_source& timers, std::uint64_t driver) noexcept;

  void ring() noexcept override;
  void timers_end() noexcept override;

 private:
  void set(base::time_ns when, sched::timer_source& timers) noexcept;

  direction& direction_;
  base::lock lock_;
  base::atomic<base::time_ns> set_for_{base::never_ns};  // written under lock_
  sched::timer_source* set_in_ = nullptr;  // under lock_; nullptr from (1) on
  base::atomic<std::uint64_t> driver_{0};  // whose timers these are; written under lock_
};

}  // namespace weft::inline v1::io
