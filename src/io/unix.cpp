#include <weft/net/unix.hpp>

#include <sys/socket.h>

#include "io/socket.hpp"

namespace weft::inline v1::net {

unix_stream unix_stream::connect(const endpoint& to, std::error_code& why, source where) {
  io::fd_handle h = open_socket(to, "a stream", why);
  if (why) return {};
  io::connect(h.record(), to, {io::without_limit, where}, why);
  if (why) return {};
  return unix_stream(std::move(h));
}

unix_stream unix_stream::connect(const endpoint& to, source where) {
  std::error_code why;
  unix_stream s = connect(to, why, where);
  io::throw_if(why, "connect to", to);
  return s;
}

std::pair<unix_stream, unix_stream> unix_stream::pair() {
  std::error_code why;
  auto [first, second] = io::open_pair(AF_UNIX, SOCK_STREAM, io::unix_traits, why);
  if (why) throw std::system_error(why, "make a pair of Unix sockets");
  return {unix_stream(std::move(first)), unix_stream(std::move(second))};
}

unix_stream unix_stream::adopt(int fd) { return unix_stream(io::adopt_socket(fd, io::unix_traits)); }

io::fd_handle unix_stream::open_socket(const endpoint& at, const char* who, std::error_code& why) {
  io::require_local(at, who);
  return io::open_socket(AF_UNIX, SOCK_STREAM, io::unix_traits, why);
}

}  // namespace weft::inline v1::net
