// An HTTPS client: prints what some targets of a server are, all asked for over one connection.
//
//   https_client example.org 443 /
//   https_client --trust chain.pem localhost 8443 /a /b
#include <weft/asio.hpp>
#include <weft/fs.hpp>
#include <weft/net.hpp>
#include <weft/weft.hpp>

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

namespace http = boost::beast::http;
namespace net = weft::net;
using namespace std::chrono_literals;

namespace {

net::tcp_stream connect(const std::string& host, const std::string& port) {
  std::error_code why;
  for (const net::endpoint& at : net::resolve(host, port)) {
    net::tcp_stream s = net::tcp_stream::connect_until(std::chrono::steady_clock::now() + 5s, at, why);
    if (!why) return s;
  }
  throw std::system_error(why, "connect to " + host);
}

void ask(const weft::tls_context& context, const std::string& host, const std::string& port, char** targets) {
  weft::tls_stream tls(connect(host, port), context);
  tls.next_layer().expires_after(10s);  // each read and write
  tls.handshake(weft::tls_client{host});
  weft::asio_stream stream(std::move(tls));
  boost::beast::flat_buffer buffer;
  for (; *targets != nullptr; ++targets) {
    http::request<http::empty_body> question(http::verb::get, *targets, 11);
    question.set(http::field::host, host);
    question.keep_alive(targets[1] != nullptr);
    http::write(stream, question);
    http::response<http::string_body> answer;
    http::read(stream, buffer, answer);
    std::printf("%u\n%s", answer.result_int(), answer.body().c_str());
  }
  stream.next_layer().shutdown();
}

}  // namespace

int main(int argc, char** argv) try {
  char** arguments = argv + 1;
  const char* trusted = nullptr;
  if (argc > 2 && std::strcmp(argv[1], "--trust") == 0) {
    trusted = argv[2];
    arguments += 2;
  }
  if (argv + argc - arguments < 3) {
    std::fprintf(stderr, "usage: https_client [--trust CERTIFICATES.pem] HOST PORT TARGET...\n");
    return 2;
  }
  return weft::run([&] {
    auto context = weft::tls_context::client();
    if (trusted != nullptr) context.trust(weft::fs::read_file(trusted));
    ask(context, arguments[0], arguments[1], arguments + 2);
  });
} catch (const std::exception& e) {
  std::fprintf(stderr, "https_client: %s\n", e.what());
  return 1;
}
