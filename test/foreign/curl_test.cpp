// libcurl's multi interface, driven by one task that selects over its descriptors: examples/curl_client.hpp.
// ctest: needs=CURL::libcurl
#include "curl_client.hpp"

#include <string>
#include <vector>

#include "io/net.hpp"
#include <weft/net.hpp>

namespace {

using namespace support::usual;
using namespace support;

// A server of HTTP/1.1 that also misbehaves. What it does is in the path.
class web_server {
 public:
  static constexpr std::size_t size = 64 << 10;

  net::tcp_listener listener{net::endpoint::loopback(0)};
  base::atomic<int> waiting{0}, gone{0};  // clients that wait for ever, and those that gave up
  int together = 0;  // that many clients of /together are answered at the same time

  [[nodiscard]] std::string url(const std::string& path) const {
    return "http://" + listener.local_endpoint().to_string() + path;
  }
  void answer(const net::tcp_stream& s) {
    for (std::string path; !(path = next_path(s)).empty();) {
      if (path == "/never") {
        waiting.fetch_add(1, base::relaxed);
        (void)read_to_end(s);
        gone.fetch_add(1, base::relaxed);
        return;
      }
      if (path == "/together" && arrived_.fetch_add(1, base::relaxed) + 1 == together) all_here_.set();
      if (path == "/together") all_here_.wait();
      const bool is_last = path == "/last";
      s.write_all("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(size) +
                  (is_last ? "\r\nConnection: close\r\n\r\n" : "\r\n\r\n"));
      s.write_all(path == "/early" ? pattern(1000) : pattern(size));
      if (is_last || path == "/early") return;
    }
  }

 private:
  static std::string next_path(const net::tcp_stream& s) {
    std::string head;
    char room[1024];
    while (!head.ends_with("\r\n\r\n")) {
      const std::size_t n = s.read_some(room);
      if (n == 0) return "";
      head.append(room, n);
    }
    const std::size_t begin = head.find(' ') + 1;
    return head.substr(begin, head.find(' ', begin) - begin);
  }
  base::atomic<int> arrived_{0};
  weft::event all_here_;
};

// Runs body(client, server) at each worker count.
template <class Body>
void with_http(Body body) {
  const environment direct("no_proxy", "*");
  with_sockets([&] {
    web_server server;
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(server.listener, s, [&](net::tcp_stream c) { server.answer(c); }); });
      body(http::client(s), server);
      server.listener.close();
    });
  });
}

CURLcode code_of(auto&& f) {
  try {
    f();
  } catch (const http::error& e) {
    EXPECT_STRNE(e.what(), "");
    return e.code;
  }
  return CURLE_OK;
}

// The server answers only when it has all of the requests, so they are under way at the same time.
// req: IO-4
TEST(Curl, a_hundred_downloads_at_once) {
  with_http([](const http::client& client, web_server& server) {
    server.together = 100;
    std::vector<weft::join_handle<http::reply>> downloads;
    for (int i = 0; i < server.together; ++i)
      downloads.push_back(weft::spawn([&] { return client.get(server.url("/together")); }));
    for (auto& d : downloads) {
      const http::reply r = d.join();
      EXPECT_EQ(r.status, 200);
      EXPECT_EQ(r.body, pattern(web_server::size));
    }
  });
}

// Each connection is closed after its answer, and the next one gets its number.
// req: IO-4
TEST(Curl, descriptors_come_and_go_with_the_same_numbers) {
  with_http([](const http::client& client, web_server& server) {
    std::vector<weft::join_handle<void>> askers;
    for (int a = 0; a < 4; ++a)
      askers.push_back(weft::spawn([&] {
        for (int i = 0; i < 25; ++i) EXPECT_EQ(client.get(server.url("/last")).body, pattern(web_server::size));
      }));
    for (auto& a : askers) a.join();
  });
}

TEST(Curl, a_connection_is_used_again) {
  with_http([](const http::client& client, web_server& server) {
    const std::size_t before = open_descriptors();
    std::size_t after_first = 0;
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(client.get(server.url("/")).body.size(), web_server::size);
      if (i == 0) after_first = open_descriptors();
    }
    EXPECT_GT(after_first, before);
    EXPECT_EQ(open_descriptors(), after_first);
  });
}

TEST(Curl, a_server_that_closes_early_is_told) {
  with_http([](const http::client& client, web_server& server) {
    EXPECT_EQ(code_of([&] { (void)client.get(server.url("/early")); }), CURLE_PARTIAL_FILE);
    EXPECT_EQ(client.get(server.url("/")).status, 200);
  });
}

TEST(Curl, a_server_that_is_not_there_is_told) {
  with_http([](const http::client& client, const web_server& server) {
    const std::string nobody = [] {
      const web_server closed_soon;
      return closed_soon.url("/");
    }();
    EXPECT_EQ(code_of([&] { (void)client.get(nobody); }), CURLE_COULDNT_CONNECT);
    EXPECT_EQ(client.get(server.url("/")).status, 200);
  });
}

// req: IO-4
TEST(Curl, a_timeout_of_libcurls_is_a_timer_of_the_driver) {
  with_http([](const http::client& client, web_server& server) {
    auto patient = weft::spawn([&] { (void)client.get(server.url("/never")); });
    EXPECT_EQ(code_of([&] { (void)client.get(server.url("/never"), {.timeout = 20ms}); }), CURLE_OPERATION_TIMEDOUT);
    until([&] { return server.gone.load(base::relaxed) == 1; });
    EXPECT_EQ(client.get(server.url("/")).status, 200);
    patient.cancel();
    EXPECT_THROW(patient.join(), weft::task_cancelled);
  });
}

// The driver sees that nobody waits for the answer, and gives up the transfer: the server sees the connection go.
// req: IO-2 IO-4
TEST(Curl, the_transfer_of_a_task_that_is_cancelled_is_given_up) {
  with_http([](const http::client& client, web_server& server) {
    std::vector<weft::join_handle<void>> askers;
    for (int i = 0; i < 5; ++i) askers.push_back(weft::spawn([&] { (void)client.get(server.url("/never")); }));
    until([&] { return server.waiting.load(base::relaxed) == 5; });
    for (int i = 0; i < 4; ++i) askers[static_cast<std::size_t>(i)].cancel();
    until([&] { return server.gone.load(base::relaxed) == 4; });
    EXPECT_EQ(client.get(server.url("/")).status, 200);
    for (auto& a : askers) {
      a.cancel();
      EXPECT_THROW(a.join(), weft::task_cancelled);
    }
  });
}

// req: IO-2
TEST(Curl, a_scope_that_is_cancelled_ends_the_driver_in_the_middle) {
  with_sockets([] {
    web_server server;
    auto asker = weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(server.listener, s, [&](net::tcp_stream c) { server.answer(c); }); });
      const http::client client(s);
      auto a = weft::spawn([client, &server] { return code_of([&] { (void)client.get(server.url("/never")); }); });
      until([&] { return server.waiting.load(base::relaxed) == 1; });
      s.cancel();
      return a;
    });
    EXPECT_EQ(asker.join(), CURLE_ABORTED_BY_CALLBACK);
  });
}

}  // namespace
