// What the monitor tells the user of, on stderr and once per runtime: that nobody gets on, why, and what to do about it. A program
// that has run out of turns for blocking calls, or of workers, hangs, and nothing in it is wrong.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "sched/elasticity.hpp"

namespace weft::inline v1::sched {

class scheduler;

// Somebody waits, and what they wait for has not moved: for how long.
class standstill {
 public:
  static constexpr base::time_ns patience = 1'000'000'000;  // what is queued for less is no complaint

  // One look. `progress` grows while things move. True, and only once: it has lasted.
  [[nodiscard]] bool has_lasted(bool somebody_waits, std::uint64_t progress, base::time_ns now) noexcept {
    if (told_) return false;
    if (!somebody_waits || progress != progress_ || since_ == 0) {
      progress_ = progress;
      since_ = now;
    }
    told_ = now - since_ >= patience;
    return told_;
  }
  // The process was stopped: who has not moved had no chance to.
  void forget() noexcept { since_ = 0; }

 private:
  std::uint64_t progress_ = 0;
  base::time_ns since_ = 0;  // 0: not looked at yet
  bool told_ = false;
};

class complaints {
 public:
  // Now and then, after a sample was taken.
  void look(scheduler& s, const pool_sample& sample, base::time_ns now) noexcept;

 private:
  standstill turns_;  // of blocking()
  standstill workers_;
  base::time_ns looked_at_ = 0;
};

}  // namespace weft::inline v1::sched
