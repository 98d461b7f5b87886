#include <weft/net/socket_listener.hpp>

#include <string>

#include "io/socket.hpp"

namespace weft::inline v1::net::detail {

void socket_listener::listen_with(io::fd_handle socket, const endpoint& at, const listen_options& o,
                                  std::error_code& why) {
  io::listen_at(socket.record(), at, o, why);
  if (!why) handle_ = std::move(socket);
}

io::fd_handle socket_listener::accept_one(const io::limit& l, std::error_code& why) const {
  return io::accept(handle_.record(), l, why);
}

io::fd_handle socket_listener::try_accept_one(std::error_code& why) const {
  return io::try_accept(handle_.record(), why);
}

endpoint socket_listener::local_endpoint() const { return io::local_endpoint(handle_.record()); }

void socket_listener::throw_if_not_listening(const std::error_code& why, const endpoint& at) {
  io::throw_if(why, "listen at", at);
}

void socket_listener::throw_if_not_accepted(const std::error_code& why) const {
  if (!why) return;
  std::string where = "a closed listener";
  try {
    where = local_endpoint().to_string();
  } catch (const std::system_error&) {
    // It was closed, most likely by another task.
  }
  throw std::system_error(why, "accept a connection at " + where);
}

}  // namespace weft::inline v1::net::detail
