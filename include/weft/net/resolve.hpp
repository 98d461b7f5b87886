// From the name of a host to its addresses.
//
//   for (const auto& e : weft::net::resolve("example.com", "https")) …
//
//   std::error_code ec;
//   auto found = weft::net::resolve("example.com", 443, ec);
//   if (ec == weft::net::resolve_errc::not_found) …
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include <weft/detail/config.hpp>
#include <weft/net/endpoint.hpp>

namespace weft::inline v1::net {

// A port, by its number or by its name in /etc/services. It refers to the text that it was made from.
class service {
 public:
  template <std::integral Int>
    requires std::constructible_from<port_number, Int>
  service(Int port) : number_(port_number(port)) {}
  service(port_number port) noexcept : number_(port) {}
  service(std::string_view name) noexcept : name_(name) {}
  service(const char* name) noexcept : name_(name) {}
  service(const std::string& name) noexcept : name_(name) {}

  [[nodiscard]] std::string text() const { return number_ ? std::to_string(number_->value()) : std::string(name_); }

 private:
  std::string_view name_;
  std::optional<port_number> number_;
};

struct resolve_options {
  address_family family = address_family::none;  // only these addresses; none: IPv4 and IPv6
  bool datagram = false;  // the service is one of UDP, not of TCP
  bool passive = false;  // with an empty host: the addresses to listen on, and not those of this machine
  bool configured_only = false;  // only families for which this machine has an address beside loopback
  // The call ends with timed_out then. A deadline of a scope does not need this.
  std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max();
};

// Looks a host up by getaddrinfo, in the order that the system prefers, each address once. The host may also be a numeric
// address ("::1", "fe80::1%eth0"). An empty host means this machine, and an empty service means port 0.
//
// Always a cancellation point. A cancelled call, or one whose time is up, returns at once. The look-up cannot be
// interrupted: it goes on in a task of its own, and the end of the runtime waits for it. A numeric host with a numeric
// service is answered on the spot. Otherwise at most 16 look-ups of a runtime run at a time, beside what blocking()
// runs; the others wait for their turn. An outside thread blocks.
//
// Throws std::system_error, or sets `error` and returns nothing. The categories are resolve_category() and, if a system
// call of the look-up has failed, that of the system.
[[nodiscard]] WEFT_API std::vector<endpoint> resolve(std::string_view host, const service& s,
                                                     const resolve_options& options = {},
                                                     std::source_location where = std::source_location::current());
[[nodiscard]] WEFT_API std::vector<endpoint> resolve(std::string_view host, const service& s,
                                                     const resolve_options& options, std::error_code& error,
                                                     std::source_location where = std::source_location::current());
[[nodiscard]] WEFT_API std::vector<endpoint> resolve(std::string_view host, const service& s, std::error_code& error,
                                                     std::source_location where = std::source_location::current());

// Some of the codes of getaddrinfo, which are the values of the category.
enum class resolve_errc : int {
  not_found = -2,  // EAI_NONAME: there is no such host or service
  try_again = -3,  // EAI_AGAIN: no name server has answered in time
  failed = -4,  // EAI_FAIL: a name server has said that it cannot answer
  no_address = -5,  // EAI_NODATA: the host exists, but has no address
  unknown_service = -8,  // EAI_SERVICE
  no_address_of_family = -9,  // EAI_ADDRFAMILY
};
[[nodiscard]] WEFT_API const std::error_category& resolve_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(resolve_errc code) noexcept {
  return {static_cast<int>(code), resolve_category()};
}

}  // namespace weft::inline v1::net

template <>
struct std::is_error_code_enum<weft::net::resolve_errc> : std::true_type {};
