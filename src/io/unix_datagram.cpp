#include <weft/net/unix_datagram.hpp>

#include <sys/socket.h>

#include "io/socket.hpp"

namespace weft::inline v1::net {

unix_datagram unix_datagram::bind(const endpoint& at, std::error_code& why) {
  io::require_local(at, "unix_datagram::bind");
  io::fd_handle h = io::open_socket(AF_UNIX, SOCK_DGRAM, {}, why);
  if (!why) io::bind_to(h.record(), at, why);
  if (why) return {};
  return unix_datagram(std::move(h));
}

unix_datagram unix_datagram::bind(const endpoint& at) {
  std::error_code why;
  unix_datagram s = bind(at, why);
  io::throw_if(why, "bind to", at);
  return s;
}

// An address that is only a family asks the kernel for a name.
unix_datagram unix_datagram::bind_anywhere() {
  const sa_family_t only = AF_UNIX;
  std::error_code why;
  unix_datagram s = bind(endpoint(reinterpret_cast<const sockaddr*>(&only), sizeof only), why);
  if (why) throw std::system_error(why, "bind a Unix socket to a name that the kernel chooses");
  return s;
}

unix_datagram unix_datagram::open() {
  std::error_code why;
  io::fd_handle h = io::open_socket(AF_UNIX, SOCK_DGRAM, {}, why);
  if (why) throw std::system_error(why, "open a Unix socket");
  return unix_datagram(std::move(h));
}

unix_datagram unix_datagram::connected_to(const endpoint& to, std::error_code& why) {
  io::require_local(to, "unix_datagram::connected_to");
  io::fd_handle h = io::open_socket(AF_UNIX, SOCK_DGRAM, {}, why);
  if (why) return {};
  unix_datagram s(std::move(h));
  s.connect(to, why);
  if (why) return {};
  return s;
}

unix_datagram unix_datagram::connected_to(const endpoint& to) {
  std::error_code why;
  unix_datagram s = connected_to(to, why);
  io::throw_if(why, "connect to", to);
  return s;
}

std::pair<unix_datagram, unix_datagram> unix_datagram::pair() {
  std::error_code why;
  auto [first, second] = io::open_pair(AF_UNIX, SOCK_DGRAM, {}, why);
  if (why) throw std::system_error(why, "make a pair of Unix sockets");
  return {unix_datagram(std::move(first)), unix_datagram(std::move(second))};
}

unix_datagram unix_datagram::adopt(int fd) { return unix_datagram(io::adopt_socket(fd, {})); }

}  // namespace weft::inline v1::net
