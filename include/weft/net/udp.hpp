// UDP sockets.
//
//   auto socket = weft::net::udp_socket::bind(weft::net::endpoint::loopback(7000));
//   char room[1500];
//   for (;;) {
//     const auto [size, from, truncated] = socket.recv_from(room);
//     if (!truncated) socket.send_to({room, size}, from);
//   }
#pragma once

#include <optional>
#include <system_error>

#include <weft/net/datagram_socket.hpp>

namespace weft::inline v1::net {

// What has to be said before a socket has its address. Other options are set later (options.hpp).
struct bind_options {
  bool reuse_address = false;  // several sockets with one port, as receivers of a multicast group want it
  bool reuse_port = false;  // several sockets with one port share the datagrams
  std::optional<bool> v6_only =
      {};  // without IPv4 at an IPv6 address; without a value the system's own setting applies
};

class WEFT_API udp_socket final : public datagram_socket {
 public:
  udp_socket() noexcept = default;  // no socket: whatever is called on it throws usage_error

  // A socket with that address; port 0 stands for a free one. At any_v6 it exchanges datagrams with IPv4 peers, too,
  // unless it is v6_only; their addresses are then written as ::ffff:192.0.2.1.
  [[nodiscard]] static udp_socket bind(const endpoint& at, const bind_options& o = {});
  [[nodiscard]] static udp_socket bind(const endpoint& at, const bind_options& o, std::error_code& why);
  // A socket without an address, which gets one when it first sends. The family is v4 or v6.
  [[nodiscard]] static udp_socket open(address_family which);
  [[nodiscard]] static udp_socket open(address_family which, std::error_code& why);
  // A socket with a peer, for send() and recv().
  [[nodiscard]] static udp_socket connected_to(const endpoint& to);
  [[nodiscard]] static udp_socket connected_to(const endpoint& to, std::error_code& why);
  // Takes over a socket that was opened elsewhere, and makes it non-blocking.
  [[nodiscard]] static udp_socket adopt(int fd);

  // Receive what is sent to a multicast group, or no longer. The port of the group says nothing. `interface` is the
  // number of the network interface; 0 stands for the group's scope, or else for the one that the system chooses.
  void join(const endpoint& group, unsigned interface = 0) const;
  void join(const endpoint& group, unsigned interface, std::error_code& why) const;
  void leave(const endpoint& group, unsigned interface = 0) const;
  void leave(const endpoint& group, unsigned interface, std::error_code& why) const;

 private:
  using datagram_socket::datagram_socket;
};

}  // namespace weft::inline v1::net
