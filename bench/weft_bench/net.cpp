#include "net.hpp"

#include <weft/net/tcp.hpp>
#include <weft/net/udp.hpp>
#include <weft/net/unix.hpp>
#include <weft/weft.hpp>

#include <unistd.h>

#include <cstddef>
#include <string>
#include <utility>

namespace weft_bench {
namespace {

// A task for each connection.
template <class Listener, class Handler>
[[noreturn]] void serve(const Listener& listener, Handler handle) {
  for (;;) weft::spawn([s = listener.accept(), handle] { handle(s); }).detach();
}

weft::net::tcp_listener tcp(peer::u64 port) {
  return weft::net::tcp_listener(weft::net::endpoint::loopback(static_cast<std::uint16_t>(port)));
}

// Sends back what it reads, after it has seen it.
template <std::size_t Room, class See>
auto echo_after(See see) {
  return [see](const auto& s) {
    char room[Room];
    while (const std::size_t n = s.read_some(room)) {
      see(room[0]);
      s.write_all({room, n});
    }
  };
}
template <std::size_t Room>
auto echo() {
  return echo_after<Room>([](char) {});
}

}  // namespace

peer::Result tcp_echo(peer::u64 port) { serve(tcp(port), echo<4096>()); }
peer::Result tcp_echo_512(peer::u64 port) { serve(tcp(port), echo<512>()); }

peer::Result tcp_echo_stuck(peer::u64 port) {
  serve(tcp(port), echo_after<4096>([](char first) {
          if (first == 's') ::sleep(1000);  // blocks its thread, as code does that does not know of tasks
        }));
}

peer::Result tcp_echo_mixed(peer::u64 port) {
  serve(tcp(port), echo_after<4096>([](char first) {
          if (first == 'c') peer::compute_1_ms();
        }));
}

peer::Result unix_echo(peer::u64 number) {
  serve(weft::net::unix_listener(weft::net::endpoint::unix_abstract("weft_echo." + std::to_string(number))),
        echo<4096>());
}

peer::Result udp_echo(peer::u64 port) {
  const auto socket = weft::net::udp_socket::bind(weft::net::endpoint::loopback(static_cast<std::uint16_t>(port)));
  for (char room[4096];;) {
    const auto message = socket.recv_from(room);
    socket.send_to({room, message.size}, message.from);
  }
}

}  // namespace weft_bench
