// Datagrams: messages that arrive whole or not at all, as UDP (udp.hpp) and Unix sockets (unix_datagram.hpp) have them.
//
// Every operation waits in blocking style, and only the task waits. Every operation is a cancellation point, which is
// looked at first; a cancelled one has sent or received nothing, except that send_many() may have sent some.
//
// Each operation has two forms: one throws std::system_error, the other takes a std::error_code&. The reasons that are
// Weft's own: errc::timed_out, and errc::operation_canceled if another task has closed the socket. Cancellation is
// thrown as weft::cancelled in both forms.
//
// There is no end of datagrams: 0 bytes are an empty datagram. A connected socket may be told that nobody listens at the
// other side (errc::connection_refused). That is told once, by the next operation, and the socket stays usable.
//
// Any number of tasks may send and receive at the same time; each datagram goes to one of them.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <source_location>
#include <span>
#include <system_error>
#include <utility>

#include <weft/net/socket_stream.hpp>

namespace weft::inline v1::net {

// What was received, and from whom. A Unix socket may have no name; then `from` has none.
struct received {
  std::size_t size = 0;  // bytes in the buffer
  endpoint from = {};
  bool truncated = false;  // the datagram was longer than the buffer, and the rest of it is gone
};

// A place for one of several datagrams, and what came into it.
struct incoming {
  mutable_buffer room{nullptr, 0};
  std::size_t size = 0;
  endpoint from = {};
  bool truncated = false;
};

// One of several datagrams to be sent. Without an address it goes to the peer of a connected socket.
struct outgoing {
  const_buffer bytes{nullptr, 0};
  endpoint to = {};
};

class WEFT_API datagram_socket : public detail::socket_handle {
 public:
  using source = std::source_location;
  using time_point = std::chrono::steady_clock::time_point;

  // --- one datagram -------------------------------------------------------------------------------------------------
  // Waits for a datagram. What does not fit into the buffer is dropped; even a buffer of size 0 takes a whole datagram.
  received recv_from(mutable_buffer room, source where = source::current()) const {
    return receive_from(room, usual_limit(where), nullptr);
  }
  received recv_from(mutable_buffer room, std::error_code& why, source where = source::current()) const {
    return receive_from(room, usual_limit(where), &why);
  }
  received recv_from_until(time_point when, mutable_buffer room, source where = source::current()) const {
    return receive_from(room, {when, where}, nullptr);
  }
  received recv_from_until(time_point when, mutable_buffer room, std::error_code& why,
                           source where = source::current()) const {
    return receive_from(room, {when, where}, &why);
  }
  template <class Rep, class Period>
  received recv_from_for(std::chrono::duration<Rep, Period> time, mutable_buffer room,
                         source where = source::current()) const {
    return receive_from(room, {weft::detail::time_after(time), where}, nullptr);
  }
  template <class Rep, class Period>
  received recv_from_for(std::chrono::duration<Rep, Period> time, mutable_buffer room, std::error_code& why,
                         source where = source::current()) const {
    return receive_from(room, {weft::detail::time_after(time), where}, &why);
  }

  // The same without the address, and a datagram that does not fit is the error errc::message_size. The beginning of it
  // is in the buffer then.
  std::size_t recv(mutable_buffer room, source where = source::current()) const {
    return receive(room, usual_limit(where), nullptr);
  }
  std::size_t recv(mutable_buffer room, std::error_code& why, source where = source::current()) const {
    return receive(room, usual_limit(where), &why);
  }
  std::size_t recv_until(time_point when, mutable_buffer room, source where = source::current()) const {
    return receive(room, {when, where}, nullptr);
  }
  std::size_t recv_until(time_point when, mutable_buffer room, std::error_code& why,
                         source where = source::current()) const {
    return receive(room, {when, where}, &why);
  }
  template <class Rep, class Period>
  std::size_t recv_for(std::chrono::duration<Rep, Period> time, mutable_buffer room,
                       source where = source::current()) const {
    return receive(room, {weft::detail::time_after(time), where}, nullptr);
  }
  template <class Rep, class Period>
  std::size_t recv_for(std::chrono::duration<Rep, Period> time, mutable_buffer room, std::error_code& why,
                       source where = source::current()) const {
    return receive(room, {weft::detail::time_after(time), where}, &why);
  }

  // Sends one datagram, and waits while there is no room for it: on this machine, and for Unix sockets at the receiver.
  void send_to(const_buffer bytes, const endpoint& to, source where = source::current()) const {
    deliver_to(bytes, to, usual_limit(where), nullptr);
  }
  void send_to(const_buffer bytes, const endpoint& to, std::error_code& why, source where = source::current()) const {
    deliver_to(bytes, to, usual_limit(where), &why);
  }
  void send_to_until(time_point when, const_buffer bytes, const endpoint& to, source where = source::current()) const {
    deliver_to(bytes, to, {when, where}, nullptr);
  }
  void send_to_until(time_point when, const_buffer bytes, const endpoint& to, std::error_code& why,
                     source where = source::current()) const {
    deliver_to(bytes, to, {when, where}, &why);
  }
  template <class Rep, class Period>
  void send_to_for(std::chrono::duration<Rep, Period> time, const_buffer bytes, const endpoint& to,
                   source where = source::current()) const {
    deliver_to(bytes, to, {weft::detail::time_after(time), where}, nullptr);
  }
  template <class Rep, class Period>
  void send_to_for(std::chrono::duration<Rep, Period> time, const_buffer bytes, const endpoint& to,
                   std::error_code& why, source where = source::current()) const {
    deliver_to(bytes, to, {weft::detail::time_after(time), where}, &why);
  }

