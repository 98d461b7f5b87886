// An HTTPS server: Boost.Beast reads and writes HTTP on Weft's TLS streams, one task per connection. SIGINT and SIGTERM end
// it: it accepts no more, and gives the connections that are left a second.
//
//   openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out chain.pem
//     -subj /CN=localhost -addext subjectAltName=DNS:localhost
//   https_server 8443 chain.pem key.pem
#include <weft/asio.hpp>
#include <weft/net.hpp>
#include <weft/weft.hpp>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace http = boost::beast::http;
namespace net = weft::net;
using namespace std::chrono_literals;

namespace {

http::response<http::string_body> answer_to(const http::request<http::string_body>& question) {
  http::response<http::string_body> answer(http::status::ok, question.version());
  answer.set(http::field::content_type, "text/plain");
  answer.body() = "You asked for " + std::string(question.target()) + "\n";
  answer.keep_alive(question.keep_alive());
  answer.prepare_payload();
  return answer;
}

void serve_one(net::tcp_stream connection, const weft::tls_context& context) {
  connection.expires_after(30s);  // each read and write
  weft::asio_stream stream(weft::tls_stream(std::move(connection), context));
  stream.next_layer().handshake(weft::tls_server{});
  boost::beast::flat_buffer buffer;
  for (bool is_alive = true; is_alive;) {
    http::request<http::string_body> question;
    boost::system::error_code why;
    http::read(stream, buffer, question, why);
    if (why) break;  // the client has ended, or sends nonsense
    const auto answer = answer_to(question);
    http::write(stream, answer);
    is_alive = answer.keep_alive();
  }
  stream.next_layer().shutdown();
}

// A descriptor that becomes readable when one of the two signals comes. To be called before there are other threads,
// which inherit that the signals are blocked.
int end_signals() {
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  sigprocmask(SIG_BLOCK, &both, nullptr);
  return signalfd(-1, &both, SFD_CLOEXEC);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: https_server PORT CHAIN.pem KEY.pem\n");
    return 2;
  }
  const int signals = end_signals();
  const auto context = weft::tls_context::server(argv[2], argv[3]);
  return weft::run([&] {
    net::tcp_listener listener(net::endpoint::any(std::stoi(argv[1])));
    std::printf("port %u\n", unsigned{listener.local_endpoint().port()});
    std::fflush(stdout);
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] {
        weft::wait_readable(signals);
        listener.close();  // serve() returns
        s.cancel_after(1s);
      });
      net::serve(listener, s, weft::with_std_errors([&](net::tcp_stream c) { serve_one(std::move(c), context); }));
    });
    std::printf("end\n");
  });
} catch (const std::exception& e) {
  std::fprintf(stderr, "https_server: %s\n", e.what());
  return 1;
}
