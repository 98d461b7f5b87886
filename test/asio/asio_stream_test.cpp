// Weft's streams under Asio's functions and under asio::ssl::stream, and that against tls_stream.
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/stream_traits.hpp>

#include <memory>
#include <string>
#include <vector>

#include "asio/tls.hpp"
#include <weft/asio.hpp>

namespace {

using namespace support::usual;
using namespace support;
namespace asio = boost::asio;
using boost::system::error_code;
using plain = weft::asio_stream<net::tcp_stream>;
using ssl_stream = asio::ssl::stream<plain>;

static_assert(boost::beast::is_sync_stream<plain>::value);
static_assert(boost::beast::is_sync_stream<weft::asio_stream<tls&>>::value);
static_assert(std::same_as<boost::beast::lowest_layer_type<ssl_stream>, net::tcp_stream>);
static_assert(std::same_as<boost::beast::lowest_layer_type<weft::asio_stream<tls>>, net::tcp_stream>);

struct plain_pair {
  plain client, server;
};
plain_pair connected_plain_pair() {
  auto [c, s] = connected_pair();
  return {plain(std::move(c)), plain(std::move(s))};
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
asio::ssl::context& client_context() {
  static asio::ssl::context context(asio::ssl::context::tls_client);
  static const bool is_set_up = [] {
    context.add_certificate_authority(asio::buffer(contexts().ca.pem()));
    context.set_verify_mode(asio::ssl::verify_peer);
    context.set_verify_callback(asio::ssl::host_name_verification(test_host));
    return true;
  }();
  (void)is_set_up;
  return context;
}

// Like with_sockets, after everything exists that is made once and kept: also the descriptors of the context that nobody
// runs, which the timers of an asio::ssl::stream open.
template <class Body>
void with_asio(Body body) {
  (void)server_context();
  (void)client_context();
  const asio::steady_timer timer(weft::detail::idle_context());
  with_sockets(std::move(body));
}

template <class Stream>
std::string ask(Stream& s, const std::string& question) {
  asio::write(s, asio::buffer(question));
  std::string answer(question.size(), '\0');
  asio::read(s, asio::buffer(answer));
  return answer;
}
template <class Stream>
error_code echo(Stream& s) {
  error_code why;
  char room[3000];
  while (!why) {
    const std::size_t n = s.read_some(asio::buffer(room), why);
    if (!why) asio::write(s, asio::buffer(room, n), why);
  }
  return why;
}

// req: IO-12
TEST(AsioStream, reads_and_writes_sequences_of_buffers) {
  with_asio([] {
    auto [client, server] = connected_plain_pair();
    const std::string sent = pattern(100'000);
    std::vector<asio::const_buffer> parts;
    for (std::size_t at = 0; at < sent.size(); at += 100) {
      parts.emplace_back(asio::buffer(sent.data() + at, 100));
      parts.emplace_back();
    }
    EXPECT_EQ(client.write_some(parts), 1600u) << "sixteen buffers that are not empty go at a time";
    auto writer = weft::spawn([&, end = &client] {
      asio::write(*end, std::vector<asio::const_buffer>(parts.begin() + 32, parts.end()));
      end->next_layer().shutdown(net::half::write);
    });
    std::string got(sent.size(), '\0');
    const std::vector<asio::mutable_buffer> into{asio::buffer(got.data(), 7), {}, asio::buffer(got) + 7};
    EXPECT_EQ(asio::read(server, into), sent.size());
    EXPECT_TRUE(got == sent);
    writer.join();
    error_code why;
    EXPECT_EQ(server.read_some(asio::mutable_buffer(), why), 0u);
    EXPECT_FALSE(why) << "a read of nothing is not the end";
    EXPECT_EQ(server.read_some(asio::buffer(got), why), 0u);
    EXPECT_EQ(why, asio::error::eof);
  });
}

TEST(AsioStream, errors_are_those_of_asio) {
  EXPECT_FALSE(weft::asio_error({}));
  EXPECT_EQ(weft::asio_error(std::make_error_code(std::errc::connection_reset)), asio::error::connection_reset);
  EXPECT_EQ(weft::asio_error({ECONNRESET, std::system_category()}), asio::error::connection_reset);
  EXPECT_EQ(weft::asio_error(weft::io_errc::stream_ended), asio::error::eof);
  EXPECT_EQ(weft::asio_error(weft::tls_errc::truncated), asio::ssl::error::stream_truncated);
  const std::error_code other(X509_V_ERR_CERT_HAS_EXPIRED, weft::certificate_category());
  EXPECT_EQ(static_cast<std::error_code>(weft::asio_error(other)), other) << "any code gets through, there and back";

  with_asio([] {
    auto [client, server] = connected_plain_pair();
    error_code why;
    char room[8];
    boost::beast::get_lowest_layer(client).expires_after(1ms);
    (void)client.read_some(asio::buffer(room), why);
    EXPECT_EQ(why, asio::error::timed_out);
    client.next_layer().expires_never();
    auto reader = weft::spawn([&, end = &client] {
      error_code of_reader;
      (void)end->read_some(asio::buffer(room), of_reader);
      return of_reader;
    });
    weft::yield();
    client.close();
    EXPECT_EQ(reader.join(), asio::error::operation_aborted);
    EXPECT_FALSE(client.is_open());

    const std::string at = server.next_layer().remote_endpoint().to_string();
    try {
      (void)server.read_some(asio::buffer(room));
      ADD_FAILURE() << "the other side is closed";
    } catch (const boost::system::system_error& e) {
      EXPECT_EQ(std::string(e.what()).rfind("read from " + at, 0), 0u) << e.what();
      EXPECT_EQ(e.code(), asio::error::eof);
    }
  });
}

TEST(AsioStream, errors_of_boost_can_be_made_those_of_std) {
  const auto fails =
      weft::with_std_errors([](int) -> int { throw boost::system::system_error(asio::error::eof, "read"); });
  auto copy = fails;
  try {
    (void)copy(1);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code(), static_cast<std::error_code>(error_code(asio::error::eof)));
    EXPECT_EQ(std::string(e.what()), "read: " + e.code().message());
  }
  auto works = weft::with_std_errors([p = std::make_unique<int>(3)](int x) { return *p + x; });
  EXPECT_EQ(works(4), 7);
}

TEST(AsioStream, its_executor_starts_no_threads) {
  with_asio([] {
    auto [client, server] = connected_plain_pair();
    const std::size_t before = threads();
    auto on_other = client.get_executor();
    EXPECT_EQ(on_other, server.get_executor());
    EXPECT_EQ(threads(), before);
  });
}

// req: IO-12
TEST(AsioSsl, a_handshake_and_bytes_both_ways) {
  with_asio([] {
    auto [c, s] = connected_plain_pair();
    ssl_stream client(std::move(c), client_context());
    ssl_stream server(std::move(s), server_context());
    auto answering = weft::spawn([&] {
      server.handshake(ssl_stream::server);
      EXPECT_EQ(echo(server), asio::error::eof) << "the client has said that it ends";
      error_code why;
      server.shutdown(why);
    });
    client.handshake(ssl_stream::client);
    EXPECT_EQ(ask(client, "hello"), "hello");
    const std::string much = pattern(100'000);
    EXPECT_TRUE(ask(client, much) == much);
    client.shutdown();
    answering.join();
  });
}

TEST(AsioSsl, talks_with_a_tls_stream_as_client_and_as_server) {
  with_asio([] {
    auto [c, s] = connected_plain_pair();
    ssl_stream client(std::move(c), client_context());
    const tls server(std::move(s.next_layer()), server_context());
    auto answering = weft::spawn([&] {
      server.handshake(tls_server{});
      weft::asio_stream<const tls&> end(server);
      EXPECT_EQ(echo(end), asio::error::eof);
      server.shutdown();
    });
    client.handshake(ssl_stream::client);
    EXPECT_EQ(ask(client, pattern(50'000)), pattern(50'000));
    client.shutdown();
    answering.join();

    auto [c2, s2] = connected_plain_pair();
    weft::asio_stream<tls> client2(tls(std::move(c2.next_layer()), contexts().client));
    ssl_stream server2(std::move(s2), server_context());
    auto answering2 = weft::spawn([&] {
      server2.handshake(ssl_stream::server);
      EXPECT_EQ(echo(server2), asio::ssl::error::stream_truncated);
    });
    client2.next_layer().handshake(tls_client{test_host});
    EXPECT_EQ(ask(client2, pattern(50'000)), pattern(50'000));
    client2.close();
    answering2.join();
  });
}

TEST(AsioSsl, a_task_in_a_handshake_or_a_read_can_be_cancelled) {
  with_asio([] {
    auto [c, s] = connected_plain_pair();
    ssl_stream client(std::move(c), client_context());
    auto t = weft::spawn([&] { EXPECT_TRUE(throws_cancelled([&] { client.handshake(ssl_stream::client); })); });
    char room[512];
    (void)s.read_some(asio::buffer(room));  // its first message; it waits for the answer
    t.cancel();
    t.wait();
    auto u = weft::spawn([&] { EXPECT_TRUE(throws_cancelled([&] { asio::read(s, asio::buffer(room)); })); });
    weft::yield();
    u.cancel();
    u.wait();
  });
}

// The server's reader has to send the refusal, because nobody writes there.
TEST(AsioSsl, a_tls_stream_refuses_renegotiation) {
  with_asio([] {
    auto [c, s] = connected_plain_pair();
    ssl_stream client(std::move(c), client_context());
    SSL_set_max_proto_version(client.native_handle(), TLS1_2_VERSION);
    const tls server(std::move(s.next_layer()), server_context());
    auto answering = weft::spawn([&] {
      server.handshake(tls_server{});
      char room[8];
      return error_of([&] {
        while (server.read_some(room) != 0) {}
      });
    });
    client.handshake(ssl_stream::client);
    EXPECT_EQ(SSL_renegotiate(client.native_handle()), 1);
    error_code why;
    client.handshake(ssl_stream::client, why);
    EXPECT_EQ(ERR_GET_REASON(static_cast<unsigned>(why.value())), SSL_R_NO_RENEGOTIATION) << why.message();
    client.next_layer().close();
    EXPECT_TRUE(answering.join());
  });
}

}  // namespace
