// Reading lines, records and exact counts of bytes from a stream (text.hpp).
//
// Views of what was read point into the buffer of the reader: they are valid until the next call on the reader that is
// not const, and until the reader is moved or destroyed.
//
// Nothing that was read is ever lost. An operation that fails, times out or is cancelled leaves the bytes in the buffer,
// where buffered() shows them, and the next operation begins with them. What came complete before an error is given out
// before the error is told, because the stream is only asked when the buffer does not hold the answer.
//
// Time limits: expires_after() of the stream limits each wait for more bytes. The forms with _for and _until limit the
// whole operation, which is what keeps a peer from sending one byte a minute.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weft/detail/text_core.hpp>

namespace weft::inline v1 {

// What a reader reads from: read_some() returns a count, which is 0 at the end and if it sets the error_code.
template <class S>
concept readable_stream = requires(std::remove_reference_t<S>& s, mutable_buffer to, std::error_code& why) {
  { s.read_some(to, why, std::source_location()) } -> std::convertible_to<std::size_t>;
};
template <class S>
concept timed_readable_stream =
    readable_stream<S> && requires(std::remove_reference_t<S>& s, mutable_buffer to, std::error_code& why) {
      {
        s.read_some_until(detail::clock::time_point(), to, why, std::source_location())
      } -> std::convertible_to<std::size_t>;
    };

struct reading_options {
  // How long a line or a record may be, without its end. A longer one is errc::message_size, and stays in the buffer. So
  // this also limits the memory.
  std::size_t longest = std::size_t{64} << 10;
  std::size_t buffer = std::size_t{16} << 10;  // how much is read at once
};

namespace detail {

template <class Stream>
using held_stream =
    std::conditional_t<std::is_reference_v<Stream>, std::reference_wrapper<std::remove_reference_t<Stream>>, Stream>;

}  // namespace detail

// Stream is the type of a stream that is owned, or a reference to one that is borrowed.
template <readable_stream Stream>
class buffered_reader {
 public:
  using place = std::source_location;
  using time_point = detail::clock::time_point;
  using found = std::optional<std::string_view>;

  explicit buffered_reader(Stream&& s, const reading_options& o = {}) noexcept(
      std::is_nothrow_constructible_v<detail::held_stream<Stream>, Stream>)
      : stream_(std::forward<Stream>(s)),
        buffer_(o.buffer, o.longest) {}

  // --- lines --------------------------------------------------------------------------------------------------------
  // The next line without its end, which is "\n" or "\r\n". Nothing at the end of the stream; with an error code also
  // after an error. The last line need not have an end.
  [[nodiscard]] found read_line(place where = place::current()) { return checked_line({where}); }
  [[nodiscard]] found read_line(std::error_code& why, place where = place::current()) {
    return buffer_.read_line(source(), {where}, why);
  }
  template <class Rep, class Period>
  [[nodiscard]] found read_line_for(std::chrono::duration<Rep, Period> time, place where = place::current())
    requires timed_readable_stream<Stream>
  {
    return checked_line({where, detail::time_after(time)});
  }
  template <class Rep, class Period>
  [[nodiscard]] found read_line_for(std::chrono::duration<Rep, Period> time, std::error_code& why,
                                    place where = place::current())
    requires timed_readable_stream<Stream>
  {
    return buffer_.read_line(source(), {where, detail::time_after(time)}, why);
  }
  [[nodiscard]] found read_line_until(time_point when, place where = place::current())
    requires timed_readable_stream<Stream>
  {
    return checked_line({where, when});
  }
  [[nodiscard]] found read_line_until(time_point when, std::error_code& why, place where = place::current())
    requires timed_readable_stream<Stream>
  {
    return buffer_.read_line(source(), {where, when}, why);
  }

  // --- records ------------------------------------------------------------------------------------------------------
  // What comes before the delimiter, which is read too. Nothing at the end of the stream. If the stream ends within a
  // record, that is io_errc::stream_ended.
  [[nodiscard]] found read_until(std::string_view delimiter, place where = place::current()) {
    return checked_record(delimiter, {where});
  }
  [[nodiscard]] found read_until(std::string_view delimiter, std::error_code& why, place where = place::current()) {
    return buffer_.read_until(delimiter, source(), {where}, why);
  }
  template <class Rep, class Period>
  [[nodiscard]] found read_until_for(std::chrono::duration<Rep, Period> time, std::string_view delimiter,
                                     place where = place::current())
    requires timed_readable_stream<Stream>
  {
    return checked_record(delimiter, {where, detail::time_after(time)});
  }
  template <class Rep, class Period>
  [[nodiscard]] found read_until_for(std::chrono::duration<Rep, Period> time, std::string_view delimiter,
                                     std::error_code& why, place where = place::current())
    requires timed_readable_stream<Stream>
  {
    return buffer_.read_until(delimiter, source(), {where, detail::time_after(time)}, why);
  }

