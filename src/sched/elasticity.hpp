// When the pool grows: a decision from one sample of it, explained by counters (LS-E1). There are no threads here.
// monitor.cpp takes the samples and carries the decision out.
//
// sched.E1. The pool grows only while work waits, no worker is idle, and some worker does not get on because it is
//     stuck in a task or blocked.
//     test sched/every_refusal_has_its_reason
// sched.E2. The workers that use a processor grow by half of their number, to twice the pool's size at most. A worker
//     is blocked if its thread sleeps in the kernel or its task said that it may block. A blocked worker does not count
//     as using a processor and is replaced, up to the hard limit.
//     test sched/elasticity_*
#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/statistics.hpp"

namespace weft::inline v1::sched {

struct pool_sample {
  std::size_t workers = 0;  // alive
  std::size_t idle = 0;  // asleep or searching
  std::size_t stuck = 0;  // on a processor, in the same task for longer than the threshold
  std::size_t blocked = 0;  // asleep in the kernel, or in a task that has said that it may block
  bool work_waits = false;
  // The number of queued tasks; they move while they are counted, so it may be below zero for a moment.
  std::int64_t pressure = 0;
};

struct elasticity_counters {
  counter samples;
  counter positive, negative;  // samples by the sign of the pressure
  counter longest_negative_streak;
  counter no_work, nonpositive, idle_capacity, not_stuck, at_limit;  // why the pool did not grow
  counter passes;  // decisions to grow
  counter grown;  // workers that were added
  counter failed;  // threads that could not be started
  counter retired;
};

class elasticity {
 public:
  elasticity(std::size_t base, std::size_t limit) noexcept : base_(base), limit_(limit) {}

  // Returns how many workers to add.
  [[nodiscard]] std::size_t decide(const pool_sample& s) noexcept;
  // Whether a sleeping worker may leave.
  [[nodiscard]] bool has_too_many(std::size_t workers, std::size_t blocked) const noexcept {
    return workers > base_ + blocked;
  }

  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
  [[nodiscard]] elasticity_counters& counters() noexcept { return counters_; }
  [[nodiscard]] const elasticity_counters& counters() const noexcept { return counters_; }

 private:
  const std::size_t base_;
  const std::size_t limit_;
  std::uint64_t negative_streak_ = 0;
  elasticity_counters counters_;
};

}  // namespace weft::inline v1::sched
