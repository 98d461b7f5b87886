// TLS streams: handshakes that succeed and that must not, bytes, ends, and one reader beside one writer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "asio/tls.hpp"

namespace {

using namespace support::usual;
using namespace support;

std::error_code certificate_error(int number) { return {number, weft::certificate_category()}; }

// A transport that goes on only as far as a test lets it.
struct steering {
  base::atomic<bool> holds_writes{false};
  base::atomic<int> held_writers{0};
  base::atomic<bool> is_out_of_memory{false};
  base::atomic<int> bad_allocs{0};
  base::atomic<std::size_t> sent_at_once{0};
  base::atomic<std::size_t> readable{SIZE_MAX};
  base::atomic<int> held_readers{0};
};
struct steered_stream {
  std::size_t read_some(weft::mutable_buffer to, std::error_code& why, std::source_location where) const {
    if (by->readable.load() == 0) {
      by->held_readers.fetch_add(1);
      while (by->readable.load() == 0) weft::sleep_for(1ms);
    }
    const std::size_t most = by->readable.load();
    const std::size_t n = socket.read_some({to.data(), std::min(to.size(), most)}, why, where);
    if (most != SIZE_MAX) by->readable.fetch_sub(n);
    return n;
  }
  std::size_t write_some(weft::const_buffer from, std::error_code& why, std::source_location where) const {
    if (by->holds_writes.load()) {
      by->held_writers.fetch_add(1);
      while (by->holds_writes.load()) weft::sleep_for(1ms);
    }
    return socket.write_some(from, why, where);
  }
  std::size_t write_some_until(std::chrono::steady_clock::time_point when, weft::const_buffer from,
                               std::error_code& why, std::source_location where) const {
    if (by->is_out_of_memory.load()) {
      by->bad_allocs.fetch_add(1);
      throw std::bad_alloc();
    }
    why = std::make_error_code(std::errc::timed_out);
    const std::size_t n = by->holds_writes.load() ? 0 : socket.write_some_until(when, from, why, where);
    by->sent_at_once.fetch_add(n);
    return n;
  }
  [[nodiscard]] auto& record() const { return socket.record(); }
  net::tcp_stream socket;
  steering* by;
};
using steered = weft::tls_stream<steered_stream>;
struct steered_tls_pair {
  steered client;
  tls server;
};
// The client's end is steered.
steered_tls_pair steered_pair(steering& by, const weft::tls_context& server_context = contexts().server) {
  auto [c, s] = connected_pair();
  steered_tls_pair p{steered(steered_stream{std::move(c), &by}, contexts().client), tls(std::move(s), server_context)};
  auto server = weft::spawn([&] { p.server.handshake(tls_server{}); });
  p.client.handshake(tls_client{test_host});
  server.join();
  return p;
}

// How a client that trusts the authority finds a server that shows this.
std::error_code client_meets(const identity& server, const tls_client& as) {
  weft::tls_context context;
  context.use_certificate(server.certificate, server.key);
  auto [c, s] = connected_pair();
  const tls client(std::move(c), contexts().client);
  const tls other(std::move(s), context);
  auto answering = weft::spawn([&] { return error_of([&] { other.handshake(tls_server{}); }); });
  const std::error_code why = error_of([&] { client.handshake(as); });
  client.close();
  // In TLS 1.3 the server may have finished before it learns that the client refuses.
  (void)answering.join();
  return why;
}

// req: IO-12
TEST(Tls, what_one_end_writes_the_other_reads) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    client.write_all("hello");
    char room[64];
    EXPECT_EQ(std::string(room, server.read_some(room)), "hello");
    const weft::const_buffer parts[] = {"wo", "", "r", "ld"};
    EXPECT_EQ(server.write_some(std::span<const weft::const_buffer>(parts)), 5u) << "one record";
    char a[2], b[3];
    const weft::mutable_buffer into[] = {a, b};
    EXPECT_EQ(client.read_some(std::span<const weft::mutable_buffer>(into)), 5u);
    EXPECT_EQ(std::string(a, 2) + std::string(b, 3), "world");
    EXPECT_EQ(SSL_version(client.native_handle()), TLS1_3_VERSION);
    EXPECT_STREQ(SSL_get_servername(server.native_handle(), TLSEXT_NAMETYPE_host_name), test_host);
  });
}

