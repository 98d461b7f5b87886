#include <weft/net/options.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <climits>
#include <string>

#include "io/kernel.hpp"

namespace weft::inline v1::net {

std::error_code option_socket::read(int level, int name, void* value, std::uint32_t& size) const noexcept {
  if (kernel_->getsockopt(fd_, level, name, value, &size) == 0) return {};
  return {errno, std::system_category()};
}

std::error_code option_socket::write(int level, int name, const void* value, std::uint32_t size) const noexcept {
  if (kernel_->setsockopt(fd_, level, name, value, size) == 0) return {};
  return {errno, std::system_category()};
}

namespace {

struct place {
  int level;
  int name;
};

place place_of(option::key k) noexcept {
  using option::key;
  switch (k) {
    case key::no_delay: return {IPPROTO_TCP, TCP_NODELAY};
    case key::reuse_address: return {SOL_SOCKET, SO_REUSEADDR};
    case key::reuse_port: return {SOL_SOCKET, SO_REUSEPORT};
    case key::v6_only: return {IPPROTO_IPV6, IPV6_V6ONLY};
    case key::broadcast: return {SOL_SOCKET, SO_BROADCAST};
    case key::receive_buffer: return {SOL_SOCKET, SO_RCVBUF};
    case key::send_buffer: return {SOL_SOCKET, SO_SNDBUF};
    case key::user_timeout: break;
  }
  return {IPPROTO_TCP, TCP_USER_TIMEOUT};
}

// A number that is not an int would be cut off, and set something else.
std::error_code write_int(const option_socket& s, place at, std::int64_t value) noexcept {
  if (value < 0 || value > INT_MAX) return std::make_error_code(std::errc::invalid_argument);
  const int given = static_cast<int>(value);
  return s.write(at.level, at.name, &given, sizeof given);
}

std::error_code read_int(const option_socket& s, place at, int& value) noexcept {
  std::uint32_t size = sizeof value;
  return s.read(at.level, at.name, &value, size);
}

constexpr place is_kept_alive{SOL_SOCKET, SO_KEEPALIVE};
constexpr place keep_idle{IPPROTO_TCP, TCP_KEEPIDLE};
constexpr place keep_interval{IPPROTO_TCP, TCP_KEEPINTVL};
constexpr place keep_count{IPPROTO_TCP, TCP_KEEPCNT};

std::error_code read_seconds(const option_socket& s, place at, std::optional<std::chrono::seconds>& to) noexcept {
  int value = 0;
  const std::error_code error = read_int(s, at, value);
  to = std::chrono::seconds(value);
  return error;
}

// IPv4 and IPv6 have an option each.
std::error_code find_hops(const option_socket& s, place& at) noexcept {
  int domain = 0;
  const std::error_code error = read_int(s, {SOL_SOCKET, SO_DOMAIN}, domain);
  at = domain == AF_INET6 ? place{IPPROTO_IPV6, IPV6_UNICAST_HOPS} : place{IPPROTO_IP, IP_TTL};
  return error;
}

}  // namespace

// ---- options that are an int -----------------------------------------------------------------------------------------

std::string_view option::label_of(key k) noexcept {
  switch (k) {
    case key::no_delay: return "no_delay";
    case key::reuse_address: return "reuse_address";
    case key::reuse_port: return "reuse_port";
    case key::v6_only: return "v6_only";
    case key::broadcast: return "broadcast";
    case key::receive_buffer: return "receive_buffer";
    case key::send_buffer: return "send_buffer";
    case key::user_timeout: break;
  }
  return "user_timeout";
}

std::error_code option::write_to(const option_socket& s, key k, std::int64_t value) noexcept {
  return write_int(s, place_of(k), value);
}

std::error_code option::read_from(const option_socket& s, key k, int& value) noexcept {
  return read_int(s, place_of(k), value);
}

// ---- the others ------------------------------------------------------------------------------------------------------

// The details go first: a connection must not be given up by the kernel's own times in between.
std::error_code keep_alive::write_to(const option_socket& s) const noexcept {
  std::error_code error;
  if (on && idle) error = write_int(s, keep_idle, idle->count());
  if (on && interval && !error) error = write_int(s, keep_interval, interval->count());
  if (on && count && !error) error = write_int(s, keep_count, *count);
  return error ? error : write_int(s, is_kept_alive, on ? 1 : 0);
}

std::error_code keep_alive::read_from(const option_socket& s) noexcept {
  int value = 0;
  std::error_code error = read_int(s, is_kept_alive, value);
  on = value != 0;
  if (!error) error = read_seconds(s, keep_idle, idle);
  if (!error) error = read_seconds(s, keep_interval, interval);
  if (!error) error = read_int(s, keep_count, value);
  count = value;
  return error;
}

std::error_code linger::write_to(const option_socket& s) const noexcept {
  const std::int64_t seconds = time ? time->count() : 0;
  if (seconds < 0 || seconds > INT_MAX) return std::make_error_code(std::errc::invalid_argument);
  ::linger given = {};
  given.l_onoff = time ? 1 : 0;
  given.l_linger = static_cast<int>(seconds);
  return s.write(SOL_SOCKET, SO_LINGER, &given, sizeof given);
}

std::error_code linger::read_from(const option_socket& s) noexcept {
  ::linger got = {};
  std::uint32_t size = sizeof got;
  const std::error_code error = s.read(SOL_SOCKET, SO_LINGER, &got, size);
  time = std::nullopt;
  if (got.l_onoff != 0) time = std::chrono::seconds(got.l_linger);
  return error;
}

std::error_code user_timeout::write_to(const option_socket& s) const noexcept {
  return option::write_to(s, option::key::user_timeout, time.count());
}

std::error_code user_timeout::read_from(const option_socket& s) noexcept {
  int value = 0;
  const std::error_code error = option::read_from(s, option::key::user_timeout, value);
  time = std::chrono::milliseconds(value);
  return error;
}

std::error_code ttl::write_to(const option_socket& s) const noexcept {
  place at = {};
  const std::error_code error = find_hops(s, at);
  return error ? error : write_int(s, at, hops);
}

std::error_code ttl::read_from(const option_socket& s) noexcept {
  place at = {};
  const std::error_code error = find_hops(s, at);
  return error ? error : read_int(s, at, hops);
}

void option::throw_error(std::error_code why, std::string_view call, std::string_view label, std::string_view which) {
  std::string what(call);
  what.append(" option ").append(label).append(" of ").append(which);
  throw std::system_error(why, what);
}

}  // namespace weft::inline v1::net
