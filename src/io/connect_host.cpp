#include "io/connect_host.hpp"

#include <algorithm>
#include <string>

#include "io/connect_race.hpp"
#include "io/endpoint_text.hpp"
#include "io/resolve.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::io {
namespace {

using net::address_family;

// Tells the caller why there is no connection. `at` is the step that failed, for the message.
fd_handle no_connection(const std::error_code& reason, std::string_view host, const net::service& port,
                        const std::string& at, std::error_code* why) {
  if (why == nullptr)
    throw std::system_error(reason, "connect to \"" + printable(host) + "\" port " + printable(port.text()) + at);
  *why = reason;
  return {};
}

// The family of the addresses to ask for.
address_family family_for(const net::connect_options& o) {
  if (o.local.family() == address_family::none) return o.family;
  if (o.local.family() == address_family::local)
    throw usage_error("tcp_stream::connect needs an IPv4 or IPv6 address to come from, and got " + o.local.to_string());
  if (o.family != address_family::none && o.family != o.local.family())
    throw usage_error("tcp_stream::connect is asked for addresses of another family than that of " +
                      o.local.to_string() + ", from which it is to connect");
  return o.local.family();
}

// resolve() takes an empty host for this machine and an empty service for port 0. Here they are most likely settings that
// are missing, and a connection to oneself would hide that.
std::error_code flaw_of_target(std::string_view host, const net::service& port) {
  if (host.empty()) return std::make_error_code(std::errc::invalid_argument);
  if (port.text().empty()) return net::resolve_errc::unknown_service;
  return {};
}

}  // namespace

fd_handle connect_to_host(const kernel_calls& calls, std::string_view host, const net::service& port,
                          const net::connect_options& o, const limit& l, std::error_code* why) {
  waits::check_cancelled();
  const limit all{std::min(l.until, detail::time_after(o.timeout)), l.where};
  const net::resolve_options how{.family = family_for(o), .until = all.until};
  std::error_code reason = flaw_of_target(host, port);
  if (reason) return no_connection(reason, host, port, "", why);
  const std::vector<net::endpoint> found = resolve(calls, host, port, how, reason, l.where);
  if (reason) return no_connection(reason, host, port, ": resolve", why);
  connect_race race(calls, connect_order(found), o);
  fd_handle h = race.run(all, reason);
  if (reason) return no_connection(reason, host, port, why == nullptr ? race.story() : "", why);
  if (why != nullptr) why->clear();
  return h;
}

}  // namespace weft::inline v1::io