// req: IO-12
TEST(Tls, one_task_reads_while_another_writes_at_both_ends) {
  with_tls([] {
    const std::string sent = pattern(scaled(4) * (std::size_t{1} << 20));
    auto [client, server] = connected_tls_pair();
    std::vector<weft::join_handle<void>> tasks;
    for (const tls* end : {&client, &server}) {
      tasks.push_back(weft::spawn([&sent, end] {
        end->write_all(sent);
        end->shutdown();
      }));
      tasks.push_back(weft::spawn([&sent, end] { EXPECT_TRUE(read_to_end(*end) == sent); }));
    }
    for (auto& t : tasks) t.join();
  });
}

// The server reads nothing, so the client's writer soon waits in the middle of a record.
TEST(Tls, a_reader_goes_on_while_the_writer_waits_for_the_other_side) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    auto writer = weft::spawn([end = &client] {
      const std::string much = pattern(1 << 20);
      return error_of([&] {
        for (;;) end->write_all(much);
      });
    });
    for (int i = 0; i < 10; ++i) {
      weft::sleep_for(1ms);
      server.write_all("ping");
      char room[4];
      client.read_exactly(room);
      EXPECT_EQ(std::string(room, 4), "ping");
    }
    client.close();
    EXPECT_EQ(writer.join(), std::errc::operation_canceled);
  });
}

TEST(Tls, several_writers_and_readers_take_turns) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    constexpr std::size_t each = 100'000;
    base::atomic<std::size_t> got{0};
    std::vector<weft::join_handle<void>> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(weft::spawn([&client] { client.write_all(std::string(each, 'x')); }));
      tasks.push_back(weft::spawn([&, end = &server] {
        char room[1000];
        while (got.load() < 3 * each) {
          const std::size_t n = end->read_some(room);
          EXPECT_EQ(std::string(room, n), std::string(n, 'x'));
          if (got.fetch_add(n) + n == 3 * each) client.shutdown();  // the readers that wait
        }
      }));
    }
    for (auto& t : tasks) t.join();
    EXPECT_EQ(got.load(), 3 * each);
  });
}

TEST(Tls, an_end_that_is_shut_down_still_reads_and_writes_no_more) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    client.write_all("ask");
    client.shutdown();
    client.shutdown();  // harmless
    EXPECT_EQ(read_to_end(server), "ask");
    EXPECT_EQ(error_of([&] { client.write_all("more"); }), std::errc::broken_pipe);
    server.write_all("answer");
    server.shutdown();
    server.close();
    EXPECT_EQ(read_to_end(client), "answer");
    EXPECT_EQ(read_to_end(client), "") << "it stays at its end";
  });
}

// req: IO-12
TEST(Tls, an_end_without_close_notify_is_told_as_truncation) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    server.write_all("some of it");
    server.close();
    char room[64];
    EXPECT_EQ(std::string(room, client.read_some(room)), "some of it");
    EXPECT_EQ(error_of([&] { (void)client.read_some(room); }), weft::tls_errc::truncated);
    EXPECT_EQ(error_of([&] { (void)client.read_some(room); }), weft::tls_errc::truncated) << "every time";
  });
}

TEST(Tls, a_server_for_another_host_is_refused) {
  with_tls([] {
    const identity server = contexts().ca.issue("other.test");
    EXPECT_EQ(client_meets(server, {test_host}), certificate_error(X509_V_ERR_HOSTNAME_MISMATCH));
    EXPECT_EQ(client_meets(server, {"127.0.0.2"}), certificate_error(X509_V_ERR_IP_ADDRESS_MISMATCH));
    EXPECT_EQ(client_meets(server, {"other.test"}), std::error_code());
    EXPECT_EQ(client_meets(server, {"other.test."}), std::error_code());
    EXPECT_EQ(client_meets(server, {"127.0.0.1"}), std::error_code());
    EXPECT_EQ(client_meets(server, {.host = test_host, .verify = false}), std::error_code());
  });
}

