// What the monitor of a runtime does just now.
#pragma once

#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

// See src/sched/test_seam.hpp.
struct test_seam {
  [[nodiscard]] static std::uint32_t monitor_state(const scheduler& of) noexcept {
    return of.monitor_->state_.load(base::relaxed);
  }
  static constexpr std::uint32_t awake = monitor::awake, dozing = monitor::dozing, resting = monitor::resting;
};

}  // namespace weft::inline v1::sched

namespace support {

// It is between two looks, without any lock. Async-signal-safe.
[[nodiscard]] inline bool monitor_sleeps(const weft::sched::scheduler& of) noexcept {
  using weft::sched::test_seam;
  return test_seam::monitor_state(of) != test_seam::awake;
}
// It is in one of its longer naps, in which nobody has been stuck lately.
[[nodiscard]] inline bool monitor_dozes(const weft::sched::scheduler& of) noexcept {
  using weft::sched::test_seam;
  return test_seam::monitor_state(of) == test_seam::dozing;
}
// It sleeps until a worker leaves the idle set or, while it is alert, for a while.
[[nodiscard]] inline bool monitor_rests(const weft::sched::scheduler& of) noexcept {
  using weft::sched::test_seam;
  return test_seam::monitor_state(of) == test_seam::resting;
}

}  // namespace support
