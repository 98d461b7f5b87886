// How a connection to a host is made (tcp_stream::connect).
#pragma once

#include <chrono>
#include <optional>

#include <weft/net/endpoint.hpp>
#include <weft/net/options.hpp>

namespace weft::inline v1::net {

struct connect_options {
  using duration = std::chrono::steady_clock::duration;

  // How long an address has before the next one is tried beside it (RFC 8305). An address that fails sooner does not
  // hold up the next. duration::max(): one after the other.
  duration attempt_delay = std::chrono::milliseconds(250);
  // For everything together, the look-up of the name included. The call ends with errc::timed_out then.
  duration timeout = duration::max();
  // Only addresses of this family; none: IPv4 and IPv6.
  address_family family = address_family::none;
  // Where the connection comes from: an address of this machine. Port 0 stands for a free one. Only addresses of the same
  // family are tried then.
  endpoint local = {};
  bool no_delay = true;  // small messages are sent at once (TCP_NODELAY)
  std::optional<net::keep_alive> keep_alive = {};  // as the kernel has it, unless it is set here
};

}  // namespace weft::inline v1::net
