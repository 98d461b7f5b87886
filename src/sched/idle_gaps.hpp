// How long a worker was without work the last times, and so whether it pays to look around for a while before it
// sleeps.
//
// sched.S1. Looking around pays if most of the last gaps were shorter than the time for which the worker looks around.
//     What it finds while it looks around came soon enough. If it looked around and then slept, it did so in vain. If
//     it slept without looking around, the gap counts as short if the sleep was no longer than that time plus what
//     waking a thread takes. While a task waits for an event, both times are short: the kernel ends a sleep in the
//     driver itself, and each look at the driver is a system call.
//     test sched/idle_gaps_*
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

class idle_gaps {
 public:
  // What a worker can wait for: other threads alone, or events of the driver, too.
  enum class source : std::uint8_t { threads, events };
  // At 20,000 requests a second, a server that looked around for 20 µs before it slept used 1.5 times the processor
  // time of one that slept at once. Its sleeps end some 7 µs after the event.
  [[nodiscard]] static constexpr base::time_ns look_around(source s) noexcept {
    return s == source::events ? 5'000 : 20'000;
  }
  [[nodiscard]] static constexpr base::time_ns wake_up(source s) noexcept {
    return s == source::events ? 7'000 : 25'000;
  }

  [[nodiscard]] bool are_short() const noexcept { return 2 * score_ >= most; }
  void found() noexcept { count(true); }
  void slept(base::time_ns length, source s) noexcept { count(!are_short() && length < look_around(s) + wake_up(s)); }

 private:
  void count(bool was_short) noexcept { score_ = std::clamp(score_ + (was_short ? 1 : -1), 0, most); }

  static constexpr int most = 8;
  int score_ = most;
};

}  // namespace weft::inline v1::sched
