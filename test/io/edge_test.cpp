// No edge is lost between a call that finds nothing and the park, whoever polls.
// ctest: uring
#include <atomic>
#include <string>
#include <thread>

#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;

// One byte at a time between tasks: every read parks, or nearly does.
// req: IO-5
TEST(Edge, no_edge_is_lost_between_two_tasks) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    constexpr int n = 20'000;
    auto echo = weft::spawn([&] {
      char c;
      while (server.read_some({&c, 1}) != 0) server.write_all({&c, 1});
    });
    for (int i = 0; i < n; ++i) {
      char c = static_cast<char>(i);
      client.write_all({&c, 1});
      char back;
      client.read_exactly({&back, 1});
      ASSERT_EQ(back, c);
    }
    client.close();
    echo.join();
  });
}

// The other end is a thread, so that the runtime is idle in between and its workers sleep.
// req: IO-5
TEST(Edge, no_edge_is_lost_while_all_workers_sleep) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto pair = connected_pair();
    auto echo = rt->spawn([&] {
      char room[16];
      while (const std::size_t n = pair.server.read_some(room)) pair.server.write_all({room, n});
    });
    for (int i = 0; i < 2'000; ++i) {
      char room[5];
      pair.client.write_all("hello");
      pair.client.read_exactly(room);
      if (i % 64 == 0) std::this_thread::sleep_for(200us);
    }
    pair.client.close();
    echo.join();
  });
}

// Reads of all sizes: short ones, which are taken as the end of what there is, and full ones, which are not.
// req: IO-5
TEST(Edge, no_edge_is_lost_whatever_the_size_of_the_read) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const std::string all = pattern(400'000);
    auto writer = weft::spawn([&] {
      for (std::size_t at = 0, i = 0; at < all.size(); ++i) {
        const std::size_t size = std::min(all.size() - at, i * 31 % 200 + 1);
        client.write_all({all.data() + at, size});
        at += size;
        if (i % 16 == 0) weft::yield();
      }
      client.shutdown(net::half::write);
    });
    std::string got;
    for (std::size_t i = 0;; ++i) {
      char room[128];
      const std::size_t n = server.read_some({room, i * 7 % sizeof room + 1});
      if (n == 0) break;
      got.append(room, n);
    }
    EXPECT_EQ(got, all);
    writer.join();
  });
}

TEST(Edge, two_readers_share_what_comes_and_none_is_forgotten) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    constexpr std::size_t n = 5'000;
    std::vector<weft::join_handle<std::size_t>> readers;
    for (int r = 0; r < 3; ++r)
      readers.push_back(weft::spawn([&] {
        std::size_t got = 0;
        char c;
        while (server.read_some({&c, 1}) != 0) ++got;
        return got;
      }));
    for (std::size_t i = 0; i < n; ++i) {
      client.write_all("x");
      if (i % 100 == 0) weft::sleep_for(50us);
    }
    client.shutdown(net::half::write);
    std::size_t sum = 0;
    for (auto& r : readers) sum += r.join();
    EXPECT_EQ(sum, n);
  });
}

// What comes with the last bytes: the end of the stream is an edge of its own.
// req: IO-5
TEST(Edge, data_and_the_end_at_once) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    for (int i = 0; i < 300; ++i) {
      auto client = net::tcp_stream::connect(listener.local_endpoint());
      auto server = listener.accept();
      auto reader = weft::spawn([&] { return read_to_end(server); });
      if (i % 3 == 0) weft::yield();
      client.write_all("the end");
      if (i % 2 == 0) weft::yield();
      client.close();
      EXPECT_EQ(reader.join(), "the end");
    }
  });
}

// ---- arms -----------------------------------------------------------------------------------------------------------

TEST(ReadyArm, wins_when_there_is_something_to_read_and_not_before) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto soon = weft::after(1ms);
    EXPECT_EQ(weft::select(server.readable(), soon).index(), 1u);
    client.write_all("x");
    auto late = weft::after(10s);
    EXPECT_EQ(weft::select(server.readable(), late).index(), 0u);
    char room[8];
    EXPECT_EQ(server.read_some(room), 1u) << "an arm takes nothing";
    auto again = weft::after(1ms);
    EXPECT_EQ(weft::select(server.readable(), again).index(), 1u);
  });
}

TEST(ReadyArm, beside_a_channel_and_a_timer_exactly_one_wins) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto [writer, in] = weft::make_channel<int>();
    int by_socket = 0;
    int by_channel = 0;
    constexpr int n = 500;
    auto sender = weft::spawn([&, out = std::move(writer)] {
      for (int i = 0; i < n; ++i) {
        client.write_all("x");
        (void)out.send(i);
      }
    });
    while (by_socket + by_channel < 2 * n) {
      auto limit = weft::after(20s);
      weft::select(server.on_readable([&] {
        char c;
        server.read_exactly({&c, 1});
        ++by_socket;
      }),
                   in.on_recv([&](int) { ++by_channel; }), limit.on_expire([] { FAIL() << "nothing came"; }));
    }
    EXPECT_EQ(by_socket, n);
    EXPECT_EQ(by_channel, n);
    sender.join();
  });
}

TEST(ReadyArm, the_same_descriptor_twice_in_one_select) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    EXPECT_EQ(weft::prialt(server.readable(), server.writable()).index(), 1u);
    client.write_all("x");
    weft::select(server.readable());
    EXPECT_EQ(weft::prialt(server.readable(), server.writable()).index(), 0u);
    EXPECT_LT(weft::select(server.readable(), server.readable()).index(), 2u);
  });
}

TEST(ReadyArm, an_acceptor_stops_by_an_event) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    weft::event stop;
    std::atomic<int> accepted = 0;
    auto acceptor = weft::spawn([&] {
      while (weft::prialt(stop.on_set(), listener.acceptable()).index() == 1) {
        (void)listener.accept();
        ++accepted;
      }
    });
    for (int i = 0; i < 3; ++i) (void)net::tcp_stream::connect(listener.local_endpoint());
    until([&] { return accepted == 3; });
    stop.set();
    acceptor.join();
    EXPECT_EQ(accepted, 3);
  });
}

}  // namespace