  // --- bytes --------------------------------------------------------------------------------------------------------
  // n bytes, up to reading_options::longest. If the stream ends before, that is io_errc::stream_ended.
  [[nodiscard]] std::string_view read_exactly(std::size_t n, place where = place::current()) {
    return checked("read bytes", [&](std::error_code& why) { return buffer_.read_exactly(n, source(), {where}, why); });
  }
  [[nodiscard]] std::string_view read_exactly(std::size_t n, std::error_code& why, place where = place::current()) {
    return buffer_.read_exactly(n, source(), {where}, why);
  }
  template <class Rep, class Period>
  [[nodiscard]] std::string_view read_exactly_for(std::chrono::duration<Rep, Period> time, std::size_t n,
                                                  std::error_code& why, place where = place::current())
    requires timed_readable_stream<Stream>
  {
    return buffer_.read_exactly(n, source(), {where, detail::time_after(time)}, why);
  }
  // Fills memory of yours, of any size. After a cancellation nobody knows how far it came. The form with an error code
  // returns how much was read.
  void read_exactly(mutable_buffer to, place where = place::current()) {
    checked("read bytes", [&](std::error_code& why) { return buffer_.read_exactly(to, source(), {where}, why); });
  }
  std::size_t read_exactly(mutable_buffer to, std::error_code& why, place where = place::current()) {
    return buffer_.read_exactly(to, source(), {where}, why);
  }
  // What there is, at least one byte; 0 at the end. So a reader can take the place of a stream.
  std::size_t read_some(mutable_buffer to, place where = place::current()) {
    return checked("read", [&](std::error_code& why) { return buffer_.read_some(to, source(), {where}, why); });
  }
  std::size_t read_some(mutable_buffer to, std::error_code& why, place where = place::current()) {
    return buffer_.read_some(to, source(), {where}, why);
  }

  // --- the buffer ---------------------------------------------------------------------------------------------------
  // Waits until n bytes are buffered and shows them. They are fewer only if the stream ends before.
  [[nodiscard]] std::string_view peek(std::size_t n, place where = place::current()) {
    return checked("read ahead", [&](std::error_code& why) { return buffer_.peek(n, source(), {where}, why); });
  }
  [[nodiscard]] std::string_view peek(std::size_t n, std::error_code& why, place where = place::current()) {
    return buffer_.peek(n, source(), {where}, why);
  }
  // What was read from the stream and not yet given out. Never cancellation points.
  [[nodiscard]] std::string_view buffered() const noexcept { return buffer_.held(); }
  [[nodiscard]] std::string take_buffered() { return buffer_.take(); }
  void consume(std::size_t n) { buffer_.consume(n); }  // a usage_error if less is buffered
  // What is read from the stream itself comes after what is buffered.
  [[nodiscard]] std::remove_reference_t<Stream>& stream() noexcept { return stream_; }

 private:
  using target = std::remove_reference_t<Stream>;

  [[nodiscard]] io::byte_source source() noexcept { return {std::addressof(stream()), &read_from}; }
  static std::size_t read_from(const void* s, mutable_buffer to, const io::reading_terms& t, std::error_code& why) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): source() has taken the address of a target
    target& from = *static_cast<target*>(const_cast<void*>(s));
    if constexpr (timed_readable_stream<Stream>) {
      if (t.until) return from.read_some_until(*t.until, to, why, t.where);
    }
    return from.read_some(to, why, t.where);
  }
  template <class F>
  auto checked(const char* operation, F&& call) {
    std::error_code why;
    auto result = call(why);
    if (why) [[unlikely]]
      io::throw_reading_error(why, operation, io::name_of(stream()), buffer_.longest());
    return result;
  }
  found checked_line(const io::reading_terms& t) {
    return checked("read a line", [&](std::error_code& why) { return buffer_.read_line(source(), t, why); });
  }
  found checked_record(std::string_view delimiter, const io::reading_terms& t) {
    return checked("read a record",
                   [&](std::error_code& why) { return buffer_.read_until(delimiter, source(), t, why); });
  }

  detail::held_stream<Stream> stream_;
  io::read_buffer buffer_;
};

template <class S>
buffered_reader(S&&) -> buffered_reader<S>;
template <class S>
buffered_reader(S&&, reading_options) -> buffered_reader<S>;

}  // namespace weft::inline v1
