// Counters of one worker. Only its own thread writes them (a plain load and store). Anybody may read them.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

class counter {
 public:
  void add(std::uint64_t n = 1) noexcept { base::add_alone(value_, n); }
  // release pairs with the acquire in get(): whoever sees the count sees what was counted. Sums of these counts decide
  // when all tasks have ended (closing.hpp).
  void add_published(std::uint64_t n = 1) noexcept {
    value_.store(value_.load(base::relaxed) + n, base::order<"counter.publish">(base::release));
  }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(base::order<"counter.get">(base::acquire)); }

 private:
  base::atomic<std::uint64_t> value_{0};
};

struct worker_counters {
  counter spawned;
  counter finished;
  counter dispatched;
  counter steal_attempts;
  counter steals;
  counter stolen_tasks;
  counter overflow_batches;
  counter parks;
  counter wakes;
  counter sleeps;
};

}  // namespace weft::inline v1::sched
