// A stream of Weft as Asio's synchronous functions know streams.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/container/static_vector.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>

#include <concepts>
#include <cstddef>
#include <source_location>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include <weft/asio/error.hpp>
#include <weft/buffer.hpp>
#include <weft/net/socket_stream.hpp>

namespace weft::inline v1 {

namespace detail {

// Every stream of Asio has an executor, but synchronous functions never run anything on it. So this one belongs to a
// context that nobody runs: Asio's system_executor would start threads. It is never destroyed, because streams may
// outlive the static objects of a program.
[[nodiscard]] inline boost::asio::io_context& idle_context() {
  static auto& context = *new boost::asio::io_context;
  return context;
}

// The stream at the bottom of some layers.
template <class Stream>
[[nodiscard]] auto& lowest_of(Stream& s) noexcept {
  if constexpr (requires { s.next_layer(); })
    return lowest_of(s.next_layer());
  else
    return s;
}

// The buffers of one call, without empty ones. What does not fit waits for the next call.
template <class Buffer>
class gathered {
 public:
  template <class Sequence>
  explicit gathered(const Sequence& from) {
    const auto end = boost::asio::buffer_sequence_end(from);
    for (auto i = boost::asio::buffer_sequence_begin(from); i != end && parts_.size() != parts_.capacity(); ++i)
      if (const theirs b(*i); b.size() != 0) parts_.emplace_back(b.data(), b.size());
  }
  [[nodiscard]] std::span<const Buffer> all() const noexcept { return parts_; }

 private:
  using theirs =
      std::conditional_t<std::same_as<Buffer, mutable_buffer>, boost::asio::mutable_buffer, boost::asio::const_buffer>;
  boost::container::static_vector<Buffer, 16> parts_;
};

}  // namespace detail

// Meets Asio's SyncReadStream and SyncWriteStream, so that asio::read and write, Beast's HTTP and WebSocket and
// asio::ssl::stream work on it, all in blocking style: only the task waits.
//
// A call that waits is a cancellation point of the task. weft::cancelled passes through Boost's functions; afterwards
// whatever stands on the stream is only good for closing, because nobody knows how far Boost's own state has come. Time
// limits are those of the stream: next_layer().expires_after(…); they are reported as asio::error::timed_out.
//
// Stream is a stream of Weft, tls_stream included, or a reference to one. One task may read while another writes; layers
// of Boost above it usually do not allow that.
template <class Stream>
class asio_stream {
 public:
  using source = std::source_location;
  using next_layer_type = std::remove_reference_t<Stream>;
  using lowest_layer_type = asio_stream;  // Asio wants an executor there; beast::get_lowest_layer() goes further down
  using executor_type = boost::asio::io_context::executor_type;

  explicit asio_stream(Stream stream) : stream_(std::forward<Stream>(stream)) {}

  template <class Buffers>
  std::size_t read_some(const Buffers& to, source where = source::current()) {
    boost::system::error_code why;
    const std::size_t n = read_some(to, why, where);
    check(why, "read from ");
    return n;
  }
  template <class Buffers>
  std::size_t read_some(const Buffers& to, boost::system::error_code& why, source where = source::current()) {
    const detail::gathered<mutable_buffer> parts(to);
    std::error_code std_why;
    const std::size_t n = stream_.read_some(parts.all(), std_why, where);
    why = n == 0 && !std_why && !parts.all().empty() ? boost::asio::error::eof : asio_error(std_why);
    return n;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& from, source where = source::current()) {
    boost::system::error_code why;
    const std::size_t n = write_some(from, why, where);
    check(why, "write to ");
    return n;
  }
  template <class Buffers>
  std::size_t write_some(const Buffers& from, boost::system::error_code& why, source where = source::current()) {
    std::error_code std_why;
    const std::size_t n = stream_.write_some(detail::gathered<const_buffer>(from).all(), std_why, where);
    why = asio_error(std_why);
    return n;
  }

  void close() { stream_.close(); }
  void close(boost::system::error_code& why) {
    why.clear();
    close();
  }
  [[nodiscard]] bool is_open() const noexcept { return stream_.is_open(); }

  [[nodiscard]] executor_type get_executor() noexcept { return detail::idle_context().get_executor(); }
  [[nodiscard]] next_layer_type& next_layer() noexcept { return stream_; }
  [[nodiscard]] const next_layer_type& next_layer() const noexcept { return stream_; }
  [[nodiscard]] lowest_layer_type& lowest_layer() noexcept { return *this; }
  [[nodiscard]] const lowest_layer_type& lowest_layer() const noexcept { return *this; }

 private:
  void check(const boost::system::error_code& why, const char* operation) {
    if (why)
      throw boost::system::system_error(why, operation + io::text_of_remote(detail::lowest_of(stream_).record()));
  }
  Stream stream_;
};

template <class Stream>
asio_stream(Stream) -> asio_stream<Stream>;

namespace detail {

inline void end_writing(const net::socket_stream& s, std::error_code& why) { s.shutdown(net::half::write, why); }
template <class Stream>
  requires requires(const Stream& s, std::error_code& why) { s.shutdown(why); }
void end_writing(const Stream& s, std::error_code& why) {
  s.shutdown(why);
}

}  // namespace detail

// How a WebSocket ends its connection (RFC 6455, 7.1.1): the server ends first, both read to the end. Beast finds this
// by the type of the stream.
template <class Stream>
void teardown(boost::beast::role_type role, asio_stream<Stream>& s, boost::system::error_code& why) {
  std::error_code std_why;
  if (role == boost::beast::role_type::server) detail::end_writing(s.next_layer(), std_why);
  char room[1024];
  while (!std_why && s.next_layer().read_some(mutable_buffer(room), std_why) != 0) {}
  if (role == boost::beast::role_type::client && !std_why) detail::end_writing(s.next_layer(), std_why);
  s.close();
  why = asio_error(std_why);
}

namespace net {

// How Beast closes the lowest layer, beast::close_socket().
inline void beast_close_socket(socket_stream& s) { s.close(); }

}  // namespace net

}  // namespace weft::inline v1
