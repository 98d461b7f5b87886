// Closing a descriptor while others wait for it or work on it.
// ctest: uring
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "io/net.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace support::usual;
using namespace support;

// req: IO-3
TEST(Close, whoever_waits_gets_operation_canceled_once) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    std::vector<weft::join_handle<std::error_code>> readers;
    for (int i = 0; i < 3; ++i)
      readers.push_back(weft::spawn([&] {
        char room[8];
        std::error_code why;
        (void)server.read_some(room, why);
        return why;
      }));
    weft::sleep_for(1ms);
    server.close();
    for (auto& r : readers) EXPECT_EQ(r.join(), std::errc::operation_canceled);
    server.close();  // harmless
    EXPECT_EQ(error_of([&] { server.write_all("x"); }), std::errc::operation_canceled);
    EXPECT_EQ(error_of([&] { (void)server.local_endpoint(); }), std::errc::operation_canceled);
    EXPECT_EQ(server.native_handle(), -1);
  });
}

// req: IO-3
TEST(Close, a_writer_whose_peer_does_not_read_is_woken) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto writer = weft::spawn([&] {
      const std::string much(1 << 20, 'x');
      return error_of([&] {
        for (;;) client.write_all(much);
      });
    });
    weft::sleep_for(2ms);
    client.close();
    EXPECT_EQ(writer.join(), std::errc::operation_canceled);
  });
}

// req: IO-3
TEST(Close, a_listener_that_is_closed_ends_its_accept) {
  with_sockets([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    auto acceptor = weft::spawn([&] { return error_of([&] { (void)listener.accept(); }); });
    weft::sleep_for(1ms);
    listener.close();
    EXPECT_EQ(acceptor.join(), std::errc::operation_canceled);
    EXPECT_EQ(error_of([&] { (void)listener.accept(); }), std::errc::operation_canceled);
  });
}

// The number of a closed descriptor goes to the next one that is opened. Whoever used the old one must not see it.
// req: IO-3
TEST(Close, against_readers_and_writers_that_never_stop) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    for (int round = 0; round < 200; ++round) {
      auto client = net::tcp_stream::connect(listener.local_endpoint());
      auto server = listener.accept();
      auto reader = weft::spawn([&] {
        char room[64];
        std::error_code why;
        while (!why)
          for (const char c : std::string_view(room, server.read_some(room, why))) EXPECT_EQ(c, 'm');
        return why;
      });
      auto writer = weft::spawn([&] {
        std::error_code why;
        while (!why) client.write_all("mmmm", why);
        return why;
      });
      for (int i = round % 7; i != 0; --i) weft::yield();
      server.close();
      EXPECT_EQ(reader.join(), std::errc::operation_canceled);
      client.close();
      const std::error_code why = writer.join();
      EXPECT_TRUE(why == std::errc::operation_canceled || why == std::errc::connection_reset ||
                  why == std::errc::broken_pipe)
          << why.message();
    }
  });
}

// A stale event reaches no stranger: the record of a closed descriptor is used again at once, by one that has nothing
// to read.
// req: IO-3
TEST(Close, a_stale_event_does_not_wake_the_next_descriptor) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    for (int round = 0; round < 200; ++round) {
      auto loud = net::tcp_stream::connect(listener.local_endpoint());
      auto heard = listener.accept();
      auto reader = weft::spawn([&] {
        char room[8];
        std::error_code why;
        (void)heard.read_some(room, why);
      });
      weft::yield();
      loud.write_all("x");
      heard.close();
      auto quiet = net::tcp_stream::connect(listener.local_endpoint());
      auto silent = listener.accept();
      auto limit = weft::after(200us);
      EXPECT_EQ(weft::select(silent.readable(), limit).index(), 1u) << "there is nothing to read";
      reader.join();
    }
  });
}

// req: IO-3
TEST(Close, a_duplicate_that_stays_open_brings_no_events) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto reader = weft::spawn([&] {
      char room[8];
      std::error_code why;
      (void)server.read_some(room, why);
      return why;
    });
    weft::sleep_for(1ms);
    const int duplicate = ::dup(server.native_handle());
    ASSERT_GE(duplicate, 0);
    server.close();
    EXPECT_EQ(reader.join(), std::errc::operation_canceled);
    client.write_all("nobody waits for this");
    weft::sleep_for(1ms);
    ::close(duplicate);
  });
}

// req: IO-3
TEST(Close, the_halves_share_the_descriptor) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto [from, to] = std::move(server).split();
    { const auto gone = std::move(to); }
    EXPECT_EQ(read_to_end(client), "") << "the end of the writing half shuts down";
    client.write_all("still read");
    client.shutdown(net::half::write);
    EXPECT_EQ(read_to_end(from), "still read");
  });
}

TEST(Close, a_released_descriptor_is_the_callers) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    base::atomic<const weft::task::record*> who{nullptr};
    auto reader = weft::spawn([&] {
      who.store(weft::waits::current_task(), base::release);
      char room[8];
      return server.read_some(room);
    });
    until([&] { return is_parked(who.load(base::acquire)); });
    EXPECT_THROW((void)server.release(), weft::usage_error) << "it is in use";
    client.write_all("x");
    reader.join();
    const int fd = server.release();
    EXPECT_EQ(error_of([&] { server.write_all("x"); }), std::errc::operation_canceled);
    const auto again = net::tcp_stream::adopt(fd);
    client.write_all("y");
    char room[8];
    EXPECT_EQ(again.read_some(room), 1u);
  });
}

}  // namespace
