// When the pool grows: a decision from one sample of it, explained by counters (LS-E1). No threads here; monitor.cpp samples and
// carries out.
//
// E1. It grows only while work waits, nobody is idle, and somebody does not get on: stuck in a task, or blocked.
// E2. Workers that use a processor: by half of them, to twice the pool's size at most. One that is blocked (its thread sleeps in the
//     kernel, or its task said so) does not count as using one and is replaced, up to the hard limit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sched/statistics.hpp"

namespace weft::inline v1::sched {

struct pool_sample {
  std::size_t workers = 0;  // alive
  std::size_t idle = 0;  // asleep or searching
  std::size_t stuck = 0;  // no heartbeat for the threshold, on a processor
  std::size_t blocked = 0;  // in the kernel, or by their task's word
  bool work_waits = false;
  std::int64_t pressure = 0;  // queued tasks; read while they move, so it may be below zero for a moment
};

struct elasticity_counters {
  counter samples;
  counter positive, negative;  // pressure
  counter longest_negative_streak;
  counter no_work, nonpositive, idle_capacity, not_stuck, at_limit;  // why it did not grow
  counter passes;  // of the gate: it should grow
  counter grown;  // workers
  counter failed;  // threads that could not be started
  counter retired;
};

class elasticity {
 public:
  elasticity(std::size_t base, std::size_t limit) noexcept : base_(base), limit_(limit) {}

  // How many workers to add.
  [[nodiscard]] std::size_t decide(const pool_sample& s) noexcept;
  // Whether one that sleeps may leave.
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
