// Options of sockets, as types.
//
//   stream.set(weft::net::no_delay{true});
//   stream.set(weft::net::keep_alive{.idle = 30s});
//   auto size = stream.get<weft::net::receive_buffer>().bytes;
//
// An option that is not here: `using mark = weft::net::raw_option<SOL_SOCKET, SO_MARK, int>;`.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <weft/detail/config.hpp>

namespace weft::inline v1::io {
struct kernel_calls;
}

namespace weft::inline v1::net {

// The socket whose options are read and written: a descriptor, and the kernel that it belongs to. An option type is
// given one by the socket.
class WEFT_API option_socket {
 public:
  option_socket(int fd, const io::kernel_calls& kernel) noexcept : fd_(fd), kernel_(&kernel) {}
  // As getsockopt and setsockopt. read() sets `size` to the number of bytes that it got.
  [[nodiscard]] std::error_code read(int level, int name, void* value, std::uint32_t& size) const noexcept;
  [[nodiscard]] std::error_code write(int level, int name, const void* value, std::uint32_t size) const noexcept;

 private:
  int fd_;
  const io::kernel_calls* kernel_;
};

// What a type needs to be an option: a label for messages, and how it goes to the socket and comes from it.
template <class Option>
concept socket_option =
    std::default_initializable<Option> && requires(Option& o, const Option& value, const option_socket& s) {
      { Option::label() } -> std::convertible_to<std::string_view>;
      { value.write_to(s) } -> std::same_as<std::error_code>;
      { o.read_from(s) } -> std::same_as<std::error_code>;
    };

namespace option {

// Options whose value in the kernel is an int. options.cpp knows where it is found.
enum class key : std::uint8_t {
  no_delay,
  reuse_address,
  reuse_port,
  v6_only,
  broadcast,
  receive_buffer,
  send_buffer,
  user_timeout,
};
[[nodiscard]] WEFT_API std::string_view label_of(key k) noexcept;
[[nodiscard]] WEFT_API std::error_code write_to(const option_socket& s, key k, std::int64_t value) noexcept;
[[nodiscard]] WEFT_API std::error_code read_from(const option_socket& s, key k, int& value) noexcept;

template <key Key>
struct flag {
  bool on = true;

  [[nodiscard]] static std::string_view label() noexcept { return label_of(Key); }
  [[nodiscard]] std::error_code write_to(const option_socket& s) const noexcept {
    return option::write_to(s, Key, on ? 1 : 0);
  }
  [[nodiscard]] std::error_code read_from(const option_socket& s) noexcept {
    int value = 0;
    const std::error_code error = option::read_from(s, Key, value);
    on = value != 0;
    return error;
  }
  friend bool operator==(const flag&, const flag&) = default;
};

template <key Key>
struct buffer_size {
  std::int64_t bytes = 0;

  [[nodiscard]] static std::string_view label() noexcept { return label_of(Key); }
  [[nodiscard]] std::error_code write_to(const option_socket& s) const noexcept {
    return option::write_to(s, Key, bytes);
  }
  [[nodiscard]] std::error_code read_from(const option_socket& s) noexcept {
    int value = 0;
    const std::error_code error = option::read_from(s, Key, value);
    bytes = value;
    return error;
  }
  friend bool operator==(const buffer_size&, const buffer_size&) = default;
};

}  // namespace option

// Small pieces are sent at once, and not gathered (TCP_NODELAY).
using no_delay = option::flag<option::key::no_delay>;
// A listener may take a port whose old connections have not quite ended yet (SO_REUSEADDR).
using reuse_address = option::flag<option::key::reuse_address>;
// Several sockets share a port, and the kernel spreads connections and datagrams over them (SO_REUSEPORT).
using reuse_port = option::flag<option::key::reuse_port>;
// A socket on an IPv6 address takes no IPv4 (IPV6_V6ONLY).
using v6_only = option::flag<option::key::v6_only>;
// Datagrams may go to a broadcast address (SO_BROADCAST).
using broadcast = option::flag<option::key::broadcast>;

// Linux takes twice the size that is set, for its own records, and at least some 2 KB and at most what
// /proc/sys/net/core allows. What is read is what it took.
using receive_buffer = option::buffer_size<option::key::receive_buffer>;  // SO_RCVBUF
using send_buffer = option::buffer_size<option::key::send_buffer>;  // SO_SNDBUF

// The kernel asks a peer that has been silent for `idle` whether it is still there, every `interval`, and gives the
// connection up after `count` questions without an answer. Without a value the kernel's own applies.
struct WEFT_API keep_alive {
  bool on = true;
  std::optional<std::chrono::seconds> idle = {};
  std::optional<std::chrono::seconds> interval = {};
  std::optional<int> count = {};

