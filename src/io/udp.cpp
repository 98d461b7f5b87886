#include <weft/net/udp.hpp>

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "io/socket.hpp"
#include <weft/errors.hpp>

namespace weft::inline v1::net {
namespace {

io::fd_handle open_for_datagrams(const endpoint& family_of, const char* call, std::error_code& why) {
  return io::open_socket(io::require_internet(family_of, call), SOCK_DGRAM, {}, why);
}

void set_before_bind(io::fd_record& r, const bind_options& o, std::error_code& why) noexcept {
  if (o.reuse_address) io::set_flag(r, SOL_SOCKET, SO_REUSEADDR, true, why);
  if (o.reuse_port && !why) io::set_flag(r, SOL_SOCKET, SO_REUSEPORT, true, why);
  if (o.v6_only && !why) io::set_flag(r, IPPROTO_IPV6, IPV6_V6ONLY, *o.v6_only, why);
}

// The same call for both families, which takes any address.
std::error_code change_group(io::fd_record& r, int name, const endpoint& group, unsigned interface, const char* call) {
  const int family = io::require_internet(group, call);
  group_req asked{};
  asked.gr_interface = interface != 0 ? interface : group.scope_id();
  std::memcpy(&asked.gr_group, group.data(), group.size());
  const io::use in_use(r);
  if (!in_use) return io::closed_by_another();
  const int level = family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
  return r.calls().setsockopt(r.fd(), level, name, &asked, sizeof asked) == 0 ? std::error_code() : io::last_error();
}

}  // namespace

// ---- opening ---------------------------------------------------------------------------------------------------------

udp_socket udp_socket::bind(const endpoint& at, const bind_options& o, std::error_code& why) {
  io::fd_handle h = open_for_datagrams(at, "udp_socket::bind", why);
  if (!why) set_before_bind(h.record(), o, why);
  if (!why) io::bind_to(h.record(), at, why);
  if (why) return {};
  return udp_socket(std::move(h));
}

udp_socket udp_socket::bind(const endpoint& at, const bind_options& o) {
  std::error_code why;
  udp_socket s = bind(at, o, why);
  io::throw_if(why, "bind to", at);
  return s;
}

udp_socket udp_socket::open(address_family which, std::error_code& why) {
  if (which != address_family::v4 && which != address_family::v6)
    throw usage_error("udp_socket::open needs the family v4 or v6");
  io::fd_handle h = io::open_socket(which == address_family::v4 ? AF_INET : AF_INET6, SOCK_DGRAM, {}, why);
  if (why) return {};
  return udp_socket(std::move(h));
}

udp_socket udp_socket::open(address_family which) {
  std::error_code why;
  udp_socket s = open(which, why);
  if (why) throw std::system_error(why, which == address_family::v4 ? "open an IPv4 socket" : "open an IPv6 socket");
  return s;
}

udp_socket udp_socket::connected_to(const endpoint& to, std::error_code& why) {
  io::fd_handle h = open_for_datagrams(to, "udp_socket::connected_to", why);
  if (why) return {};
  udp_socket s(std::move(h));
  s.connect(to, why);
  if (why) return {};
  return s;
}

udp_socket udp_socket::connected_to(const endpoint& to) {
  std::error_code why;
  udp_socket s = connected_to(to, why);
  io::throw_if(why, "connect to", to);
  return s;
}

udp_socket udp_socket::adopt(int fd) { return udp_socket(io::adopt_socket(fd, {})); }

// ---- multicast -------------------------------------------------------------------------------------------------------

void udp_socket::join(const endpoint& group, unsigned interface, std::error_code& why) const {
  why = change_group(record(), MCAST_JOIN_GROUP, group, interface, "udp_socket::join");
}

void udp_socket::join(const endpoint& group, unsigned interface) const {
  std::error_code why;
  join(group, interface, why);
  io::throw_if(why, "join the group", group);
}

void udp_socket::leave(const endpoint& group, unsigned interface, std::error_code& why) const {
  why = change_group(record(), MCAST_LEAVE_GROUP, group, interface, "udp_socket::leave");
}

void udp_socket::leave(const endpoint& group, unsigned interface) const {
  std::error_code why;
  leave(group, interface, why);
  io::throw_if(why, "leave the group", group);
}

}  // namespace weft::inline v1::net
