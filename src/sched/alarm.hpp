// Something that a timer calls instead of waking it, on whichever worker fires the timer.
//
// L1. It rings at most once for each set(); clear() says whether it still could be prevented, under the timers' lock. Whoever
//     owns an alarm that could not keeps it until ring() has returned.                 test scope/deadline_*
#pragma once

#include <cstddef>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class alarm : public task::parkable {
 public:
  alarm() noexcept : parkable(kind::alarm, task::phase::active, 0) {}

  // Outside of any task, without any lock. Must not block.
  virtual void ring() noexcept = 0;

  alignas(std::max_align_t) std::byte timer_room[base::cache_line];  // for the timer_source that it is set in

 protected:
  ~alarm() = default;
};

}  // namespace weft::inline v1::sched