TEST(Tls, a_certificate_that_is_not_valid_now_is_refused) {
  with_tls([] {
    constexpr long day = authority::day;
    const auto& ca = contexts().ca;
    EXPECT_EQ(client_meets(ca.issue(test_host, -2 * day, -day), {test_host}),
              certificate_error(X509_V_ERR_CERT_HAS_EXPIRED));
    EXPECT_EQ(client_meets(ca.issue(test_host, day, 2 * day), {test_host}),
              certificate_error(X509_V_ERR_CERT_NOT_YET_VALID));
  });
}

TEST(Tls, a_certificate_of_an_unknown_authority_is_refused) {
  with_tls([] {
    const authority other;
    const std::error_code why = client_meets(other.issue(test_host), {test_host});
    EXPECT_EQ(why.category(), weft::certificate_category()) << why.message();
  });
}

TEST(Tls, names_that_cannot_be_verified_are_refused_before_anything_is_sent) {
  with_tls([] {
    auto [client, server] = new_tls_pair();
    EXPECT_EQ(error_of([&] { client.handshake(tls_client{""}); }), std::errc::invalid_argument);
    EXPECT_EQ(error_of([&] { client.handshake(tls_client{std::string("server.test\0.evil", 17)}); }),
              std::errc::invalid_argument);
    EXPECT_NE(error_of([&] { client.handshake(tls_client{std::string(300, 'a')}); }), std::error_code());
  });
}

TEST(Tls, garbage_instead_of_a_handshake_is_an_error_at_either_end) {
  with_tls([] {
    for (const std::string& garbage : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\xff'),
                                       std::string("\x16\x03\x01\xff\xff", 5) + pattern(70'000)}) {
      for (const bool as_client : {true, false}) {
        auto [a, b] = connected_pair();
        const tls end(std::move(a), as_client ? contexts().client : contexts().server);
        auto other = weft::spawn([&garbage, s = std::move(b)] {
          std::error_code why;
          (void)s.write_all(garbage, why);
          s.shutdown(net::half::write, why);
          char room[4096];
          while (s.read_some(room, why) != 0) {}
        });
        const std::error_code why =
            error_of([&] { as_client ? end.handshake(tls_client{test_host}) : end.handshake(tls_server{}); });
        EXPECT_EQ(why.category(), weft::tls_category()) << why.message();
        char room[8];
        EXPECT_NE(error_of([&] { (void)end.read_some(room); }), std::error_code()) << "it stays broken";
        end.close();
        other.join();
      }
    }
  });
}

TEST(Tls, a_record_that_was_changed_on_the_way_is_an_error) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    client.next_layer().write_all(std::string("\x17\x03\x03\x00\x20", 5) + std::string(32, 'x'));
    char room[8];
    std::error_code why;
    EXPECT_EQ(server.read_some(room, why), 0u);
    EXPECT_EQ(why.category(), weft::tls_category()) << why.message();
    EXPECT_EQ(error_of([&] { (void)client.read_exactly(room); }).category(), weft::tls_category()) << "it was told";
  });
}

TEST(Tls, without_a_handshake_there_is_no_connection) {
  with_tls([] {
    auto [client, server] = new_tls_pair();
    char room[8];
    EXPECT_EQ(error_of([&] { (void)client.read_some(room); }), std::errc::not_connected);
    EXPECT_EQ(error_of([&] { client.write_all("x"); }), std::errc::not_connected);
    client.shutdown();  // there is nobody to tell
    const tls moved = std::move(client);
    EXPECT_THROW((void)client.read_some(room), weft::usage_error);  // NOLINT(bugprone-use-after-move)
  });
}

TEST(Tls, keys_are_updated_in_both_directions) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    char room[4];
    for (int i = 0; i < 5; ++i)
      for (const auto& [from, to] : {std::pair(&client, &server), std::pair(&server, &client)}) {
        EXPECT_EQ(SSL_key_update(from->native_handle(), SSL_KEY_UPDATE_REQUESTED), 1);
        from->write_all("ping");
        to->read_exactly(room);
        EXPECT_EQ(std::string(room, 4), "ping");
        to->write_all("pong");  // the answer to the update goes first
        from->read_exactly(room);
        EXPECT_EQ(std::string(room, 4), "pong");
      }
  });
}

