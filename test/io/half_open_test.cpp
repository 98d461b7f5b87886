// Peers that are gone without a word, or are there and do nothing.
#include <string>

#include "io/faults.hpp"

namespace {

using namespace support::usual;
using namespace support;
using clock = std::chrono::steady_clock;

// req: IO-2
TEST(HalfOpen, a_read_from_a_peer_that_is_silent_ends_when_its_time_is_up) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    drop_packets(client.native_handle());
    server.expires_after(2ms);
    char room[8];
    for (int i = 0; i < 3; ++i) {
      const auto begin = clock::now();
      std::error_code why;
      EXPECT_EQ(server.read_some(room, why), 0u);
      EXPECT_EQ(why, std::errc::timed_out);
      EXPECT_GE(clock::now() - begin, 2ms) << "never early";
    }
    EXPECT_EQ(error_of([&, &s = server] { s.read_exactly(room); }), std::errc::timed_out);
  });
}

// req: IO-2
TEST(HalfOpen, a_write_to_a_peer_that_does_not_read_ends_when_its_time_is_up_and_counts) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const std::string much = pattern(std::size_t{8} << 20);
    client.expires_after(2ms);
    std::error_code why;
    std::size_t sent = client.write_all(much, why);
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_LT(sent, much.size());
    // The stream stays usable: the rest goes on from there.
    client.expires_never();
    auto reader = weft::spawn([&s = server] { return read_to_end(s); });
    client.write_all(std::string_view(much).substr(sent));
    client.shutdown(net::half::write);
    EXPECT_EQ(reader.join(), much);
  });
}

// req: IO-2
TEST(HalfOpen, a_write_whose_packets_are_dropped_ends_when_its_time_is_up) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    drop_packets(server.native_handle());
    const std::string much(std::size_t{8} << 20, 'x');
    EXPECT_EQ(error_of([&, &c = client] { c.write_all_for(5ms, much); }), std::errc::timed_out);
  });
}

// req: IO-2
TEST(HalfOpen, a_connect_that_nobody_answers_ends_when_its_time_is_up) {
  with_sockets([] {
    const net::tcp_listener deaf(net::endpoint::loopback(0));
    drop_packets(deaf.native_handle());
    EXPECT_EQ(error_of([&] { (void)net::tcp_stream::connect_for(3ms, deaf.local_endpoint()); }), std::errc::timed_out);
  });
}

// The kernel's own means: it asks a peer that is silent, and gives up one that does not acknowledge. Seconds are the
// smallest unit of the one.
TEST(HalfOpen, keep_alive_and_user_timeout_find_a_peer_that_is_gone) {
  watched_runtime rt(2);
  rt->run([] {
    auto quiet = connected_pair();
    quiet.server.set(net::keep_alive{.idle = 1s, .interval = 1s, .count = 1});
    drop_packets(quiet.client.native_handle());
    auto unanswered = connected_pair();
    unanswered.server.set(net::user_timeout{50ms});
    drop_packets(unanswered.client.native_handle());
    auto reader = weft::spawn([&] {
      char room[8];
      return error_of([&] { (void)quiet.server.read_some(room); });
    });
    auto asker = weft::spawn([&] {
      char room[8];
      unanswered.server.write_all("are you there?");
      return error_of([&] { (void)unanswered.server.read_some(room); });
    });
    EXPECT_EQ(asker.join(), std::errc::timed_out);
    EXPECT_EQ(reader.join(), std::errc::timed_out);
  });
}

}  // namespace
