// Input as it is scanned for members: chunks that a reader task has read ahead.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>

#include <weft/channel.hpp>

#include <weftgz/buffer.hpp>
#include <weftgz/failure.hpp>
#include <weftgz/pool.hpp>

namespace weftgz {

using chunk = pool<buffer>::taken;

class cursor {
 public:
  explicit cursor(weft::reader<chunk> from) : from_(std::move(from)) {}

  // Makes sure that rest() is not empty; false at the end of the input. Throws what the reader task has met.
  bool more() {
    while (rest().empty()) {
      put_back_size_ = 0;
      std::optional<chunk> next = from_.recv();
      if (!next) return false;
      current_ = std::move(*next);  // which gives the one before back to the reader task
      left_ = current_->contents();
    }
    return true;
  }
  // Bytes that are there already; not all of the input.
  [[nodiscard]] bytes rest() const noexcept {
    return put_back_size_ > 0 ? bytes(put_back_).last(put_back_size_) : left_;
  }
  void skip(std::size_t n) noexcept {
    if (put_back_size_ > 0)
      put_back_size_ -= n;
    else
      left_ = left_.subspan(n);
  }
  // Bytes that stand before the rest once more. There may be eight of them.
  void put_back(bytes b) noexcept {
    if (b.empty()) return;
    put_back_size_ += b.size();
    std::memcpy(put_back_.data() + put_back_.size() - put_back_size_, b.data(), b.size());
  }

  [[nodiscard]] int next() {
    if (!more()) return -1;
    const int c = std::to_integer<int>(rest().front());
    skip(1);
    return c;
  }
  // Returns how much there was; less than the room only at the end of the input.
  std::size_t fill(room to) {
    std::size_t n = 0;
    while (n < to.size() && more()) {
      const std::size_t step = std::min(to.size() - n, rest().size());
      std::memcpy(to.data() + n, rest().data(), step);
      skip(step);
      n += step;
    }
    return n;
  }

 private:
  weft::reader<chunk> from_;
  chunk current_;
  bytes left_;
  std::array<std::byte, 16> put_back_ = {};
  std::size_t put_back_size_ = 0;
};

}  // namespace weftgz