TEST(Tls, a_handshake_can_be_cancelled) {
  with_tls([] {
    for (const bool as_client : {true, false}) {
      auto [a, b] = connected_pair();
      const tls end(std::move(a), as_client ? contexts().client : contexts().server);
      auto t = weft::spawn([&] {
        EXPECT_TRUE(throws_cancelled([&] {
          std::error_code why;
          as_client ? end.handshake(tls_client{test_host}, why) : end.handshake(tls_server{}, why);
        }));
      });
      char room[512];
      if (as_client) (void)b.read_some(room);  // the client has sent its first message, and waits
      t.cancel();
      t.wait();
    }
  });
}

// The reader is cancelled again and again, often between two parts of a record.
TEST(Tls, a_cancelled_read_has_lost_nothing) {
  with_tls([] {
    const std::string sent = pattern(200'000);
    auto [client, server] = connected_tls_pair();
    auto writer = weft::spawn([&sent, end = &client] {
      for (std::size_t at = 0; at < sent.size(); at += 5'000) {
        end->write_all(std::string_view(sent).substr(at, 5'000));
        weft::yield();
      }
      end->shutdown();
    });
    std::string got;
    for (bool is_over = false; !is_over;) {
      auto reader = weft::spawn([&, end = &server] {
        char room[777];
        while (const std::size_t n = end->read_some(room)) got.append(room, n);
        is_over = true;
      });
      weft::yield();
      reader.cancel();
      reader.wait();
    }
    writer.join();
    EXPECT_TRUE(got == sent);
  });
}

TEST(Tls, time_limits_are_those_of_the_transport) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    client.next_layer().expires_after(1ms);
    char room[8];
    EXPECT_EQ(error_of([&] { (void)client.read_some(room); }), std::errc::timed_out);
    client.next_layer().expires_never();
    server.write_all("late");
    EXPECT_EQ(client.read_some(room), 4u) << "the stream stays usable";
  });
}

// The other side does not read, so a record is left half sent. Whoever wrote it cannot know that it may still arrive.
TEST(Tls, after_a_write_that_timed_out_nothing_is_written_any_more) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    const std::string much = pattern(1 << 20);
    std::size_t written = 0;
    client.next_layer().expires_after(5ms);
    std::error_code why;
    while (!why) written += client.write_some(much, why);
    EXPECT_EQ(why, std::errc::timed_out);
    client.next_layer().expires_never();
    auto reader = weft::spawn([end = &server] { return read_to_end(*end).size(); });
    EXPECT_EQ(error_of([&] { client.write_all("again"); }), weft::tls_errc::unfinished_write);
    EXPECT_EQ(error_of([&] { (void)client.write_some("again"); }), weft::tls_errc::unfinished_write) << "every time";
    server.write_all("ping");
    char room[4];
    client.read_exactly(room);
    EXPECT_EQ(std::string(room, 4), "ping") << "reading goes on";
    client.shutdown();  // sends the rest of the record first
    EXPECT_EQ(reader.join(), written + weft::detail::tls_engine::record_size) << "it came, and came once";
  });
}

TEST(Tls, after_a_cancelled_write_nothing_is_written_any_more) {
  with_tls([] {
    steering by;
    auto [client, server] = steered_pair(by);
    by.holds_writes.store(true);
    auto writer = weft::spawn([end = &client] { end->write_all("once"); });
    until([&] { return by.held_writers.load() == 1; });
    writer.cancel();
    writer.wait();
    by.holds_writes.store(false);
    EXPECT_EQ(error_of([&] { client.write_all("once"); }), weft::tls_errc::unfinished_write);
    client.shutdown();
    EXPECT_EQ(read_to_end(server), "once");
  });
}

// OpenSSL answers an update of keys with the next write, or when the next update comes: so the client has to answer one.
void ping_with_two_updates(const tls& server, const steered& client) {
  char room[4];
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(SSL_key_update(server.native_handle(), SSL_KEY_UPDATE_REQUESTED), 1);
    server.write_all("ping");
    client.read_exactly(room);
    EXPECT_EQ(std::string(room, 4), "ping");
  }
}

