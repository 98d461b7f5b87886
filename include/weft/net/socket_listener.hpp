// What all listeners have: TCP and Unix.
#pragma once

#include <chrono>
#include <concepts>
#include <optional>
#include <source_location>
#include <system_error>
#include <utility>

#include <weft/detail/fd_handle.hpp>
#include <weft/net/endpoint.hpp>
#include <weft/net/ready_arm.hpp>

namespace weft::inline v1::net {

struct listen_options {
  int backlog = 1024;
  bool reuse_port = false;  // several listeners on one address share the connections (TCP)
};

namespace detail {

// The part that does not depend on the kind of stream.
class WEFT_API socket_listener {
 public:
  // An arm of a select that wins when there is a connection to accept. Another task may be quicker; then accept() waits.
  [[nodiscard]] ready_arm acceptable() const { return {handle_.record(), io::side::read}; }
  template <std::invocable F>
  [[nodiscard]] auto on_acceptable(F f) const {
    return weft::detail::handled_arm(acceptable(), std::move(f));
  }
  [[nodiscard]] endpoint local_endpoint() const;
  [[nodiscard]] bool is_open() const noexcept { return handle_.is_open(); }
  // Whoever waits in accept() gets errc::operation_canceled.
  void close() noexcept { handle_.close(); }
  [[nodiscard]] int native_handle() const { return handle_.number(); }

 protected:
  socket_listener() noexcept = default;
  // Makes an open socket listen. Keeps it, unless it sets `why`.
  void listen_with(io::fd_handle socket, const endpoint& at, const listen_options& o, std::error_code& why);
  [[nodiscard]] io::fd_handle accept_one(const io::limit& l, std::error_code& why) const;
  // Never waits: errc::operation_would_block if there is no connection.
  [[nodiscard]] io::fd_handle try_accept_one(std::error_code& why) const;
  static void throw_if_not_listening(const std::error_code& why, const endpoint& at);
  void throw_if_not_accepted(const std::error_code& why) const;

 private:
  io::fd_handle handle_;
};

// A listener whose connections become streams of this kind. The stream has two functions for it: open_socket() makes a
// socket of the family of an address, and accepted() makes a stream of a new connection.
template <class Stream>
class stream_listener : public socket_listener {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  using source = std::source_location;

  stream_listener() noexcept = default;
  // Listens at that address; port 0 stands for a free one. An address that was used a moment ago can be used again.
  explicit stream_listener(const endpoint& at, const listen_options& o = {}) {
    std::error_code why;
    *this = stream_listener(at, o, why);
    throw_if_not_listening(why, at);
  }
  stream_listener(const endpoint& at, const listen_options& o, std::error_code& why) {
    io::fd_handle socket = Stream::open_socket(at, "a listener", why);
    if (!why) listen_with(std::move(socket), at, o, why);
  }

  // Waits for the next connection. Connections that failed before they were accepted are skipped. Always cancellation
  // points.
  [[nodiscard]] Stream accept(source where = source::current()) const { return checked_accept({.where = where}); }
  [[nodiscard]] Stream accept(std::error_code& why, source where = source::current()) const {
    return accept_within({.where = where}, why);
  }
  [[nodiscard]] Stream accept_until(time_point when, source where = source::current()) const {
    return checked_accept({when, where});
  }
  [[nodiscard]] Stream accept_until(time_point when, std::error_code& why, source where = source::current()) const {
    return accept_within({when, where}, why);
  }
  template <class Rep, class Period>
  [[nodiscard]] Stream accept_for(std::chrono::duration<Rep, Period> time, source where = source::current()) const {
    return accept_until(weft::detail::time_after(time), where);
  }
  template <class Rep, class Period>
  [[nodiscard]] Stream accept_for(std::chrono::duration<Rep, Period> time, std::error_code& why,
                                  source where = source::current()) const {
    return accept_until(weft::detail::time_after(time), why, where);
  }
  // Never waits: nothing, or errc::operation_would_block, if there is no connection. Never cancellation points.
  [[nodiscard]] std::optional<Stream> try_accept() const {
    std::error_code why;
    Stream s = try_accept(why);
    if (why == std::errc::operation_would_block) return std::nullopt;
    throw_if_not_accepted(why);
    return s;
  }
  [[nodiscard]] Stream try_accept(std::error_code& why) const {
    io::fd_handle h = try_accept_one(why);
    return why ? Stream() : Stream::accepted(std::move(h));
  }

 private:
  [[nodiscard]] Stream accept_within(const io::limit& l, std::error_code& why) const {
    io::fd_handle h = accept_one(l, why);
    return why ? Stream() : Stream::accepted(std::move(h));
  }
  [[nodiscard]] Stream checked_accept(const io::limit& l) const {
    std::error_code why;
    Stream s = accept_within(l, why);
    throw_if_not_accepted(why);
    return s;
  }
};

}  // namespace detail

}  // namespace weft::inline v1::net
