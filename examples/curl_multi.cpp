// A hundred downloads at once by libcurl, which one task drives. The server is here, too: a task for each connection.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "curl_client.hpp"
#include <weft/net.hpp>

namespace net = weft::net;

namespace {

// Answers each request with 64 KiB, whatever it asks for.
void answer(const net::tcp_stream& s) {
  const std::string body(64 << 10, 'x');
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  std::string asked;
  char room[1024];
  while (const std::size_t n = s.read_some(room)) {
    asked.append(room, n);
    if (!asked.ends_with("\r\n\r\n")) continue;
    asked.clear();
    s.write_all(head);
    s.write_all(body);
  }
}

}  // namespace

int main() {
  return weft::run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const std::string url = "http://" + listener.local_endpoint().to_string() + "/";
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(listener, s, [](net::tcp_stream c) { answer(c); }); });
      const http::client client(s);
      std::vector<weft::child<std::size_t>> downloads;
      for (int i = 0; i < 100; ++i)
        downloads.push_back(s.spawn([client, &url] { return client.get(url).body.size(); }));
      std::size_t bytes = 0;
      for (auto& d : downloads) bytes += d.join();
      std::printf("100 downloads at once: %zu bytes\n", bytes);
      listener.close();
    });
  });
}
