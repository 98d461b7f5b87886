// TCP streams and listeners: bytes, ends, time limits, errors.
// ctest: uring
#include <weft/net/tcp.hpp>

#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;

TEST(Tcp, what_one_end_writes_the_other_reads) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("hello");
    char room[64];
    const std::size_t n = server.read_some(room);
    EXPECT_EQ(std::string(room, n), "hello");
    server.write_all({"wo", "r", "ld"});
    client.read_exactly({room, 5});
    EXPECT_EQ(std::string(room, 5), "world");
  });
}

TEST(Tcp, a_reader_parks_until_bytes_come_and_others_run_meanwhile) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto reader = weft::spawn([&] {
      char room[8];
      return server.read_some(room);
    });
    weft::sleep_for(1ms);
    client.write_all("abc");
    EXPECT_EQ(reader.join(), 3u);
  });
}

TEST(Tcp, much_goes_both_ways_at_once) {
  with_sockets([] {
    constexpr std::size_t size = 4 << 20;
    const std::string sent = pattern(size);
    auto [client, server] = connected_pair();
    auto echo = weft::spawn([s = std::move(server)] {
      char room[10'000];
      while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
      s.shutdown(net::half::write);
    });
    auto [from, writing] = std::move(client).split();
    auto writer = weft::spawn([&sent, to = std::move(writing)] { to.write_all(sent); });  // its end shuts down
    EXPECT_EQ(read_to_end(from), sent);
    writer.join();
    echo.join();
  });
}

TEST(Tcp, an_end_that_is_shut_down_still_reads) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("ask");
    client.shutdown(net::half::write);
    EXPECT_EQ(read_to_end(server), "ask");
    server.write_all("answer");
    server.close();
    EXPECT_EQ(read_to_end(client), "answer");
  });
}

TEST(Tcp, many_buffers_go_in_order_whatever_their_sizes) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const std::string all = pattern(300'000);
    std::vector<weft::const_buffer> parts;
    for (std::size_t at = 0, i = 0; at < all.size(); ++i) {
      const std::size_t size = std::min(all.size() - at, i % 5 == 0 ? 0 : i * 37 % 700);
      parts.emplace_back(all.data() + at, size);
      at += size;
    }
    EXPECT_GT(parts.size(), 64u) << "more than one call takes";
    auto writer = weft::spawn([&, c = std::move(client)] { c.write_all(std::span<const weft::const_buffer>(parts)); });
    EXPECT_EQ(read_to_end(server), all);
    writer.join();
  });
}

TEST(Tcp, a_read_into_several_buffers_fills_them_in_order) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("abcdef");
    weft::sleep_for(1ms);
    char a[2], b[3], c[4];
    const weft::mutable_buffer parts[] = {a, b, c};
    EXPECT_EQ(server.read_some(std::span<const weft::mutable_buffer>(parts)), 6u);
    EXPECT_EQ(std::string(a, 2) + std::string(b, 3) + std::string(c, 1), "abcdef");
  });
}

TEST(Tcp, buffers_of_size_zero_transfer_nothing_and_do_not_wait) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    EXPECT_EQ(client.read_some(weft::mutable_buffer(nullptr, 0)), 0u);
    EXPECT_EQ(client.write_some(""), 0u);
    client.write_all("");
    client.read_exactly(weft::mutable_buffer(nullptr, 0));
    client.write_all(std::span<const weft::const_buffer>());
    client.write_all("x");
    char room[1];
    EXPECT_EQ(server.read_some(room), 1u);
  });
}

// req: IO-13
TEST(Tcp, a_stream_that_ends_too_early_is_told) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("abc");
    client.close();
    char room[4];
    std::error_code why;
    EXPECT_EQ(server.read_exactly(room, why), 3u);
    EXPECT_EQ(why, weft::io_errc::stream_ended);
  });
}

