// A server: a task for each connection, which reads and writes as if it had a thread of its own.
#include <weft/net.hpp>
#include <weft/weft.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace net = weft::net;

namespace {

void echo(const net::tcp_stream& s) {
  char room[512];
  while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
}

std::string ask(const net::endpoint& server, std::string_view question) {
  const auto s = net::tcp_stream::connect(server);
  s.write_all(question);
  std::string answer(question.size(), '\0');
  s.read_exactly(answer);
  return answer;
}

}  // namespace

int main() {
  return weft::run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));  // any free port
    const net::endpoint at = listener.local_endpoint();
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(listener, s, [](net::tcp_stream c) { echo(c); }, {.max_connections = 1000}); });

      std::vector<weft::child<std::string>> answers;
      for (int i = 1; i <= 100; ++i)
        answers.push_back(s.spawn([&at, i] { return ask(at, "request " + std::to_string(i)); }));
      std::size_t bytes = 0;
      for (auto& a : answers) bytes += a.join().size();
      std::printf("100 clients got %zu bytes back\n", bytes);

      listener.close();  // serve() returns, and the scope waits for the connections that are left
    });
  });
}
