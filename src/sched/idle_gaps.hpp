// How long a worker was without work, the last times: whether it pays to look around for a while before it sleeps.
//
// G1. It does if most of the last gaps were shorter than the time it looks around. What it finds while it looks around came soon
//     enough. If it slept nevertheless, it looked around in vain; or it did not look around, and the gap was short if the sleep was no
//     longer than that and what waking a thread takes.                                             test sched/idle_gaps_*
#pragma once

#include <algorithm>

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

class idle_gaps {
 public:
  static constexpr base::time_ns look_around = 20'000;
  static constexpr base::time_ns wake_up = 25'000;

  [[nodiscard]] bool are_short() const noexcept { return 2 * score_ >= most; }
  void found() noexcept { count(true); }
  void slept(base::time_ns length) noexcept { count(!are_short() && length < look_around + wake_up); }

 private:
  void count(bool was_short) noexcept { score_ = std::clamp(score_ + (was_short ? 1 : -1), 0, most); }

  static constexpr int most = 8;
  int score_ = most;
};

}  // namespace weft::inline v1::sched
