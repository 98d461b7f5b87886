// The numbers of tasks. They are unique in their runtime and rise on each worker.
//
// A worker takes a block at a time, so that workers do not meet on the counter at every spawn.
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

// The runtime's counter.
class task_ids {
 public:
  // Returns the first of `count` numbers that nobody else gets. relaxed: the numbers only have to differ.
  [[nodiscard]] std::uint64_t take(std::uint64_t count = 1) noexcept { return next_.fetch_add(count, base::relaxed); }

 private:
  base::atomic<std::uint64_t> next_{1};
};

// One worker's share of the numbers.
class task_id_block {
 public:
  [[nodiscard]] std::uint64_t take(task_ids& from) noexcept {
    if (next_ == end_) [[unlikely]] {
      constexpr std::uint64_t block = 256;
      next_ = from.take(block);
      end_ = next_ + block;
    }
    return next_++;
  }

 private:
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace weft::inline v1::sched
