#include <weft/net/tcp.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>

#include "io/connect_host.hpp"
#include "io/socket.hpp"

namespace weft::inline v1::net {
namespace {

// Fails only for a socket that has been reset already, and the next operation tells that.
void send_at_once(io::fd_record& r) noexcept {
  std::error_code ignored;
  io::set_flag(r, IPPROTO_TCP, TCP_NODELAY, true, ignored);
}

}  // namespace

tcp_stream tcp_stream::connect_until(time_point when, const endpoint& to, std::error_code& why, source where) {
  io::fd_handle h = open_socket(to, "a stream", why);
  if (why) return {};
  send_at_once(h.record());
  io::connect(h.record(), to, {when, where}, why);
  if (why) return {};
  return tcp_stream(std::move(h));
}

tcp_stream tcp_stream::connect_until(time_point when, const endpoint& to, source where) {
  std::error_code why;
  tcp_stream s = connect_until(when, to, why, where);
  io::throw_if(why, "connect to", to);
  return s;
}

tcp_stream tcp_stream::connect(const endpoint& to, std::error_code& why, source where) {
  return connect_until(io::without_limit, to, why, where);
}
tcp_stream tcp_stream::connect(const endpoint& to, source where) { return connect_until(io::without_limit, to, where); }

tcp_stream tcp_stream::to_host(std::string_view host, const service& port, const connect_options& options,
                               const io::limit& l, std::error_code* why) {
  return tcp_stream(io::connect_to_host(io::kernel_of_caller(), host, port, options, l, why));
}

tcp_stream tcp_stream::adopt(int fd) { return tcp_stream(io::adopt_socket(fd, io::tcp_traits)); }

io::fd_handle tcp_stream::open_socket(const endpoint& at, const char* who, std::error_code& why) {
  return io::open_socket(io::require_internet(at, who), SOCK_STREAM, io::tcp_traits, why);
}

tcp_stream tcp_stream::accepted(io::fd_handle h) noexcept {
  send_at_once(h.record());
  return tcp_stream(std::move(h));
}

}  // namespace weft::inline v1::net
