// The buffers behind buffered_reader and buffered_writer. They are no templates: they know a stream by one call of it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>

#include <weft/buffer.hpp>
#include <weft/detail/fd_handle.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1::io {

// How long an operation of a reader may wait, and where it was called. Without a time the stream's own limit holds.
struct reading_terms {
  std::source_location where;
  std::optional<detail::clock::time_point> until = {};
};

// read_some() of a stream, or its form with a time.
struct byte_source {
  const void* stream;
  std::size_t (*read_some)(const void* stream, mutable_buffer to, const reading_terms& t, std::error_code& why);
};

// write_some() of a stream.
struct byte_sink {
  const void* stream;
  std::size_t (*write_some)(const void* stream, const_buffer from, std::source_location where, std::error_code& why);
};

// What was read from a stream and not yet asked for. A call that fails, is cancelled or finds no memory leaves it as it
// was, with what was read until then. The views that it returns are valid until the next call that is not const.
class WEFT_API read_buffer {
 public:
  using found = std::optional<std::string_view>;

  // The memory, `room` bytes at first, is made when it is needed. `longest` is how much one call may return.
  read_buffer(std::size_t room, std::size_t longest) noexcept;
  read_buffer(read_buffer&& other) noexcept;
  read_buffer& operator=(read_buffer&& other) noexcept;

  [[nodiscard]] std::string_view held() const noexcept { return {room_.get() + begin_, end_ - begin_}; }
  [[nodiscard]] std::size_t longest() const noexcept { return longest_; }
  void consume(std::size_t n);  // throws usage_error if there is less
  [[nodiscard]] std::string take();

  // All of these are cancellation points.
  [[nodiscard]] found read_line(const byte_source& from, const reading_terms& t, std::error_code& why);
  [[nodiscard]] found read_until(std::string_view delimiter, const byte_source& from, const reading_terms& t,
                                 std::error_code& why);
  [[nodiscard]] std::string_view read_exactly(std::size_t n, const byte_source& from, const reading_terms& t,
                                              std::error_code& why);
  [[nodiscard]] std::string_view peek(std::size_t n, const byte_source& from, const reading_terms& t,
                                      std::error_code& why);
  std::size_t read_some(mutable_buffer to, const byte_source& from, const reading_terms& t, std::error_code& why);
  std::size_t read_exactly(mutable_buffer to, const byte_source& from, const reading_terms& t, std::error_code& why);

 private:
  [[nodiscard]] std::optional<std::size_t> reach(std::string_view delimiter, std::size_t most, const byte_source& from,
                                                 const reading_terms& t, std::error_code& why);
  bool collect(std::size_t n, const byte_source& from, const reading_terms& t, std::error_code& why);
  bool fill(std::size_t most, const byte_source& from, const reading_terms& t, std::error_code& why);
  void make_room(std::size_t most);
  std::string_view taken(std::size_t n, std::size_t behind) noexcept;

  std::unique_ptr<char[]> room_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t first_capacity_;
  std::size_t longest_;
};

// What was written and has not reached the stream.
class WEFT_API write_buffer {
 public:
  explicit write_buffer(std::size_t room) noexcept;
  write_buffer(write_buffer&& other) noexcept;
  write_buffer& operator=(write_buffer&& other) noexcept;

  [[nodiscard]] std::string_view held() const noexcept { return {room_.get() + begin_, end_ - begin_}; }
  void discard() noexcept { begin_ = end_ = 0; }
  // Cancellation points. write() returns how much it has taken over, which is less than everything only with an error.
  std::size_t write(const_buffer from, const byte_sink& to, std::source_location where, std::error_code& why);
  void flush(const byte_sink& to, std::source_location where, std::error_code& why);

 private:
  bool empty_into(const byte_sink& to, std::source_location where, std::error_code& why);
  std::unique_ptr<char[]> room_;
  std::size_t capacity_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

[[noreturn]] WEFT_API void throw_reading_error(const std::error_code& why, const char* operation,
                                               const std::string& stream, std::size_t longest);
[[noreturn]] WEFT_API void throw_writing_error(const std::error_code& why, const std::string& stream);

// How messages call a stream: by its address, by its name(), or not at all.
template <class Stream>
[[nodiscard]] std::string name_of(const Stream& s) {
  if constexpr (requires { io::text_of_remote(s.record()); })
    return io::text_of_remote(s.record());
  else if constexpr (requires { std::string(s.name()); })
    return std::string(s.name());
  else
    return {};
}

}  // namespace weft::inline v1::io
