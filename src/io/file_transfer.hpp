// A read or write of several buffers that takes several kernel calls: what is done, and what comes next.
//
// io.FT1. Whatever counts the kernel returns, each byte is transferred once, to or from its own place.
//     test io/every_short_count_*
// io.FT2. A call begins with a buffer that is not empty, so a count of 0 means the end of the file.
//     test io/empty_buffers_*
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "io/file_error.hpp"
#include "io/kernel.hpp"
#include <weft/buffer.hpp>

namespace weft::inline v1::io {

enum class amount : bool { some, all };  // one call that transfers something, or everything

inline constexpr off_t current_position = -1;  // an offset for preadv2 and pwritev2

template <class Buffer>
class file_transfer {
 public:
  file_transfer(std::span<const Buffer> buffers, off_t offset) noexcept : left_(buffers), offset_(offset) {
    drop_empty();
  }

  [[nodiscard]] bool is_complete() const noexcept { return left_.empty(); }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] off_t offset() const noexcept { return offset_; }

  // The kernel takes IOV_MAX, 1,024, in one call. So many would need 16 KiB of the task's stack.
  static constexpr std::size_t most_vectors = 128;
  using vectors = std::array<iovec, most_vectors>;
  // Writes what comes next into the vectors, and returns how many of them it needs.
  [[nodiscard]] int next(vectors& v) const noexcept {
    std::size_t n = 0;
    std::size_t skip = skip_;
    for (const Buffer& b : left_.first(left_.size() < most_vectors ? left_.size() : most_vectors)) {
      // The kernel only reads what it is to write, although iovec does not say so.
      v[n++] = {const_cast<std::byte*>(b.data()) + skip, b.size() - skip};
      skip = 0;
    }
    return static_cast<int>(n);
  }
  void advance(std::size_t n) noexcept {
    count_ += n;
    if (offset_ != current_position) offset_ += static_cast<off_t>(n);
    for (skip_ += n; !left_.empty() && skip_ >= left_.front().size(); left_ = left_.subspan(1))
      skip_ -= left_.front().size();
  }

 private:
  void drop_empty() noexcept { advance(0); }

  std::span<const Buffer> left_;
  std::size_t skip_ = 0;  // bytes of the first one that are done
  std::size_t count_ = 0;
  off_t offset_;
};

using file_read = file_transfer<mutable_buffer>;
using file_write = file_transfer<const_buffer>;

// Go on with a transfer until it has what was asked for, a read until the file ends. `flags` are those of preadv2.
[[nodiscard]] std::error_code go_on(file_read& t, amount much, const kernel_calls& calls, int fd, int flags) noexcept;
[[nodiscard]] std::error_code go_on(file_write& t, amount much, const kernel_calls& calls, int fd) noexcept;

}  // namespace weft::inline v1::io
