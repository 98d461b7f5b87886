// Collecting small pieces into few writes (text.hpp).
//
// Nothing but flush() makes sure that the bytes are on their way. The destructor drops what was not flushed: it could
// neither wait, nor be cancelled, nor tell an error.
//
// An operation that fails, times out or is cancelled can be repeated: flush() goes on with the first byte that the stream
// has not taken, and write() has taken over either its whole piece or nothing, if the piece is not larger than the
// buffer. Of a larger piece the form with an error code returns how much was taken over.
//
// expires_after() of the stream limits each wait for room.
#pragma once

#include <concepts>
#include <cstddef>
#include <source_location>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weft/text/buffered_reader.hpp>

namespace weft::inline v1 {

// What a writer writes to: write_some() returns a count, which is 0 only if it sets the error_code.
template <class S>
concept writable_stream = requires(std::remove_reference_t<S>& s, const_buffer from, std::error_code& why) {
  { s.write_some(from, why, std::source_location()) } -> std::convertible_to<std::size_t>;
};

struct writing_options {
  std::size_t buffer = std::size_t{16} << 10;  // a larger piece is written without a copy
};

// Stream is the type of a stream that is owned, or a reference to one that is borrowed.
template <writable_stream Stream>
class buffered_writer {
 public:
  using place = std::source_location;

  explicit buffered_writer(Stream&& s, const writing_options& o = {}) noexcept(
      std::is_nothrow_constructible_v<detail::held_stream<Stream>, Stream>)
      : stream_(std::forward<Stream>(s)),
        buffer_(o.buffer) {}

  void write(const_buffer from, place where = place::current()) {
    std::error_code why;
    (void)buffer_.write(from, sink(), where, why);
    check(why);
  }
  std::size_t write(const_buffer from, std::error_code& why, place where = place::current()) {
    return buffer_.write(from, sink(), where, why);
  }
  void flush(place where = place::current()) {
    std::error_code why;
    buffer_.flush(sink(), where, why);
    check(why);
  }
  void flush(std::error_code& why, place where = place::current()) { buffer_.flush(sink(), where, why); }

  // What has not reached the stream. Never cancellation points.
  [[nodiscard]] std::string_view buffered() const noexcept { return buffer_.held(); }
  void discard_buffered() noexcept { buffer_.discard(); }
  // What is written to the stream itself overtakes what is buffered.
  [[nodiscard]] std::remove_reference_t<Stream>& stream() noexcept { return stream_; }

 private:
  using target = std::remove_reference_t<Stream>;

  [[nodiscard]] io::byte_sink sink() noexcept { return {std::addressof(stream()), &write_to}; }
  static std::size_t write_to(const void* s, const_buffer from, std::source_location where, std::error_code& why) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): sink() has taken the address of a target
    return static_cast<target*>(const_cast<void*>(s))->write_some(from, why, where);
  }
  void check(const std::error_code& why) {
    if (why) [[unlikely]]
      io::throw_writing_error(why, io::name_of(stream()));
  }

  detail::held_stream<Stream> stream_;
  io::write_buffer buffer_;
};

template <class S>
buffered_writer(S&&) -> buffered_writer<S>;
template <class S>
buffered_writer(S&&, writing_options) -> buffered_writer<S>;

}  // namespace weft::inline v1