// req: IO-2 IO-13
TEST(Tcp, a_time_limit_ends_an_operation_and_not_the_stream) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    char room[8];
    std::error_code why;
    EXPECT_EQ(server.read_some_for(1ms, room, why), 0u);
    EXPECT_EQ(why, std::errc::timed_out);
    server.expires_after(1ms);
    EXPECT_EQ(error_of([&] { (void)server.read_some(room); }), std::errc::timed_out);
    server.expires_never();
    client.write_all("x");
    EXPECT_EQ(server.read_some(room), 1u);
  });
}

// req: IO-2
TEST(Tcp, cancellation_ends_a_read_and_nothing_is_lost) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto reader = weft::spawn([&] {
      char room[8];
      return server.read_some(room);
    });
    weft::sleep_for(1ms);
    reader.cancel();
    EXPECT_THROW(reader.join(), weft::task_cancelled);
    client.write_all("kept");
    char room[8];
    EXPECT_EQ(server.read_some(room), 4u);
  });
}

// req: IO-2
TEST(Tcp, a_cancelled_task_reads_nothing_though_there_is_something) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("kept");
    auto reader = weft::spawn([&] {
      while (!weft::this_task::is_cancelled()) weft::yield();
      char room[8];
      std::error_code why;
      return server.read_some(room, why);  // cancellation is thrown in both forms
    });
    reader.cancel();
    EXPECT_THROW(reader.join(), weft::task_cancelled);
    char room[8];
    EXPECT_EQ(server.read_some(room), 4u);
  });
}

// req: IO-13
TEST(Tcp, a_refused_connection_says_operation_address_and_reason) {
  with_sockets([] {
    net::endpoint nobody;
    {
      const net::tcp_listener listener(net::endpoint::loopback(0));
      nobody = listener.local_endpoint();
    }
    std::error_code why;
    EXPECT_FALSE(net::tcp_stream::connect(nobody, why).is_open());
    EXPECT_EQ(why, std::errc::connection_refused);
    try {
      (void)net::tcp_stream::connect(nobody);
      FAIL() << "it must throw";
    } catch (const std::system_error& e) {
      EXPECT_EQ(std::string(e.what()), "connect to " + nobody.to_string() + ": Connection refused");
    }
  });
}

TEST(Tcp, a_reset_is_an_error_and_no_signal) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const linger at_once{1, 0};
    ASSERT_EQ(::setsockopt(client.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    client.close();
    char room[8];
    EXPECT_EQ(error_of([&] { (void)server.read_some(room); }), std::errc::connection_reset);
    EXPECT_EQ(error_of([&] {
                for (;;) server.write_all("x");
              }),
              std::errc::broken_pipe);
  });
}

TEST(Tcp, a_listener_accepts_what_came_before_and_what_comes_later) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    constexpr int n = 50;
    auto clients = weft::spawn([&] {
      for (int i = 0; i < n; ++i) {
        const auto c = net::tcp_stream::connect(listener.local_endpoint());
        c.write_all("x");
      }
    });
    for (int i = 0; i < n; ++i) {
      const auto s = listener.accept();
      char room[2];
      EXPECT_EQ(s.read_some(room), 1u);
    }
    clients.join();
    std::error_code why;
    EXPECT_FALSE(listener.accept_for(1ms, why).is_open());
    EXPECT_EQ(why, std::errc::timed_out);
  });
}

TEST(Tcp, an_address_in_use_is_told_with_the_address) {
  with_sockets([] {
    const net::tcp_listener first(net::endpoint::loopback(0));
    try {
      const net::tcp_listener second(first.local_endpoint());
      FAIL() << "it must throw";
    } catch (const std::system_error& e) {
      EXPECT_EQ(std::string(e.what()), "listen at " + first.local_endpoint().to_string() + ": Address already in use");
    }
  });
}

TEST(Tcp, ipv6_works) {
  with_sockets([] {
    std::error_code why;
    const net::tcp_listener listener(net::endpoint::loopback_v6(0), {}, why);
    if (why == std::errc::address_family_not_supported || why == std::errc::address_not_available)
      GTEST_SKIP() << "no IPv6 here";
    ASSERT_FALSE(why) << why.message();
    auto client = net::tcp_stream::connect(listener.local_endpoint());
    auto server = listener.accept();
    client.write_all("six");
    char room[8];
    EXPECT_EQ(server.read_some(room), 3u);
    EXPECT_EQ(server.remote_endpoint(), client.local_endpoint());
  });
}

