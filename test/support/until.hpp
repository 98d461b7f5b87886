// Waiting for a condition instead of for a time. In a task it yields to other tasks, on a thread it lets other threads run.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <source_location>

#include "base/atomic.hpp"

namespace support {

// Gives up after this long: prints where and the state of all runtimes, and aborts.
inline constexpr std::chrono::seconds patience{60};

class waiting {
 public:
  explicit waiting(std::source_location where, std::chrono::seconds limit) noexcept;
  void pause();  // lets others run: tasks of this worker, or threads
  void hold();  // lets other threads run, but keeps the worker
 private:
  void look_at_clock();
  const std::source_location where_;
  const std::chrono::steady_clock::time_point until_;
  unsigned rounds_ = 0;
};

// Waits until condition() is true. In a task, other tasks of the same worker run meanwhile.
template <std::predicate Condition>
void until(Condition condition, std::chrono::seconds limit = patience,
           std::source_location where = std::source_location::current()) {
  for (waiting w(where, limit); !condition();) w.pause();
}

// The same, but the task keeps its worker: the scheduler sees a task that computes for long.
template <std::predicate Condition>
void hold_worker_until(Condition condition, std::chrono::seconds limit = patience,
                       std::source_location where = std::source_location::current()) {
  for (waiting w(where, limit); !condition();) w.hold();
}

// Counts down to zero; any number wait for it. For tasks and threads.
class latch {
 public:
  explicit latch(std::size_t count = 1) noexcept : left_(count) {}
  void count_down(std::size_t n = 1) noexcept { left_.fetch_sub(n, weft::base::acq_rel); }
  [[nodiscard]] bool is_open() const noexcept { return left_.load(weft::base::acquire) == 0; }
  void wait(std::source_location where = std::source_location::current()) const {
    until([this] { return is_open(); }, patience, where);
  }
  // Keeps the worker meanwhile.
  void hold(std::source_location where = std::source_location::current()) const {
    hold_worker_until([this] { return is_open(); }, patience, where);
  }
  void arrive_and_wait(std::source_location where = std::source_location::current()) {
    count_down();
    wait(where);
  }
  void arrive_and_hold(std::source_location where = std::source_location::current()) {
    count_down();
    hold(where);
  }

 private:
  weft::base::atomic<std::size_t> left_;
};

}  // namespace support
