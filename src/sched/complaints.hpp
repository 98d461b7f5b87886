// What the monitor reports to the user, on stderr and once per runtime: that no task gets on, why, and what to do about
// it. A program that has run out of turns for blocking calls, or out of workers, hangs although nothing in it is wrong.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "sched/elasticity.hpp"

namespace weft::inline v1::sched {

class scheduler;

// Measures for how long somebody has waited while nothing moved.
class standstill {
 public:
  static constexpr base::time_ns patience = 1'000'000'000;  // a shorter wait is no reason for a complaint

  // Takes one look. `progress` grows while things move. Returns true once: when the standstill has lasted for
  // `patience`.
  [[nodiscard]] bool has_lasted(bool somebody_waits, std::uint64_t progress, base::time_ns now) noexcept {
    if (told_) return false;
    if (!somebody_waits || progress != progress_ || since_ == 0) {
      progress_ = progress;
      since_ = now;
    }
    told_ = now - since_ >= patience;
    return told_;
  }
  // The process was stopped, so nobody had a chance to move. The measurement starts anew.
  void forget() noexcept { since_ = 0; }

 private:
  std::uint64_t progress_ = 0;
  base::time_ns since_ = 0;  // 0: not looked at yet
  bool told_ = false;
};

class complaints {
 public:
  // The monitor calls this after every sample. It looks more closely only now and then.
  void look(scheduler& s, const pool_sample& sample, base::time_ns now) noexcept;

 private:
  standstill turns_;  // turns for blocking()
  standstill workers_;
  base::time_ns looked_at_ = 0;
};

}  // namespace weft::inline v1::sched
