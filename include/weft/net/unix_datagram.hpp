// Unix sockets for datagrams: between processes of one machine, in order and without loss.
//
// A receiver takes a few datagrams in advance (/proc/sys/net/unix/max_dgram_qlen), and a sender waits while it has no
// room. Only a socket that has a name can be answered.
#pragma once

#include <system_error>
#include <utility>

#include <weft/net/datagram_socket.hpp>

namespace weft::inline v1::net {

class WEFT_API unix_datagram final : public datagram_socket {
 public:
  unix_datagram() noexcept = default;  // no socket: whatever is called on it throws usage_error

  // A socket with that path or abstract name. The path is made by the socket and stays there when it is gone: another
  // one at that path fails with errc::address_in_use until the file is removed. An abstract name is free at once.
  [[nodiscard]] static unix_datagram bind(const endpoint& at);
  [[nodiscard]] static unix_datagram bind(const endpoint& at, std::error_code& why);
  // A socket with an abstract name that the kernel chooses.
  [[nodiscard]] static unix_datagram bind_anywhere();
  // A socket without a name. It sends, but nobody can send to it.
  [[nodiscard]] static unix_datagram open();
  // A socket with a peer, for send().
  [[nodiscard]] static unix_datagram connected_to(const endpoint& to);
  [[nodiscard]] static unix_datagram connected_to(const endpoint& to, std::error_code& why);
  // Two sockets without names that are connected with each other. When one is closed, the other is told when it sends
  // (errc::connection_refused), but not when it receives.
  [[nodiscard]] static std::pair<unix_datagram, unix_datagram> pair();
  // Takes over a socket that was opened elsewhere, and makes it non-blocking.
  [[nodiscard]] static unix_datagram adopt(int fd);

 private:
  using datagram_socket::datagram_socket;
};

}  // namespace weft::inline v1::net
