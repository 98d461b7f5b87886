// Addresses of sockets: IPv4 and IPv6 with a port, and Unix sockets.
//
//   auto here = weft::net::endpoint::loopback(8080);
//   auto there = weft::net::endpoint::parse("[2001:db8::1]:443");
//   auto local = weft::net::endpoint::unix_path("/run/server.sock");
//   log(there.to_string());                                          // [2001:db8::1]:443
//
// Host names are not addresses: resolve() looks them up (resolve.hpp).
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <weft/detail/config.hpp>

struct sockaddr;  // <sys/socket.h>

namespace weft::inline v1::detail {

[[noreturn]] WEFT_API void throw_bad_port(const std::string& number);

}  // namespace weft::inline v1::detail

namespace weft::inline v1::net {

// The number of a port, made from any integer. Throws std::invalid_argument for a number that is not 0 to 65535, instead
// of cutting it off.
class port_number {
 public:
  template <std::integral Int>
    requires(!std::same_as<Int, bool> && !std::same_as<Int, char>)
  constexpr port_number(Int number) : value_(static_cast<std::uint16_t>(number)) {
    // A number below zero becomes a very large one here.
    if (static_cast<unsigned long long>(number) > UINT16_MAX) weft::detail::throw_bad_port(std::to_string(number));
  }
  [[nodiscard]] constexpr std::uint16_t value() const noexcept { return value_; }

 private:
  std::uint16_t value_;
};

enum class address_family : std::uint8_t {
  none,  // a default-constructed endpoint
  v4,
  v6,
  local,  // a Unix socket
};

// A value: it owns no memory beside itself, and two endpoints are equal if they are the same address. The order is that
// of the families, then of the addresses, then of the scopes and ports.
class WEFT_API endpoint {
 public:
  endpoint() noexcept = default;

  // --- internet addresses -------------------------------------------------------------------------------------------
  [[nodiscard]] static endpoint v4(const std::array<std::uint8_t, 4>& address, port_number port) noexcept;
  // `scope_id` is the number of the interface, which a link-local address (fe80::…) needs.
  [[nodiscard]] static endpoint v6(const std::array<std::uint8_t, 16>& address, port_number port,
                                   std::uint32_t scope_id = 0) noexcept;
  // From text: "127.0.0.1"; "::1", "fe80::1%eth0" or "fe80::1%2". They throw std::invalid_argument.
  [[nodiscard]] static endpoint v4(std::string_view address, port_number port);
  [[nodiscard]] static endpoint v6(std::string_view address, port_number port);
  [[nodiscard]] static endpoint loopback(port_number port) noexcept { return v4({127, 0, 0, 1}, port); }
  [[nodiscard]] static endpoint loopback_v6(port_number port) noexcept;
  // Every address of this machine, for a listener. A socket that is bound to any_v6 takes IPv4 connections too, unless
  // it has the option v6_only.
  [[nodiscard]] static endpoint any(port_number port) noexcept { return v4({0, 0, 0, 0}, port); }
  [[nodiscard]] static endpoint any_v6(port_number port) noexcept { return v6(std::array<std::uint8_t, 16>{}, port); }

  // --- Unix sockets -------------------------------------------------------------------------------------------------
  // A file. Throws std::system_error (filename_too_long) for more than 107 bytes, and std::invalid_argument for an empty
  // path or one with a zero byte in it.
  [[nodiscard]] static endpoint unix_path(std::string_view path);
  // A name without a file, which is free again when its socket is closed. Any bytes, at most 107; filename_too_long.
  [[nodiscard]] static endpoint unix_abstract(std::string_view name);

  // --- text ---------------------------------------------------------------------------------------------------------
  // "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/path", "unix:@name" (abstract). The port has to be there.
  // Throws std::invalid_argument that says what is wrong, and std::system_error (filename_too_long) as unix_path does.
  [[nodiscard]] static endpoint parse(std::string_view text);
  [[nodiscard]] static std::optional<endpoint> try_parse(std::string_view text);
  // The same forms. A scope is written as a number, because the name of an interface may change. A path that begins with
  // @ is written with ./ before it. Bytes that are not printable are written as \xNN.
  [[nodiscard]] std::string to_string() const;
  // Without the port: "127.0.0.1", "fe80::1%2". For a Unix socket the same as to_string().
  [[nodiscard]] std::string address() const;

  // --- parts --------------------------------------------------------------------------------------------------------
  [[nodiscard]] address_family family() const noexcept;
  [[nodiscard]] std::uint16_t port() const noexcept;  // 0 for a Unix socket
  [[nodiscard]] std::uint32_t scope_id() const noexcept;  // 0 if it has none
  [[nodiscard]] bool is_abstract() const noexcept;
  // The path or the abstract name of a Unix socket. Empty for one that has no name, as the client's end usually has
  // none, and for other families. It refers to this endpoint.
  [[nodiscard]] std::string_view path() const noexcept;

  // --- as the kernel has it -----------------------------------------------------------------------------------------
  // For calls of libc. The constructor throws std::system_error: address_family_not_supported for a family other than
  // these, invalid_argument if `size` is too small for the family. The flow label of IPv6 is not kept.
  endpoint(const sockaddr* address, std::size_t size);
  [[nodiscard]] const sockaddr* data() const noexcept { return reinterpret_cast<const sockaddr*>(bytes_); }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

  [[nodiscard]] friend bool operator==(const endpoint&, const endpoint&) noexcept = default;
  [[nodiscard]] std::strong_ordering operator<=>(const endpoint& other) const noexcept;
  [[nodiscard]] std::size_t hash() const noexcept;

 private:
  template <class Address>
  void store(const Address& address, std::size_t size) noexcept;
  template <class Address>
  [[nodiscard]] Address load() const noexcept;
  void store_local(std::string_view name, bool abstract) noexcept;

  // A sockaddr_in, sockaddr_in6 or sockaddr_un. The rest is zero, so that equal addresses have equal bytes.
  alignas(8) unsigned char bytes_[112] = {};
  std::uint32_t size_ = 0;
};

}  // namespace weft::inline v1::net

template <>
struct std::hash<weft::net::endpoint> {
  [[nodiscard]] std::size_t operator()(const weft::net::endpoint& e) const noexcept { return e.hash(); }
};