// req: IO-13
TEST(Tcp, streams_that_are_not_there_are_a_usage_error) {
  with_sockets([] {
    net::tcp_stream none;
    char room[1];
    EXPECT_THROW((void)none.read_some(room), weft::usage_error);
    auto [client, server] = connected_pair();
    const net::tcp_stream moved = std::move(client);
    EXPECT_THROW(client.write_all("x"), weft::usage_error);
    EXPECT_THROW((void)net::tcp_stream::connect(net::endpoint()), weft::usage_error);
  });
}

TEST(Tcp, options_are_set_and_read) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    EXPECT_TRUE(client.get<net::no_delay>().on) << "small messages are sent at once";
    client.set(net::no_delay{false});
    EXPECT_FALSE(client.get<net::no_delay>().on);
    client.close();
    std::error_code why;
    client.set(net::no_delay{true}, why);
    EXPECT_EQ(why, std::errc::bad_file_descriptor);
  });
}

// ---- outside threads ------------------------------------------------------------------------------------------------

TEST(Tcp, outside_threads_read_write_accept_and_connect) {
  const std::size_t before = support::open_descriptors();
  {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    std::thread server([&] {
      const auto s = listener.accept();
      EXPECT_EQ(read_to_end(s), "from a thread");
      s.write_all("seen");
    });
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    std::error_code why;
    char room[8];
    EXPECT_EQ(client.read_some_for(1ms, room, why), 0u);
    EXPECT_EQ(why, std::errc::timed_out);
    client.write_all("from a thread");
    client.shutdown(net::half::write);
    EXPECT_EQ(read_to_end(client), "seen");
    server.join();
  }
  EXPECT_EQ(support::open_descriptors(), before);
}

// req: IO-3
TEST(Tcp, close_wakes_an_outside_thread) {
  auto [client, server] = connected_pair();
  std::error_code why;
  std::thread reader([&] {
    char room[8];
    (void)server.read_some(room, why);
  });
  std::this_thread::sleep_for(5ms);
  server.close();
  reader.join();
  EXPECT_EQ(why, std::errc::operation_canceled);
}

TEST(Tcp, a_task_and_an_outside_thread_talk) {
  watched_runtime rt(2);
  auto [client, server] = connected_pair();
  auto echo = rt->spawn([s = std::move(server)] {
    char room[100];
    while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
  });
  for (int i = 0; i < 1000; ++i) {
    char room[4];
    client.write_all("ping");
    client.read_exactly(room);
  }
  client.close();
  echo.join();
}

// ---- several runtimes -----------------------------------------------------------------------------------------------

TEST(Tcp, another_runtime_takes_over_a_stream_for_which_nobody_waits) {
  auto pair = connected_pair();
  const auto serve_once = [&] {
    auto reader = weft::spawn([&] {
      char room[8];
      return pair.server.read_some(room);
    });
    weft::sleep_for(1ms);
    pair.client.write_all("x");
    EXPECT_EQ(reader.join(), 1u);
  };
  {
    watched_runtime first(1);
    first->run(serve_once);
    watched_runtime second(1);
    second->run(serve_once);
    first->run(serve_once);
  }
  watched_runtime third(2);
  third->run(serve_once);
}

TEST(Tcp, another_runtime_cannot_wait_while_one_does) {
  auto pair = connected_pair();
  watched_runtime first(1);
  watched_runtime second(1);
  auto reader = first->spawn([&] {
    char room[8];
    return pair.server.read_some(room);
  });
  second->run([&] {
    until([&] { return first->statistics().parks != 0; });
    weft::sleep_for(1ms);
    char room[8];
    EXPECT_EQ(error_of([&] { (void)pair.server.read_some(room); }), std::errc::device_or_resource_busy);
  });
  pair.client.write_all("x");
  EXPECT_EQ(reader.join(), 1u);
}

}  // namespace
