// Two connected TLS streams.
#pragma once

#include <utility>

#include "asio/certificates.hpp"
#include "io/net.hpp"
#include <weft/net.hpp>
#include <weft/tls.hpp>

namespace support {

using tls = weft::tls_stream<net::tcp_stream>;
using weft::tls_client;
using weft::tls_server;

struct tls_pair {
  tls client, server;
};

// Before the handshake.
[[nodiscard]] inline tls_pair new_tls_pair() {
  auto [c, s] = connected_pair();
  return {tls(std::move(c), contexts().client), tls(std::move(s), contexts().server)};
}
[[nodiscard]] inline tls_pair connected_tls_pair() {
  tls_pair p = new_tls_pair();
  auto server = weft::spawn([&] { p.server.handshake(tls_server{}); });
  p.client.handshake(tls_client{test_host});
  server.join();
  return p;
}

// Like with_sockets, after everything exists that is made once and kept.
template <class Body>
void with_tls(Body body) {
  (void)contexts();
  with_sockets(std::move(body));
}

}  // namespace support
