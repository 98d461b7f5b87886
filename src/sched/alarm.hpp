// An alarm: a timer calls its function instead of waking a task. Whichever worker fires the timer makes the call.
//
// sched.A1. An alarm rings at most once for each set(). clear() returns whether it could still prevent that; the
//     timers' lock decides. If it could not, the owner keeps the alarm alive until ring() has returned.
//     model/group_deadline_*, test scope/deadline_*
#pragma once

#include <cstddef>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class alarm : public task::parkable {
 public:
  alarm() noexcept : parkable(kind::alarm, task::phase::active, 0) {}

  // Called outside of any task and without any lock held. It must not block.
  virtual void ring() noexcept = 0;
  // The timers in which the alarm is set come to their end: it does not ring. When this returns, the owner does not use
  // those timers any more. Called without any lock held.
  virtual void timers_end() noexcept {}

  alignas(std::max_align_t) std::byte timer_room[base::cache_line];  // for the timer_source in which the alarm is set

 protected:
  ~alarm() = default;
};

}  // namespace weft::inline v1::sched