  // The same to the peer of a connected socket; errc::destination_address_required if it has none.
  void send(const_buffer bytes, source where = source::current()) const { deliver(bytes, usual_limit(where), nullptr); }
  void send(const_buffer bytes, std::error_code& why, source where = source::current()) const {
    deliver(bytes, usual_limit(where), &why);
  }
  void send_until(time_point when, const_buffer bytes, source where = source::current()) const {
    deliver(bytes, {when, where}, nullptr);
  }
  void send_until(time_point when, const_buffer bytes, std::error_code& why, source where = source::current()) const {
    deliver(bytes, {when, where}, &why);
  }
  template <class Rep, class Period>
  void send_for(std::chrono::duration<Rep, Period> time, const_buffer bytes, source where = source::current()) const {
    deliver(bytes, {weft::detail::time_after(time), where}, nullptr);
  }
  template <class Rep, class Period>
  void send_for(std::chrono::duration<Rep, Period> time, const_buffer bytes, std::error_code& why,
                source where = source::current()) const {
    deliver(bytes, {weft::detail::time_after(time), where}, &why);
  }

  // --- several datagrams --------------------------------------------------------------------------------------------
  // Waits for the first datagram, takes what there is in one system call, and returns how many that were: at most as
  // many as there are places, and at most 32.
  [[nodiscard]] std::size_t recv_many(std::span<incoming> to, source where = source::current()) const {
    return receive_many(to, usual_limit(where), nullptr);
  }
  [[nodiscard]] std::size_t recv_many(std::span<incoming> to, std::error_code& why,
                                      source where = source::current()) const {
    return receive_many(to, usual_limit(where), &why);
  }
  [[nodiscard]] std::size_t recv_many_until(time_point when, std::span<incoming> to,
                                            source where = source::current()) const {
    return receive_many(to, {when, where}, nullptr);
  }
  [[nodiscard]] std::size_t recv_many_until(time_point when, std::span<incoming> to, std::error_code& why,
                                            source where = source::current()) const {
    return receive_many(to, {when, where}, &why);
  }
  template <class Rep, class Period>
  [[nodiscard]] std::size_t recv_many_for(std::chrono::duration<Rep, Period> time, std::span<incoming> to,
                                          source where = source::current()) const {
    return receive_many(to, {weft::detail::time_after(time), where}, nullptr);
  }
  template <class Rep, class Period>
  [[nodiscard]] std::size_t recv_many_for(std::chrono::duration<Rep, Period> time, std::span<incoming> to,
                                          std::error_code& why, source where = source::current()) const {
    return receive_many(to, {weft::detail::time_after(time), where}, &why);
  }

  // Sends all of them in order, in as few system calls as possible. With an error code it returns how many were sent
  // before the error, which concerns the next one.
  void send_many(std::span<const outgoing> all, source where = source::current()) const {
    deliver_many(all, usual_limit(where), nullptr);
  }
  std::size_t send_many(std::span<const outgoing> all, std::error_code& why, source where = source::current()) const {
    return deliver_many(all, usual_limit(where), &why);
  }
  void send_many_until(time_point when, std::span<const outgoing> all, source where = source::current()) const {
    deliver_many(all, {when, where}, nullptr);
  }
  std::size_t send_many_until(time_point when, std::span<const outgoing> all, std::error_code& why,
                              source where = source::current()) const {
    return deliver_many(all, {when, where}, &why);
  }
  template <class Rep, class Period>
  void send_many_for(std::chrono::duration<Rep, Period> time, std::span<const outgoing> all,
                     source where = source::current()) const {
    deliver_many(all, {weft::detail::time_after(time), where}, nullptr);
  }
  template <class Rep, class Period>
  std::size_t send_many_for(std::chrono::duration<Rep, Period> time, std::span<const outgoing> all,
                            std::error_code& why, source where = source::current()) const {
    return deliver_many(all, {weft::detail::time_after(time), where}, &why);
  }

  // --- the peer -----------------------------------------------------------------------------------------------------
  // From now on send() goes to that address, and only datagrams from there are received. It can be called again with
  // another address. These do not wait, and are never cancellation points.
  void connect(const endpoint& to) const;
  void connect(const endpoint& to, std::error_code& why) const;
  void disconnect() const;
  void disconnect(std::error_code& why) const;

  // --- arms of a select ---------------------------------------------------------------------------------------------
  // There is a datagram or an error; there is room to send. Another task may be quicker; then the operation waits.
  [[nodiscard]] ready_arm readable() const { return {record(), io::side::read}; }
  [[nodiscard]] ready_arm writable() const { return {record(), io::side::write}; }
  template <std::invocable F>
  [[nodiscard]] auto on_readable(F f) const {
    return weft::detail::handled_arm(readable(), std::move(f));
  }
  template <std::invocable F>
  [[nodiscard]] auto on_writable(F f) const {
    return weft::detail::handled_arm(writable(), std::move(f));
  }

  // Gives up the socket without closing it. Throws usage_error while another task uses it.
  [[nodiscard]] int release() { return handle_.release(); }

 protected:
  using socket_handle::socket_handle;

 private:
  // Without a place for the reason they throw it.
  received receive_from(mutable_buffer room, const io::limit& l, std::error_code* why) const;
  std::size_t receive(mutable_buffer room, const io::limit& l, std::error_code* why) const;
  void deliver_to(const_buffer bytes, const endpoint& to, const io::limit& l, std::error_code* why) const;
  void deliver(const_buffer bytes, const io::limit& l, std::error_code* why) const;
  std::size_t receive_many(std::span<incoming> to, const io::limit& l, std::error_code* why) const;
  std::size_t deliver_many(std::span<const outgoing> all, const io::limit& l, std::error_code* why) const;
};

}  // namespace weft::inline v1::net
