// How many dispatches a worker makes until it looks up: at the global queue, the inbox, the oldest task and the clock.
//
// The interval follows the tasks. Long ones make it short, so that a worker looks up about every millisecond, after
// between 8 and 255 dispatches. The average is an EWMA over whole intervals, so one reading of the clock serves 8 to
// 255 tasks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

class tick {
 public:
  static constexpr std::int32_t shortest = 8;
  static constexpr std::int32_t longest = 255;
  static constexpr base::time_ns target = 1'000'000;

  // Counts one dispatch. Returns true if the worker is to look up now.
  [[nodiscard]] bool passes() noexcept { return --left_ < 0; }

  // Starts a new interval. `now` ends the old one.
  void restart(base::time_ns now) noexcept {
    if (started_ != 0) {
      // Integers, because a task may have changed the rounding or unmasked floating-point traps.
      average_ns_ += ((now - started_) / std::max(planned_, 1) - average_ns_) / 10;
      const base::time_ns wanted = target / std::max<base::time_ns>(average_ns_, 1);
      interval_ = static_cast<std::int32_t>(std::clamp<base::time_ns>(wanted, shortest, longest));
    }
    started_ = now;
    planned_ = interval_;
    left_ = planned_ - 1;
  }
  // The next look comes after `n` dispatches at the latest.
  void look_after(std::int32_t n) noexcept {
    if (n > left_) return;
    planned_ -= left_ + 1 - n;
    left_ = n - 1;
  }
  // Called after a sleep: the old interval says nothing about tasks then.
  void forget() noexcept { started_ = 0; }

  [[nodiscard]] std::int32_t interval() const noexcept { return interval_; }
  // How long one dispatch takes on average.
  [[nodiscard]] base::time_ns duration() const noexcept { return average_ns_; }

 private:
  std::int32_t left_ = shortest - 1;  // dispatches before the look
  std::int32_t interval_ = 20;
  std::int32_t planned_ = shortest;  // dispatches of the current interval
  base::time_ns average_ns_ = 50'000;
  base::time_ns started_ = 0;
};

}  // namespace weft::inline v1::sched
