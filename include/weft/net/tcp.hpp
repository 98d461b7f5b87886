// TCP: streams and listeners. A task for each connection that reads and writes in blocking style is the natural server,
// and the fastest one.
//
//   weft::net::tcp_listener listener(weft::net::endpoint::loopback(7000));
//   for (;;)
//     weft::spawn([s = listener.accept()] {
//       char room[4096];
//       while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
//     }).detach();
//
//   auto s = weft::net::tcp_stream::connect("example.com", 443, {.timeout = 5s});
#pragma once

#include <chrono>
#include <source_location>
#include <string_view>
#include <system_error>

#include <weft/net/connect_options.hpp>
#include <weft/net/resolve.hpp>
#include <weft/net/socket_listener.hpp>
#include <weft/net/socket_stream.hpp>

namespace weft::inline v1::net {

class WEFT_API tcp_stream final : public socket_stream {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using source = std::source_location;

  tcp_stream() noexcept = default;  // no stream: whatever is called on it throws usage_error

  // --- to a host, by its name ---------------------------------------------------------------------------------------
  // Looks the host up, which may also be a numeric address, and tries its addresses: IPv4 and IPv6 in turn, the next one
  // beside the last after options.attempt_delay, or at once when one fails (RFC 8305). The first that is connected is
  // the stream, and the others are given up. The port is a number, or a name of /etc/services.
  //
  // The error is the look-up's (resolve_category(); resolve.hpp), errc::timed_out or, if every address has failed, that
  // of the first address; the message of the exception lists all. An empty host is errc::invalid_argument. Always
  // cancellation points.
  [[nodiscard]] static tcp_stream connect(std::string_view host, const service& port,
                                          const connect_options& options = {}, source where = source::current()) {
    return to_host(host, port, options, {.where = where}, nullptr);
  }
  [[nodiscard]] static tcp_stream connect(std::string_view host, const service& port, const connect_options& options,
                                          std::error_code& why, source where = source::current()) {
    return to_host(host, port, options, {.where = where}, &why);
  }
  [[nodiscard]] static tcp_stream connect(std::string_view host, const service& port, std::error_code& why,
                                          source where = source::current()) {
    return to_host(host, port, {}, {.where = where}, &why);
  }
  [[nodiscard]] static tcp_stream connect_until(time_point when, std::string_view host, const service& port,
                                                const connect_options& options = {}, source where = source::current()) {
    return to_host(host, port, options, {when, where}, nullptr);
  }
  [[nodiscard]] static tcp_stream connect_until(time_point when, std::string_view host, const service& port,
                                                const connect_options& options, std::error_code& why,
                                                source where = source::current()) {
    return to_host(host, port, options, {when, where}, &why);
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect_for(std::chrono::duration<Rep, Period> time, std::string_view host,
                                              const service& port, const connect_options& options = {},
                                              source where = source::current()) {
    return to_host(host, port, options, {weft::detail::time_after(time), where}, nullptr);
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect_for(std::chrono::duration<Rep, Period> time, std::string_view host,
                                              const service& port, const connect_options& options, std::error_code& why,
                                              source where = source::current()) {
    return to_host(host, port, options, {weft::detail::time_after(time), where}, &why);
  }

  // --- to an address ------------------------------------------------------------------------------------------------
  // Small messages are sent at once (TCP_NODELAY). Always cancellation points.
  [[nodiscard]] static tcp_stream connect(const endpoint& to, source where = source::current());
  [[nodiscard]] static tcp_stream connect(const endpoint& to, std::error_code& why, source where = source::current());
  [[nodiscard]] static tcp_stream connect_until(time_point when, const endpoint& to, source where = source::current());
  [[nodiscard]] static tcp_stream connect_until(time_point when, const endpoint& to, std::error_code& why,
                                                source where = source::current());
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect_for(std::chrono::duration<Rep, Period> time, const endpoint& to,
                                              source where = source::current()) {
    return connect_until(weft::detail::time_after(time), to, where);
  }
  template <class Rep, class Period>
  [[nodiscard]] static tcp_stream connect_for(std::chrono::duration<Rep, Period> time, const endpoint& to,
                                              std::error_code& why, source where = source::current()) {
    return connect_until(weft::detail::time_after(time), to, why, where);
  }
  // Takes over a connected socket, and makes it non-blocking.
  [[nodiscard]] static tcp_stream adopt(int fd);

 private:
  friend class detail::stream_listener<tcp_stream>;
  using socket_stream::socket_stream;

  static tcp_stream to_host(std::string_view host, const service& port, const connect_options& options,
                            const io::limit& l, std::error_code* why);
  static io::fd_handle open_socket(const endpoint& at, const char* who, std::error_code& why);
  static tcp_stream accepted(io::fd_handle h) noexcept;
};

class tcp_listener final : public detail::stream_listener<tcp_stream> {
 public:
  using stream_listener::stream_listener;
};

}  // namespace weft::inline v1::net