// A reader has plaintext already when it finds that it should answer an update of keys.
TEST(Tls, a_reader_that_cannot_send_an_answer_loses_no_plaintext) {
  with_tls([] {
    steering by;
    auto [client, server] = steered_pair(by);
    char room[4];
    for (int i = 0; i < 3; ++i) {
      by.is_out_of_memory.store(true);
      ping_with_two_updates(server, client);
      EXPECT_GT(by.bad_allocs.exchange(0), 0);
      by.is_out_of_memory.store(false);
      client.write_all("pong");
      server.read_exactly(room);
      EXPECT_EQ(std::string(room, 4), "pong") << "the answer was sent, once";
    }
  });
}

TEST(Tls, what_one_reader_could_not_send_the_next_one_sends) {
  with_tls([] {
    steering by;
    auto [client, server] = steered_pair(by);
    char room[4];
    by.holds_writes.store(true);
    ping_with_two_updates(server, client);
    EXPECT_EQ(by.sent_at_once.load(), 0u);
    by.holds_writes.store(false);
    server.write_all("ping");
    client.read_exactly(room);
    EXPECT_GT(by.sent_at_once.load(), 0u) << "the answer to the update of keys";
    client.write_all("pong");
    server.read_exactly(room);
    EXPECT_EQ(std::string(room, 4), "pong");
  });
}

