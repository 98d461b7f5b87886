// Boost.Beast on Weft's streams: HTTP and WebSocket, plain, over asio::ssl::stream and over tls_stream.
#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <string>

#include "asio/tls.hpp"
#include <weft/asio.hpp>

namespace {

using namespace support::usual;
using namespace support;
namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;
using boost::system::error_code;

using plain_stream = weft::asio_stream<net::tcp_stream>;
using ssl_stream = asio::ssl::stream<plain_stream>;
using tls_on_weft = weft::asio_stream<tls>;

// ---- the three kinds of streams --------------------------------------------------------------------------------------

template <class Stream>
Stream accepted(net::tcp_stream s);
template <class Stream>
Stream connected(net::tcp_stream s);

template <>
plain_stream accepted<plain_stream>(net::tcp_stream s) {
  return plain_stream(std::move(s));
}
template <>
plain_stream connected<plain_stream>(net::tcp_stream s) {
  return plain_stream(std::move(s));
}

asio::ssl::context& server_context() {
  static asio::ssl::context context(asio::ssl::context::tls_server);
  static const bool is_set_up = [] {
    const identity good = contexts().ca.issue(test_host);
    context.use_certificate_chain(asio::buffer(good.certificate));
    context.use_private_key(asio::buffer(good.key), asio::ssl::context::pem);
    return true;
  }();
  (void)is_set_up;
  return context;
}
template <>
ssl_stream accepted<ssl_stream>(net::tcp_stream s) {
  ssl_stream stream(plain_stream(std::move(s)), server_context());
  stream.handshake(ssl_stream::server);
  return stream;
}
template <>
ssl_stream connected<ssl_stream>(net::tcp_stream s) {
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.add_certificate_authority(asio::buffer(contexts().ca.pem()));
  context.set_verify_mode(asio::ssl::verify_peer);
  ssl_stream stream(plain_stream(std::move(s)), context);
  stream.handshake(ssl_stream::client);
  return stream;
}

template <>
tls_on_weft accepted<tls_on_weft>(net::tcp_stream s) {
  tls stream(std::move(s), contexts().server);
  stream.handshake(tls_server{});
  return tls_on_weft(std::move(stream));
}
template <>
tls_on_weft connected<tls_on_weft>(net::tcp_stream s) {
  tls stream(std::move(s), contexts().client);
  stream.handshake(tls_client{test_host});
  return tls_on_weft(std::move(stream));
}

// ---- servers ---------------------------------------------------------------------------------------------------------

// Answers every request with its target and body. Returns why it ended, and counts.
template <class Stream>
error_code answer_requests(Stream& stream, int& count) {
  beast::flat_buffer buffer;
  for (error_code why;; ++count) {
    http::request<http::string_body> question;
    http::read(stream, buffer, question, why);
    if (why) return why;
    http::response<http::string_body> answer(http::status::ok, question.version());
    answer.body() = std::string(question.target()) + " " + question.body();
    answer.keep_alive(question.keep_alive());
    answer.prepare_payload();
    http::write(stream, answer);
    if (!answer.keep_alive()) return {};
  }
}

template <class Stream>
std::string ask(Stream& stream, beast::flat_buffer& buffer, const std::string& target, const std::string& body,
                bool keep_alive = true) {
  http::request<http::string_body> question(http::verb::post, target, 11);
  question.set(http::field::host, test_host);
  question.body() = body;
  question.keep_alive(keep_alive);
  question.prepare_payload();
  http::write(stream, question);
  http::response<http::string_body> answer;
  http::read(stream, buffer, answer);
  EXPECT_EQ(answer.result(), http::status::ok);
  return answer.body();
}

// Sends everything back as it came, until the client closes.
template <class Stream>
error_code echo_messages(websocket::stream<Stream, false>& ws) {
  beast::flat_buffer buffer;
  for (error_code why;;) {
    ws.read(buffer, why);
    if (why) return why;
    ws.text(ws.got_text());
    ws.write(buffer.data());
    buffer.clear();
  }
}

// ---- tests -----------------------------------------------------------------------------------------------------------

template <class Stream>
class Beast : public testing::Test {
 protected:
  // Runs both ends as tasks at each worker count. Descriptors that exist once are made before: those of the context
  // that nobody runs, which a timer of a WebSocket opens.
  template <class Server, class Client>
  void between(Server server, Client client) {
    (void)server_context();
    const asio::steady_timer timer(weft::detail::idle_context());
    with_tls([&] {
      auto [c, s] = connected_pair();
      auto serving = weft::spawn([&] {
        Stream stream = accepted<Stream>(std::move(s));
        server(stream);
      });
      {
        Stream stream = connected<Stream>(std::move(c));
        client(stream);
      }
      serving.join();
    });
  }
};
using kinds = testing::Types<plain_stream, ssl_stream, tls_on_weft>;
TYPED_TEST_SUITE(Beast, kinds);

// req: IO-12
TYPED_TEST(Beast, http_keeps_the_connection_alive_for_several_requests) {
  this->between(
      [](TypeParam& stream) {
        int count = 0;
        const error_code why = answer_requests(stream, count);
        EXPECT_FALSE(why) << why.message();
        EXPECT_EQ(count, 3) << "the last request ended the loop";
      },
      [](TypeParam& stream) {
        beast::flat_buffer buffer;
        EXPECT_EQ(ask(stream, buffer, "/a", "one"), "/a one");
        EXPECT_EQ(ask(stream, buffer, "/b", ""), "/b ");
        const std::string large = pattern(200'000);
        EXPECT_TRUE(ask(stream, buffer, "/c", large) == "/c " + large);
        EXPECT_EQ(ask(stream, buffer, "/d", "last", false), "/d last");
      });
}

TYPED_TEST(Beast, http_answers_requests_that_come_in_one_go) {
  this->between(
      [](TypeParam& stream) {
        int count = 0;
        (void)answer_requests(stream, count);
      },
      [](TypeParam& stream) {
        const std::string both =
            "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        asio::write(stream, asio::buffer(both));
        beast::flat_buffer buffer;
        for (const char* expected : {"/1 ", "/2 "}) {
          http::response<http::string_body> answer;
          http::read(stream, buffer, answer);
          EXPECT_EQ(answer.body(), expected);
        }
      });
}

TYPED_TEST(Beast, garbage_is_an_error_of_the_parser) {
  this->between(
      [](TypeParam& stream) {
        int count = 0;
        const error_code why = answer_requests(stream, count);
        EXPECT_EQ(why.category(), make_error_code(http::error::bad_method).category()) << why.message();
        EXPECT_EQ(count, 0);
      },
      [](TypeParam& stream) { asio::write(stream, asio::buffer(std::string("\x01\x02\x03 nonsense\r\n\r\n"))); });
}

// req: IO-12
TYPED_TEST(Beast, websocket_carries_text_and_bytes_both_ways_and_closes) {
  this->between(
      [](TypeParam& stream) {
        websocket::stream<TypeParam, false> ws(std::move(stream));
        ws.accept();
        ws.write(asio::buffer(std::string("welcome")));
        EXPECT_EQ(echo_messages(ws), websocket::error::closed);
        EXPECT_EQ(ws.reason().code, websocket::close_code::normal);
        EXPECT_FALSE(beast::get_lowest_layer(ws).is_open()) << "torn down";
      },
      [](TypeParam& stream) {
        websocket::stream<TypeParam, false> ws(std::move(stream));
        ws.handshake(test_host, "/");
        beast::flat_buffer buffer;
        const auto next = [&] {
          buffer.clear();
          ws.read(buffer);
          return beast::buffers_to_string(buffer.data());
        };
        EXPECT_EQ(next(), "welcome");
        for (const bool is_text : {true, false})
          for (const std::size_t size : {0, 1, 125, 126, 70'000}) {
            const std::string message = pattern(size);
            ws.text(is_text);
            ws.write(asio::buffer(message));
            EXPECT_TRUE(next() == message) << size;
            EXPECT_EQ(ws.got_text(), is_text);
          }
        ws.close(websocket::close_code::normal);
        EXPECT_FALSE(ws.is_open());
        EXPECT_FALSE(beast::get_lowest_layer(ws).is_open()) << "torn down";
      });
}

TYPED_TEST(Beast, a_websocket_can_be_closed_by_the_server) {
  this->between(
      [](TypeParam& stream) {
        websocket::stream<TypeParam, false> ws(std::move(stream));
        ws.accept();
        ws.close(websocket::close_code::going_away);
        EXPECT_FALSE(beast::get_lowest_layer(ws).is_open());
      },
      [](TypeParam& stream) {
        websocket::stream<TypeParam, false> ws(std::move(stream));
        ws.handshake(test_host, "/");
        beast::flat_buffer buffer;
        error_code why;
        ws.read(buffer, why);
        EXPECT_EQ(why, websocket::error::closed) << why.message();
        EXPECT_EQ(ws.reason().code, websocket::close_code::going_away);
      });
}

TYPED_TEST(Beast, a_task_in_a_websocket_read_can_be_cancelled) {
  this->between(
      [](TypeParam& stream) {
        websocket::stream<TypeParam, false> ws(std::move(stream));
        ws.accept();
        auto reader = weft::spawn([&] {
          beast::flat_buffer buffer;
          EXPECT_TRUE(throws_cancelled([&] { ws.read(buffer); }));
        });
        weft::yield();
        reader.cancel();
        reader.wait();
        beast::close_socket(beast::get_lowest_layer(ws));
      },
      [](TypeParam& stream) {
        websocket::stream<TypeParam, false> ws(std::move(stream));
        ws.handshake(test_host, "/");
        beast::flat_buffer buffer;
        error_code why;
        ws.read(buffer, why);
        EXPECT_TRUE(why) << "the connection is gone";
      });
}

}  // namespace
