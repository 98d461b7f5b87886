// A handle of an open descriptor, as streams, their halves and listeners have it, and the operations on it.
#pragma once

#include <chrono>
#include <cstddef>
#include <source_location>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include <weft/buffer.hpp>
#include <weft/detail/io_core.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1::io {

struct kernel_calls;

class WEFT_API fd_handle {
 public:
  fd_handle() noexcept = default;
  explicit fd_handle(fd_record& owned) noexcept : record_(&owned) {}  // takes over one ownership
  fd_handle(fd_handle&& other) noexcept : record_(std::exchange(other.record_, nullptr)) {}
  fd_handle& operator=(fd_handle&& other) noexcept {
    fd_handle(std::move(other)).swap(*this);
    return *this;
  }
  ~fd_handle() {
    if (record_ != nullptr) drop();
  }
  void swap(fd_handle& other) noexcept { std::swap(record_, other.record_); }

  [[nodiscard]] fd_handle share() const;  // one more owner of the same descriptor
  // Throws usage_error if the handle is empty: default-constructed, or moved from.
  [[nodiscard]] fd_record& record() const {
    if (record_ == nullptr) throw_empty();
    return *record_;
  }
  [[nodiscard]] bool is_open() const noexcept;
  void close() noexcept;
  [[nodiscard]] int number() const;  // -1 if it is closed
  [[nodiscard]] int release();

 private:
  void drop() noexcept;
  [[noreturn]] static void throw_empty();
  fd_record* record_ = nullptr;
};

// Keeps the number of a descriptor valid while it lives, for calls that do not wait.
class WEFT_API held_number {
 public:
  explicit held_number(fd_record& r) noexcept;
  ~held_number();
  held_number(const held_number&) = delete;
  held_number& operator=(const held_number&) = delete;
  [[nodiscard]] int get() const noexcept;  // -1 if the descriptor is closed
  [[nodiscard]] const kernel_calls& kernel() const noexcept;

 private:
  fd_record& record_;
  const bool is_held_;
};

// How long an operation may wait, and where it was called.
struct limit {
  detail::clock::time_point until = detail::clock::time_point::max();
  std::source_location where = std::source_location::current();
};

// All of these are cancellation points, and return 0 if they set `why`. read_some() also returns 0 at the end of the
// stream. The counts of the others say how much was done before the error.
WEFT_API std::size_t read_some(fd_record& r, mutable_buffer to, const limit& l, std::error_code& why);
WEFT_API std::size_t write_some(fd_record& r, const_buffer from, const limit& l, std::error_code& why);
WEFT_API std::size_t read_some(fd_record& r, std::span<const mutable_buffer> to, const limit& l, std::error_code& why);
WEFT_API std::size_t write_some(fd_record& r, std::span<const const_buffer> from, const limit& l, std::error_code& why);
// Never wait, and are no cancellation points: errc::operation_would_block instead.
WEFT_API std::size_t try_read_some(fd_record& r, mutable_buffer to, std::error_code& why);
WEFT_API std::size_t try_write_some(fd_record& r, const_buffer from, std::error_code& why);
// Go on until everything is transferred. read_exactly() sets io_errc::stream_ended if the stream ends before.
WEFT_API std::size_t read_exactly(fd_record& r, mutable_buffer to, const limit& l, std::error_code& why);
WEFT_API std::size_t write_all(fd_record& r, const_buffer from, const limit& l, std::error_code& why);
WEFT_API std::size_t write_all(fd_record& r, std::span<const const_buffer> from, const limit& l, std::error_code& why);

// The other side's address, for messages.
[[nodiscard]] WEFT_API std::string text_of_remote(fd_record& r);
// Throws std::system_error with the operation, the other side's address and the reason, if there is one.
WEFT_API void throw_if(const std::error_code& why, const char* operation, fd_record& r);

}  // namespace weft::inline v1::io