TEST(Tls, answers_that_nobody_takes_do_not_pile_up) {
  with_tls([] {
    steering by;
    auto [client, server] = steered_pair(by);
    by.holds_writes.store(true);
    std::error_code why;
    char room[1];
    std::size_t rounds = 0;
    for (; !why && rounds < 10'000; ++rounds) {
      EXPECT_EQ(SSL_key_update(server.native_handle(), SSL_KEY_UPDATE_REQUESTED), 1);
      server.write_all("x");
      (void)client.read_some(room, why);
    }
    ASSERT_EQ(why, std::errc::protocol_error);
    EXPECT_GT(rounds, 1'000u) << "some may wait";
    by.holds_writes.store(false);
    EXPECT_EQ(client.read_some(room, why), 0u) << "it sends what goes now";
    EXPECT_EQ(client.read_some(room, why), 1u) << why.message() << ": the plaintext is still there";
  });
}

// A server whose tickets are spread over several records, and a client that has got one and a half of them.
template <class Body>
void in_the_middle_of_a_ticket(Body body) {
  with_tls([&] {
    weft::tls_context context;
    const identity id = contexts().ca.issue(test_host);
    context.use_certificate(id.certificate, id.key);
    SSL_CTX_set_max_send_fragment(context.native_handle(), 512);
    const auto enlarge = [](SSL* s, void*) {
      static const std::string much(2000, 'x');
      return SSL_SESSION_set1_ticket_appdata(SSL_get_session(s), much.data(), much.size());
    };
    SSL_CTX_set_session_ticket_cb(context.native_handle(), enlarge, nullptr, nullptr);
    steering by;
    auto [client, server] = steered_pair(by, context);
    by.readable.store(800);
    auto reader = weft::spawn([end = &client] {
      char room[6];
      const std::size_t n = end->read_some(room);
      return std::string(room, n);
    });
    until([&] { return by.held_readers.load() == 1; });
    EXPECT_NE(SSL_in_init(client.native_handle()), 0);
    body(by, client, server, reader);
  });
}

TEST(Tls, a_writer_goes_on_when_the_reader_has_got_the_rest_of_a_message) {
  in_the_middle_of_a_ticket([](steering& by, const steered& client, const tls& server, auto& reader) {
    auto writer = weft::spawn([&] { client.write_all("ask"); });
    weft::sleep_for(1ms);  // mostly it waits for the reader then
    by.readable.store(SIZE_MAX);
    char room[3];
    server.read_exactly(room);
    EXPECT_EQ(std::string(room, 3), "ask") << "though the reader waits for the answer";
    server.write_all("answer");
    writer.join();
    EXPECT_EQ(reader.join(), "answer");
  });
}

TEST(Tls, a_writer_reads_the_rest_of_a_message_if_nobody_else_does) {
  in_the_middle_of_a_ticket([](steering& by, const steered& client, const tls& server, auto& reader) {
    reader.cancel();
    reader.wait();
    by.readable.store(SIZE_MAX);
    client.write_all("ask");
    client.shutdown();
    EXPECT_EQ(read_to_end(server), "ask");
    server.write_all("answer");
    char room[6];
    EXPECT_EQ(client.read_some(room), 6u);
  });
}

TEST(Tls, shutdown_says_goodbye_also_in_the_middle_of_a_message) {
  in_the_middle_of_a_ticket([](steering& by, const steered& client, const tls& server, auto& reader) {
    reader.cancel();
    reader.wait();
    by.readable.store(SIZE_MAX);
    client.shutdown();
    EXPECT_EQ(read_to_end(server), "");
  });
}

TEST(Tls, a_message_says_operation_endpoint_and_reason) {
  with_tls([] {
    auto [client, server] = connected_tls_pair();
    const std::string at = client.next_layer().remote_endpoint().to_string();
    server.close();
    try {
      char room[8];
      (void)client.read_some(room);
      ADD_FAILURE() << "it ended cleanly";
    } catch (const std::system_error& e) {
      EXPECT_EQ(std::string(e.what()), "read from " + at + ": " + e.code().message());
    }
  });
}

TEST(Tls, works_from_outside_threads_and_over_unix_sockets) {
  (void)contexts();
  auto [a, b] = net::unix_stream::pair();
  const weft::tls_stream client(std::move(a), contexts().client);
  const weft::tls_stream server(std::move(b), contexts().server);
  std::thread other([&] {
    server.handshake(tls_server{});
    server.write_all(read_to_end(server));
    server.shutdown();
  });
  client.handshake(tls_client{test_host});
  client.write_all("from a thread");
  client.shutdown();
  EXPECT_EQ(read_to_end(client), "from a thread");
  other.join();
}

// req: IO-12
TEST(Tls, sixty_four_connections_at_once_on_two_workers) {
  (void)contexts();
  const watchdog guard(110s, "64 TLS connections");
  const std::size_t before = open_descriptors();
  {
    watched_runtime rt(2);
    rt->run([] {
      net::tcp_listener listener(net::endpoint::loopback(0));
      weft::with_scope([&](weft::scope& s) {
        s.spawn([&] {
          net::serve(listener, s, [](net::tcp_stream c) {
            const tls end(std::move(c), contexts().server);
            end.handshake(tls_server{});
            char room[4096];
            while (const std::size_t n = end.read_some(room)) end.write_all({room, n});
            end.shutdown();
          });
        });
        std::vector<weft::child<void>> clients;
        support::latch connected(64);
        for (int i = 0; i < 64; ++i)
          clients.push_back(s.spawn([&, i] {
            const tls end(net::tcp_stream::connect(listener.local_endpoint()), contexts().client);
            end.handshake(tls_client{test_host});
            connected.arrive_and_wait();  // all of them are there
            for (int round = 0; round < 4; ++round) {
              const std::string question = std::to_string(i) + pattern(1000 * round);
              std::string answer(question.size(), '\0');
              end.write_all(question);
              end.read_exactly(answer);
              EXPECT_EQ(answer, question);
            }
            end.shutdown();
            EXPECT_EQ(read_to_end(end), "");
          }));
        for (auto& c : clients) c.join();
        listener.close();
      });
    });
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Tls, the_program_openssl_understands_us) {
  if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no program openssl";
  (void)contexts();
  watched_runtime rt(2);
  rt->run([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    auto program = weft::spawn([command = "echo to weft | openssl s_client -quiet -connect " +
                                          listener.local_endpoint().to_string() + " 2>/dev/null"] {
      return weft::blocking([&] {
        std::string said;
        FILE* out = popen(command.c_str(), "r");
        for (int c; (c = std::fgetc(out)) != EOF;) said += static_cast<char>(c);
        pclose(out);
        return said;
      });
    });
    const tls end(listener.accept(), contexts().server);
    end.handshake(tls_server{});
    char room[8];
    end.read_exactly(room);
    EXPECT_EQ(std::string(room, 8), "to weft\n");
    end.write_all("from weft");
    end.shutdown();
    end.close();
    EXPECT_EQ(program.join(), "from weft");
  });
}

}  // namespace
