// A server's whole life: it serves, it is told to stop, it drains, and it says how that went.
//
//   09_server          serves a few clients of its own, and stops
//   09_server 7000     serves at that port until the end of its standard input
#include <weft/net.hpp>
#include <weft/weft.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace net = weft::net;
using namespace std::chrono_literals;

namespace {

// A connection is kept for the next request. While it is idle, it may be told to leave.
void echo(net::tcp_stream s, net::server& of) {
  char room[512];
  while (of.next_request(s)) {
    const std::size_t n = s.read_some(room);
    if (n == 0) return;
    s.write_all({room, n});
  }
}

void be_a_client(const net::endpoint& server, int number) {
  const auto s = net::tcp_stream::connect(server);
  for (int i = 1; i <= 3; ++i) {
    const std::string question = "client " + std::to_string(number) + ", request " + std::to_string(i);
    std::string answer(question.size(), '\0');
    s.write_all(question);
    s.read_exactly(answer);
    if (answer != question) std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  return weft::run([&] {
    weft::event stop;
    net::server server({.max_connections = 1000});
    const net::endpoint at =
        server.serve(net::tcp_listener(net::endpoint::loopback(argc > 1 ? std::atoi(argv[1]) : 0)), echo);
    std::printf("serving at %s\n", at.to_string().c_str());

    auto driver = weft::spawn([&] {
      if (argc > 1) {
        weft::blocking([] {
          while (std::getchar() != EOF) {}
        });
      } else {
        weft::with_scope([&](weft::scope& s) {
          for (int i = 1; i <= 20; ++i) s.spawn([&at, i] { be_a_client(at, i); });
        });
      }
      stop.set();
    });

    server.serve_until(stop.on_set());  // any arm of a select may stand here: a signal, a timer

    const net::drain_report r = server.drain(10s);
    std::printf("%s\n", to_string(r).c_str());
    driver.join();
    // The server's destructor would wait for a handler that does not end.
    if (!r.survivors.empty()) std::_Exit(EXIT_FAILURE);
    return EXIT_SUCCESS;
  });
}
