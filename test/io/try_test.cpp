// The forms that never wait: try_read_some, try_write_some, try_accept.
#include <string>

#include "io/net.hpp"
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;

TEST(Try, a_read_takes_what_there_is_and_does_not_wait_for_more) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    char room[8];
    EXPECT_EQ(server.try_read_some(room), std::nullopt);
    client.write_all("abc");
    EXPECT_EQ(server.try_read_some(room), 3u);
    EXPECT_EQ(server.try_read_some(room), std::nullopt);
    std::error_code why;
    EXPECT_EQ(server.try_read_some(room, why), 0u);
    EXPECT_EQ(why, std::errc::operation_would_block);
    client.write_all("d");
    EXPECT_EQ(server.try_read_some(room, why), 1u);
    EXPECT_FALSE(why);
    EXPECT_EQ(server.try_read_some(weft::mutable_buffer(nullptr, 0)), 0u);
    client.close();
    EXPECT_EQ(server.try_read_some(room), 0u) << "the end of the stream";
  });
}

// The descriptor is watched after the first wait, and nobody polls while the task tries.
TEST(Try, a_read_after_a_wait_finds_what_no_poll_has_told_of) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    char room[8];
    std::error_code why;
    (void)server.read_some_for(1ms, room, why);
    ASSERT_EQ(why, std::errc::timed_out);
    EXPECT_EQ(server.try_read_some(room), std::nullopt);
    client.write_all("abc");
    EXPECT_EQ(server.try_read_some(room), 3u);
  });
}

// req: IO-5
TEST(Try, a_wait_after_a_try_that_found_nothing_is_woken) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    for (int i = 0; i < 100; ++i) {
      char room[8];
      EXPECT_EQ(server.try_read_some(room), std::nullopt);
      auto writer = weft::spawn([&] { client.write_all("x"); });
      EXPECT_EQ(server.read_some(room), 1u);
      writer.join();
    }
  });
}

TEST(Try, a_write_fills_the_room_that_there_is) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const std::string much = pattern(1 << 20);
    std::size_t written = 0;
    while (const auto n = client.try_write_some(much)) written += *n;
    EXPECT_GT(written, 0u);
    std::error_code why;
    EXPECT_EQ(client.try_write_some(much, why), 0u);
    EXPECT_EQ(why, std::errc::operation_would_block);
    EXPECT_EQ(client.try_write_some(""), 0u);
    client.close();
    EXPECT_EQ(read_to_end(server).size(), written);
  });
}

TEST(Try, halves_and_unix_streams_have_them_too) {
  with_sockets([] {
    auto [a, b] = net::unix_stream::pair();
    auto [from, to] = std::move(a).split();
    char room[4];
    EXPECT_EQ(from.try_read_some(room), std::nullopt);
    EXPECT_EQ(to.try_write_some("xy"), 2u);
    EXPECT_EQ(b.try_read_some(room), 2u);
  });
}

TEST(Try, an_accept_takes_a_connection_that_is_there) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    std::error_code why;
    EXPECT_FALSE(listener.try_accept().has_value());
    EXPECT_FALSE(listener.try_accept(why).is_open());
    EXPECT_EQ(why, std::errc::operation_would_block);
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    const auto server = listener.try_accept();
    ASSERT_TRUE(server.has_value());
    EXPECT_EQ(server->remote_endpoint(), client.local_endpoint());
    EXPECT_TRUE(server->get<net::no_delay>().on) << "as one that was waited for";
    const net::unix_listener local(net::endpoint::unix_abstract("weft-try-" + std::to_string(::getpid())));
    EXPECT_FALSE(local.try_accept().has_value());
  });
}

// req: IO-13
TEST(Try, errors_are_told_as_by_the_forms_that_wait) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    char room[4];
    server.close();
    EXPECT_EQ(error_of([&] { (void)server.try_read_some(room); }), std::errc::operation_canceled);
    EXPECT_EQ(error_of([&] { (void)server.try_write_some("x"); }), std::errc::operation_canceled);
    net::tcp_listener listener(net::endpoint::loopback(0));
    listener.close();
    EXPECT_EQ(error_of([&] { (void)listener.try_accept(); }), std::errc::operation_canceled);
    EXPECT_THROW((void)net::tcp_stream().try_read_some(room), weft::usage_error);
    EXPECT_THROW((void)net::tcp_listener().try_accept(), weft::usage_error);
  });
}

TEST(Try, is_never_a_cancellation_point) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("abc");
    auto task = weft::spawn([&] {
      weft::this_task::ref().cancel();
      char room[8];
      return server.try_read_some(room);
    });
    EXPECT_EQ(task.join(), 3u);
  });
}

}  // namespace
