// The pool of descriptor records. Records are allocated in blocks and found by their numbers, which travel with the
// kernel's events. Blocks are never given back, so a number that was valid once stays valid.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"

namespace weft::inline v1::io {

class fd_record;

class fd_pool {
 public:
  // Returns nullptr if there is no memory, or if there are too many records (2^20, the kernel's own limit).
  [[nodiscard]] fd_record* acquire() noexcept;
  void release(fd_record& r) noexcept;
  [[nodiscard]] fd_record& at(std::uint32_t index) const noexcept;

 private:
  static constexpr std::size_t block_size = 256;
  static constexpr std::size_t most_blocks = 4096;
  [[nodiscard]] bool grow() noexcept;

  base::lock lock_;
  fd_record* free_ = nullptr;  // under lock_
  std::size_t blocks_made_ = 0;  // under lock_
  base::atomic<fd_record*> blocks_[most_blocks] = {};
};

// The one pool of the process: a descriptor may outlive the runtime in which it was opened.
[[nodiscard]] fd_pool& all_fds() noexcept;

}  // namespace weft::inline v1::io
