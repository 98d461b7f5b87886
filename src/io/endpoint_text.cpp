#include "io/endpoint_text.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <sys/un.h>

#include <charconv>
#include <cstddef>

#include "io/kernel.hpp"

namespace weft::inline v1::io {
namespace {

// One byte less than the kernel has room for: a path ends with a zero byte, an abstract name begins with one.
constexpr std::size_t longest_name = sizeof(sockaddr_un::sun_path) - 1;

// Copies a text for a function of libc. Returns false if it does not fit, or has a zero byte inside.
template <std::size_t Size>
[[nodiscard]] bool terminate(std::string_view text, char (&to)[Size]) noexcept {
  if (text.size() >= Size || text.find('\0') != std::string_view::npos) return false;
  to[text.copy(to, text.size())] = '\0';
  return true;
}

// Nothing but digits, and all of them. Returns false otherwise, and for a number that does not fit.
template <class Number>
[[nodiscard]] bool read_number(std::string_view text, Number& to) noexcept {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, to);
  return error == std::errc() && stopped == end;
}

[[nodiscard]] text_flaw read_scope(std::string_view text, std::uint32_t& to) noexcept {
  char name[IF_NAMESIZE];
  if (!read_number(text, to)) to = terminate(text, name) ? kernel_of_caller().if_nametoindex(name) : 0;
  return to != 0 ? text_flaw::none : text_flaw::no_such_interface;
}

}  // namespace

const char* explanation_of(text_flaw why) noexcept {
  switch (why) {
    case text_flaw::none: break;
    case text_flaw::no_port: return "there is no port; write 127.0.0.1:80, [::1]:80, unix:/path or unix:@name";
    case text_flaw::bad_port: return "the port is not a number from 0 to 65535";
    case text_flaw::no_brackets: return "an IPv6 address stands in brackets before its port: [::1]:80";
    case text_flaw::bad_brackets: return "after the closing bracket comes a colon and the port: [::1]:80";
    case text_flaw::bad_v4: return "not an IPv4 address of four numbers from 0 to 255 (weft::net::resolve finds names)";
    case text_flaw::bad_v6: return "not an IPv6 address";
    case text_flaw::no_such_interface: return "there is no network interface with the name or number after the %";
    case text_flaw::empty_path: return "the path of a Unix socket is empty";
    case text_flaw::zero_in_path: return "the path has a zero byte in it";
    case text_flaw::path_too_long: return "the name of a Unix socket has at most 107 bytes";
  }
  return "";
}

text_flaw read_v4(std::string_view text, v4_bytes& to) noexcept {
  char copy[INET_ADDRSTRLEN];
  if (!terminate(text, copy) || ::inet_pton(AF_INET, copy, to.data()) != 1) return text_flaw::bad_v4;
  return text_flaw::none;
}

text_flaw read_v6(std::string_view text, v6_text& to) noexcept {
  const std::size_t percent = text.find('%');
  char copy[INET6_ADDRSTRLEN];
  if (!terminate(text.substr(0, percent), copy) || ::inet_pton(AF_INET6, copy, to.bytes.data()) != 1)
    return text_flaw::bad_v6;
  if (percent == std::string_view::npos) return text_flaw::none;
  return read_scope(text.substr(percent + 1), to.scope_id);
}

text_flaw read_port(std::string_view text, std::uint16_t& to) noexcept {
  return read_number(text, to) ? text_flaw::none : text_flaw::bad_port;
}

text_flaw flaw_of_path(std::string_view path) noexcept {
  if (path.empty()) return text_flaw::empty_path;
  if (path.find('\0') != std::string_view::npos) return text_flaw::zero_in_path;
  return flaw_of_abstract(path);
}

text_flaw flaw_of_abstract(std::string_view name) noexcept {
  return name.size() > longest_name ? text_flaw::path_too_long : text_flaw::none;
}

text_flaw split_endpoint(std::string_view text, endpoint_parts& to) noexcept {
  constexpr std::string_view unix_socket = "unix:";
  if (text.starts_with(unix_socket)) {
    const std::string_view name = text.substr(unix_socket.size());
    const bool abstract = name.starts_with('@');
    to = {abstract ? endpoint_form::abstract : endpoint_form::path, name.substr(abstract ? 1 : 0), 0};
    return text_flaw::none;
  }
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos || !text.substr(close + 1).starts_with(':')) return text_flaw::bad_brackets;
    to.form = endpoint_form::v6;
    to.address = text.substr(1, close - 1);
    return read_port(text.substr(close + 2), to.port);
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return text_flaw::no_port;
  if (text.find(':', colon + 1) != std::string_view::npos) return text_flaw::no_brackets;
  to.form = endpoint_form::v4;
  to.address = text.substr(0, colon);
  return read_port(text.substr(colon + 1), to.port);
}

std::string printable(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  constexpr unsigned char del = 0x7f;
  std::string written;
  written.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte != del) {
      written += c;
    } else {
      written += "\\x";
      written += digits[byte >> 4];
      written += digits[byte & 0xf];
    }
  }
  return written;
}

}  // namespace weft::inline v1::io
