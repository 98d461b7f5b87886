// Memory for bytes that is neither zeroed nor copied when it grows: whoever asks for room overwrites it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace weftgz {

using bytes = std::span<const std::byte>;
using room = std::span<std::byte>;

class buffer {
 public:
  // At least `size` bytes. What was in the buffer is lost if it has to grow.
  [[nodiscard]] room room_for(std::size_t size) {
    if (size > capacity_) {
      data_.reset();  // first, so that the peak is the new size and not the sum
      capacity_ = 0;
      data_ = std::make_unique_for_overwrite<std::byte[]>(size);
      capacity_ = size;
    }
    size_ = 0;
    return {data_.get(), capacity_};
  }
  void resize(std::size_t size) noexcept { size_ = size; }  // within the room

  [[nodiscard]] bytes contents() const noexcept { return {data_.get(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t capacity_ = 0, size_ = 0;
};

}  // namespace weftgz