  [[nodiscard]] static std::string_view label() noexcept { return "keep_alive"; }
  [[nodiscard]] std::error_code write_to(const option_socket& s) const noexcept;
  [[nodiscard]] std::error_code read_from(const option_socket& s) noexcept;
  friend bool operator==(const keep_alive&, const keep_alive&) = default;
};

// What close() does with data that was not sent yet. Without a time, which is the default of the kernel, it returns at
// once and the data goes out in the background. With zero the connection is reset and the data is dropped. With another
// time close() blocks its thread for so long; do that in weft::blocking.
struct WEFT_API linger {
  std::optional<std::chrono::seconds> time = {};

  [[nodiscard]] static std::string_view label() noexcept { return "linger"; }
  [[nodiscard]] std::error_code write_to(const option_socket& s) const noexcept;
  [[nodiscard]] std::error_code read_from(const option_socket& s) noexcept;
  friend bool operator==(const linger&, const linger&) = default;
};

// How long sent data may stay unanswered before the connection is given up (TCP_USER_TIMEOUT). 0: the kernel's own.
struct WEFT_API user_timeout {
  std::chrono::milliseconds time = {};

  [[nodiscard]] static std::string_view label() noexcept { return "user_timeout"; }
  [[nodiscard]] std::error_code write_to(const option_socket& s) const noexcept;
  [[nodiscard]] std::error_code read_from(const option_socket& s) noexcept;
  friend bool operator==(const user_timeout&, const user_timeout&) = default;
};

// How many routers a packet may pass, 1 to 255 (IP_TTL, IPV6_UNICAST_HOPS).
struct WEFT_API ttl {
  int hops = 64;

  [[nodiscard]] static std::string_view label() noexcept { return "ttl"; }
  [[nodiscard]] std::error_code write_to(const option_socket& s) const noexcept;
  [[nodiscard]] std::error_code read_from(const option_socket& s) noexcept;
  friend bool operator==(const ttl&, const ttl&) = default;
};

// Any other option, with the level, name and type that its manual page names.
template <int Level, int Name, class Value>
struct raw_option {
  static_assert(std::is_trivially_copyable_v<Value>, "the kernel copies the bytes of an option");
  Value value = {};

  [[nodiscard]] static std::string label() {
    return "raw_option<" + std::to_string(Level) + ", " + std::to_string(Name) + ">";
  }
  [[nodiscard]] std::error_code write_to(const option_socket& s) const noexcept {
    return s.write(Level, Name, &value, sizeof value);
  }
  [[nodiscard]] std::error_code read_from(const option_socket& s) noexcept {
    std::uint32_t size = sizeof value;
    return s.read(Level, Name, &value, size);
  }
  friend bool operator==(const raw_option&, const raw_option&) = default;
};

namespace option {

// `which` names the socket in the message, such as its endpoint: "set option ttl of 127.0.0.1:80: Invalid argument".
[[noreturn]] WEFT_API void throw_error(std::error_code why, std::string_view call, std::string_view label,
                                       std::string_view which);

}  // namespace option

// The two calls of every socket, in both forms. Never cancellation points.
template <socket_option Option>
[[nodiscard]] Option get_option(const option_socket& s, std::error_code& error) noexcept {
  Option o;
  error = o.read_from(s);
  return o;
}
template <socket_option Option>
void set_option(const option_socket& s, const Option& o, std::error_code& error) noexcept {
  error = o.write_to(s);
}
template <socket_option Option>
[[nodiscard]] Option get_option(const option_socket& s, std::string_view which) {
  std::error_code error;
  Option o = get_option<Option>(s, error);
  if (error) option::throw_error(error, "get", Option::label(), which);
  return o;
}
template <socket_option Option>
void set_option(const option_socket& s, const Option& o, std::string_view which) {
  std::error_code error;
  set_option(s, o, error);
  if (error) option::throw_error(error, "set", Option::label(), which);
}

}  // namespace weft::inline v1::net
