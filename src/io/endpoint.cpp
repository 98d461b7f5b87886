#include <weft/net/endpoint.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include "io/endpoint_text.hpp"

namespace weft::inline v1 {

void detail::throw_bad_port(const std::string& number) {
  throw std::invalid_argument("weft: port " + number + " is out of range: 0 to 65535");
}

namespace net {
namespace {

constexpr std::size_t path_offset = offsetof(sockaddr_un, sun_path);
constexpr std::size_t path_room = sizeof(sockaddr_un::sun_path);

static_assert(sizeof(sockaddr_un) <= 112 && sizeof(sockaddr_in6) <= 112);

template <class Bytes>
std::strong_ordering compare_bytes(const Bytes& a, const Bytes& b) noexcept {
  return std::memcmp(&a, &b, sizeof a) <=> 0;
}

[[noreturn]] void refuse(io::text_flaw why, const char* function, std::string_view text) {
  const std::string call = std::string("endpoint::") + function + "(\"" + io::printable(text) + "\")";
  if (why == io::text_flaw::path_too_long)
    throw std::system_error(std::make_error_code(std::errc::filename_too_long), call);
  throw std::invalid_argument("weft: " + call + ": " + io::explanation_of(why));
}

}  // namespace

// ---- the bytes -------------------------------------------------------------------------------------------------------

template <class Address>
void endpoint::store(const Address& address, std::size_t size) noexcept {
  std::memcpy(bytes_, &address, size);
  size_ = static_cast<std::uint32_t>(size);
}

template <class Address>
Address endpoint::load() const noexcept {
  Address a;
  std::memcpy(&a, bytes_, sizeof a);
  return a;
}

void endpoint::store_local(std::string_view name, bool abstract) noexcept {
  sockaddr_un a = {};
  a.sun_family = AF_UNIX;
  name.copy(a.sun_path + (abstract ? 1 : 0), path_room - (abstract ? 1 : 0));
  // An abstract name begins with a zero byte. A path ends with one, if there is room for it: the kernel allows a path
  // that fills everything, and such a path may come from another process. A socket without a name has neither.
  const std::size_t zero = abstract || !name.empty() ? 1 : 0;
  store(a, std::min(path_offset + name.size() + zero, sizeof a));
}

endpoint::endpoint(const sockaddr* given_address, std::size_t size) {
  const void* const address = given_address;  // it need not be aligned, and this type does not say that it is
  const auto refuse_kernel = [](std::errc why) {
    throw std::system_error(std::make_error_code(why), "endpoint from a sockaddr");
  };
  const auto need = [&](std::size_t least) {
    if (size < least) refuse_kernel(std::errc::invalid_argument);
  };
  sa_family_t family = AF_UNSPEC;
  need(sizeof family);
  std::memcpy(&family, address, sizeof family);
  if (family == AF_INET) {
    need(sizeof(sockaddr_in));
    sockaddr_in given;
    std::memcpy(&given, address, sizeof given);
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = given.sin_port;
    a.sin_addr = given.sin_addr;
    store(a, sizeof a);
  } else if (family == AF_INET6) {
    need(sizeof(sockaddr_in6));
    sockaddr_in6 a;
    std::memcpy(&a, address, sizeof a);
    a.sin6_flowinfo = 0;
    store(a, sizeof a);
  } else if (family == AF_UNIX) {
    const char* name = static_cast<const char*>(address) + path_offset;
    const std::size_t room = std::min(size - path_offset, path_room);
    const bool abstract = room > 0 && *name == '\0';
    store_local(abstract ? std::string_view(name + 1, room - 1) : std::string_view(name, ::strnlen(name, room)),
                abstract);
  } else {
    refuse_kernel(std::errc::address_family_not_supported);
  }
}

// ---- makers ----------------------------------------------------------------------------------------------------------

endpoint endpoint::v4(const std::array<std::uint8_t, 4>& address, port_number port) noexcept {
  sockaddr_in a = {};
  a.sin_family = AF_INET;
  a.sin_port = htons(port.value());
  std::memcpy(&a.sin_addr, address.data(), sizeof a.sin_addr);
  endpoint made;
  made.store(a, sizeof a);
  return made;
}

endpoint endpoint::v6(const std::array<std::uint8_t, 16>& address, port_number port, std::uint32_t scope_id) noexcept {
  sockaddr_in6 a = {};
  a.sin6_family = AF_INET6;
  a.sin6_port = htons(port.value());
  std::memcpy(&a.sin6_addr, address.data(), sizeof a.sin6_addr);
  a.sin6_scope_id = scope_id;
  endpoint made;
  made.store(a, sizeof a);
  return made;
}

endpoint endpoint::loopback_v6(port_number port) noexcept {
  return v6({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, port);
}

endpoint endpoint::v4(std::string_view address, port_number port) {
  io::v4_bytes bytes = {};
  if (const io::text_flaw f = io::read_v4(address, bytes); f != io::text_flaw::none) refuse(f, "v4", address);
  return v4(bytes, port);
}

endpoint endpoint::v6(std::string_view address, port_number port) {
  io::v6_text read;
  if (const io::text_flaw f = io::read_v6(address, read); f != io::text_flaw::none) refuse(f, "v6", address);
  return v6(read.bytes, port, read.scope_id);
}

endpoint endpoint::unix_path(std::string_view path) {
  if (const io::text_flaw f = io::flaw_of_path(path); f != io::text_flaw::none) refuse(f, "unix_path", path);
  endpoint made;
  made.store_local(path, false);
  return made;
}

endpoint endpoint::unix_abstract(std::string_view name) {
  if (const io::text_flaw f = io::flaw_of_abstract(name); f != io::text_flaw::none) refuse(f, "unix_abstract", name);
  endpoint made;
  made.store_local(name, true);
  return made;
}

// ---- text ------------------------------------------------------------------------------------------------------------

namespace {

io::text_flaw read_endpoint(std::string_view text, endpoint& to) {
  using io::text_flaw;
  io::endpoint_parts parts;
  if (const text_flaw f = io::split_endpoint(text, parts); f != text_flaw::none) return f;
  text_flaw found = text_flaw::none;
  io::v4_bytes v4 = {};
  io::v6_text v6;
  switch (parts.form) {
    case io::endpoint_form::v4:
      found = io::read_v4(parts.address, v4);
      if (found == text_flaw::none) to = endpoint::v4(v4, parts.port);
      break;
    case io::endpoint_form::v6:
      found = io::read_v6(parts.address, v6);
      if (found == text_flaw::none) to = endpoint::v6(v6.bytes, parts.port, v6.scope_id);
      break;
    case io::endpoint_form::path:
      found = io::flaw_of_path(parts.address);
      if (found == text_flaw::none) to = endpoint::unix_path(parts.address);
      break;
    case io::endpoint_form::abstract:
      found = io::flaw_of_abstract(parts.address);
      if (found == text_flaw::none) to = endpoint::unix_abstract(parts.address);
      break;
  }
  return found;
}

}  // namespace

endpoint endpoint::parse(std::string_view text) {
  endpoint read;
  if (const io::text_flaw f = read_endpoint(text, read); f != io::text_flaw::none) refuse(f, "parse", text);
  return read;
}

std::optional<endpoint> endpoint::try_parse(std::string_view text) {
  endpoint read;
  if (read_endpoint(text, read) != io::text_flaw::none) return std::nullopt;
  return read;
}

std::string endpoint::address() const {
  char text[INET6_ADDRSTRLEN];
  switch (family()) {
    case address_family::v4: {
      const auto a = load<sockaddr_in>();
      return ::inet_ntop(AF_INET, &a.sin_addr, text, sizeof text);
    }
    case address_family::v6: {
      const auto a = load<sockaddr_in6>();
      std::string written = ::inet_ntop(AF_INET6, &a.sin6_addr, text, sizeof text);
      if (a.sin6_scope_id != 0) written += '%' + std::to_string(a.sin6_scope_id);
      return written;
    }
    case address_family::local: {
      const std::string_view name = path();
      const char* before = is_abstract() ? "unix:@" : name.starts_with('@') ? "unix:./" : "unix:";
      return before + io::printable(name);
    }
    case address_family::none: break;
  }
  return "no address";
}

std::string endpoint::to_string() const {
  switch (family()) {
    case address_family::v4: return address() + ':' + std::to_string(port());
    case address_family::v6: return '[' + address() + "]:" + std::to_string(port());
    case address_family::local:
    case address_family::none: break;
  }
  return address();
}

// ---- parts -----------------------------------------------------------------------------------------------------------

address_family endpoint::family() const noexcept {
  switch (load<sa_family_t>()) {
    case AF_INET: return address_family::v4;
    case AF_INET6: return address_family::v6;
    case AF_UNIX: return address_family::local;
    default: return address_family::none;
  }
}

std::uint16_t endpoint::port() const noexcept {
  switch (family()) {
    case address_family::v4: return ntohs(load<sockaddr_in>().sin_port);
    case address_family::v6: return ntohs(load<sockaddr_in6>().sin6_port);
    case address_family::local:
    case address_family::none: break;
  }
  return 0;
}

std::uint32_t endpoint::scope_id() const noexcept {
  return family() == address_family::v6 ? load<sockaddr_in6>().sin6_scope_id : 0;
}

bool endpoint::is_abstract() const noexcept {
  return family() == address_family::local && size_ > path_offset && bytes_[path_offset] == 0;
}

std::string_view endpoint::path() const noexcept {
  if (family() != address_family::local) return {};
  const std::string_view all(reinterpret_cast<const char*>(bytes_) + path_offset, size_ - path_offset);
  return is_abstract() ? all.substr(1) : all.substr(0, all.find('\0'));
}

std::size_t endpoint::hash() const noexcept {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes_), size_});
}

std::strong_ordering endpoint::operator<=>(const endpoint& other) const noexcept {
  const address_family shared = family();
  if (const auto order = shared <=> other.family(); order != 0) return order;
  if (shared == address_family::v4) {
    const auto order = compare_bytes(load<sockaddr_in>().sin_addr, other.load<sockaddr_in>().sin_addr);
    return order != 0 ? order : port() <=> other.port();
  }
  if (shared == address_family::v6) {
    auto order = compare_bytes(load<sockaddr_in6>().sin6_addr, other.load<sockaddr_in6>().sin6_addr);
    if (order == 0) order = scope_id() <=> other.scope_id();
    return order != 0 ? order : port() <=> other.port();
  }
  const auto order = is_abstract() <=> other.is_abstract();
  return order != 0 ? order : path() <=> other.path();
}

}  // namespace net
}  // namespace weft::inline v1
