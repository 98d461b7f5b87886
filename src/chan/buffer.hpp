// Where a channel keeps what was sent and not yet received. It is used under the channel's lock.
#pragma once

#include <cstddef>
#include <memory>

#include <weft/detail/channel_core.hpp>

namespace weft::inline v1::chan {

class buffer {
 public:
  virtual ~buffer() = default;
  // Returns false if the buffer is full. If moving the value throws, nothing has changed.
  [[nodiscard]] virtual bool push(void* sent) = 0;
  // Returns false if the buffer is empty. If moving the value throws, the value is still there.
  [[nodiscard]] virtual bool pop(void* received) = 0;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;
};

// A ring of `capacity` elements, a list of chunks, or the newest element only. Throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<buffer> make_bounded_buffer(const element& e, std::size_t capacity);
[[nodiscard]] std::unique_ptr<buffer> make_unlimited_buffer(const element& e);
[[nodiscard]] std::unique_ptr<buffer> make_conflated_buffer(const element& e);

}  // namespace weft::inline v1::chan
