// How many dispatches until the worker looks up: at the global queue, the inbox, the oldest, the clock.
//
// The interval follows the tasks: long ones make it short, so that a look-up comes about every millisecond, between 8 and
// 255 dispatches. The average is an EWMA over whole intervals, so one clock reading serves 8…255 tasks.
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

  // One dispatch. True: look up now.
  [[nodiscard]] bool passes() noexcept { return --left_ < 0; }

  // Start of a new interval; `now` ends the old one.
  void restart(base::time_ns now) noexcept {
    if (started_ != 0) {
      // Integers: a task may have changed rounding or unmasked floating-point traps.
      average_ns_ += ((now - started_) / std::max(planned_, 1) - average_ns_) / 10;
      const base::time_ns wanted = target / std::max<base::time_ns>(average_ns_, 1);
      interval_ = static_cast<std::int32_t>(std::clamp<base::time_ns>(wanted, shortest, longest));
    }
    started_ = now;
    planned_ = interval_;
    left_ = planned_ - 1;
  }
  // The next look after `n` dispatches at the latest.
  void look_after(std::int32_t n) noexcept {
    if (n > left_) return;
    planned_ -= left_ + 1 - n;
    left_ = n - 1;
  }
  // After a sleep the old interval says nothing about tasks.
  void forget() noexcept { started_ = 0; }

  [[nodiscard]] std::int32_t interval() const noexcept { return interval_; }
  // Of one dispatch, on average.
  [[nodiscard]] base::time_ns duration() const noexcept { return average_ns_; }

 private:
  std::int32_t left_ = shortest - 1;  // that pass before the look
  std::int32_t interval_ = 20;
  std::int32_t planned_ = shortest;  // dispatches of the current interval
  base::time_ns average_ns_ = 50'000;
  base::time_ns started_ = 0;
};

}  // namespace weft::inline v1::sched
