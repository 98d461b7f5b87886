// Unix sockets for datagrams: names, pairs, and waiting for a receiver that has no room.
#include <weft/net/unix_datagram.hpp>

#include <sys/socket.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "io/datagrams.hpp"
#include "io/files.hpp"

namespace {

using namespace support::usual;
using namespace support;
using net::unix_datagram;

[[nodiscard]] net::endpoint in(const file_test::scratch& dir, const char* name) {
  return net::endpoint::unix_path((dir / name).string());
}

// Sends until the receiver has no room, and returns how many datagrams that were: "0", "1", "2", …
[[nodiscard]] int fill(const unix_datagram& from, const net::endpoint& to) {
  int sent = 0;
  std::error_code why;
  for (;; ++sent) {
    from.send_to_for(0ms, std::to_string(sent), to, why);
    if (why) break;
  }
  EXPECT_EQ(why, std::errc::timed_out);
  EXPECT_GT(sent, 0);
  return sent;
}

// The next datagrams are "first", …, up to but not including "last".
void expect_numbers(const unix_datagram& at, int first, int last) {
  for (int i = first; i < last; ++i) EXPECT_EQ(text_from(at), std::to_string(i));
}

// ---- names ----------------------------------------------------------------------------------------------------------

TEST(UnixDatagram, sockets_with_paths_talk_both_ways) {
  with_sockets([] {
    const file_test::scratch dir;
    const auto a = unix_datagram::bind(in(dir, "a"));
    const auto b = unix_datagram::bind(in(dir, "b"));
    a.send_to("ask", b.local_endpoint());
    char room[16];
    const net::received got = b.recv_from(room);
    EXPECT_EQ(std::string(room, got.size), "ask");
    EXPECT_EQ(got.from, in(dir, "a"));
    b.send_to("answer", got.from);
    EXPECT_EQ(text_from(a), "answer");
  });
}

TEST(UnixDatagram, an_abstract_name_needs_no_file_and_is_free_at_once) {
  with_sockets([] {
    const auto name = net::endpoint::unix_abstract("weft-test-" + std::to_string(::getpid()));
    for (int i = 0; i < 2; ++i) {
      const auto server = unix_datagram::bind(name);
      const auto client = unix_datagram::bind_anywhere();
      EXPECT_TRUE(client.local_endpoint().is_abstract());
      client.send_to("x", name);
      char room[4];
      EXPECT_EQ(server.recv_from(room).from, client.local_endpoint());
      server.send_to("y", client.local_endpoint());
      EXPECT_EQ(text_from(client), "y");
    }
  });
}

TEST(UnixDatagram, a_sender_without_a_name_cannot_be_answered) {
  with_sockets([] {
    const auto server = unix_datagram::bind_anywhere();
    const auto client = unix_datagram::open();
    client.send_to("x", server.local_endpoint());
    places p(1, 4);
    ASSERT_EQ(server.recv_many(p.all()), 1u);
    const net::endpoint from = p.all()[0].from;
    EXPECT_EQ(from.family(), net::address_family::local);
    EXPECT_EQ(from.path(), "");
    EXPECT_EQ(message_of([&] { server.send_to("y", from); }), "send to a Unix socket without a name: Invalid argument");
  });
}

// req: IO-13
TEST(UnixDatagram, a_path_that_is_too_long_is_told) {
  with_sockets([] {
    EXPECT_EQ(error_of([] { (void)unix_datagram::bind(net::endpoint::unix_path(std::string(108, 'x'))); }),
              std::errc::filename_too_long);
  });
}

// req: IO-13
TEST(UnixDatagram, the_file_of_an_earlier_socket_is_in_the_way_until_it_is_removed) {
  with_sockets([] {
    const file_test::scratch dir;
    const auto at = in(dir, "socket");
    { const auto earlier = unix_datagram::bind(at); }
    EXPECT_EQ(message_of([&] { (void)unix_datagram::bind(at); }),
              "bind to " + at.to_string() + ": Address already in use");
    EXPECT_EQ(message_of([&] { unix_datagram::open().send_to("x", at); }),
              "send to " + at.to_string() + ": Connection refused");
    EXPECT_EQ(code_of([&](auto& why) { (void)unix_datagram::connected_to(at, why); }), std::errc::connection_refused);
    std::filesystem::remove(at.path());
    EXPECT_EQ(code_of([&](auto& why) { (void)unix_datagram::connected_to(at, why); }),
              std::errc::no_such_file_or_directory);
    EXPECT_TRUE(unix_datagram::bind(at).is_open());
  });
}

// req: IO-13
TEST(UnixDatagram, addresses_of_other_kinds_are_a_usage_error) {
  with_sockets([] {
    EXPECT_THROW((void)unix_datagram::bind(net::endpoint::loopback(0)), weft::usage_error);
    EXPECT_THROW((void)unix_datagram::bind({}), weft::usage_error);
    EXPECT_THROW((void)unix_datagram::connected_to(net::endpoint::loopback(1)), weft::usage_error);
    auto [a, b] = unix_datagram::pair();
    const unix_datagram moved = std::move(a);
    EXPECT_THROW(a.send("x"), weft::usage_error);
    EXPECT_THROW((void)unix_datagram().recv_many({}), weft::usage_error);
  });
}

// ---- pairs ----------------------------------------------------------------------------------------------------------

TEST(UnixDatagram, a_pair_keeps_the_borders_of_datagrams) {
  with_sockets([] {
    const auto [a, b] = unix_datagram::pair();
    a.send("one");
    a.send("");
    a.send("much too long");
    EXPECT_EQ(text_from(b), "one");
    char room[4];
    const net::received empty = b.recv_from(room);
    EXPECT_EQ(empty.size, 0u);
    EXPECT_FALSE(empty.truncated);
    const net::received cut = b.recv_from(room);
    EXPECT_EQ(std::string(room, cut.size), "much");
    EXPECT_TRUE(cut.truncated);
    b.send("back");
    EXPECT_EQ(a.recv(room), 4u);
  });
}

TEST(UnixDatagram, the_end_of_the_other_socket_is_told_to_a_sender) {
  with_sockets([] {
    auto [a, b] = unix_datagram::pair();
    a.send("before the end");
    a.close();
    EXPECT_EQ(text_from(b), "before the end");
    EXPECT_EQ(code_of([&](auto& why) { b.send("x", why); }), std::errc::connection_refused);
    char room[4];
    EXPECT_EQ(code_of([&](auto& why) { b.recv_for(1ms, room, why); }), std::errc::timed_out);
  });
}

TEST(UnixDatagram, more_than_fits_arrives_in_order) {
  with_sockets([] {
    const auto [a, b] = unix_datagram::pair();
    const numbered_datagrams sent(1'000, 3'000);
    auto sender = weft::spawn([&, &from = a] { from.send_many(sent.all()); });
    EXPECT_EQ(texts_from(b, 1'000, 16), sent.texts());
    sender.join();
  });
}

// req: IO-2
TEST(UnixDatagram, a_sender_whose_own_buffer_is_full_can_be_cancelled_or_closed) {
  with_sockets([] {
    auto [a, b] = unix_datagram::pair();
    const std::string much(4'000, 'x');
    std::error_code why;
    while (!why) a.send_for(0ms, much, why);
    EXPECT_EQ(why, std::errc::timed_out);
    parked_sign first, second;
    auto cancelled = weft::spawn([&, &from = a] {
      first.here();
      from.send(much);
    });
    auto closed = weft::spawn([&, &from = a] {
      second.here();
      return error_of([&] { from.send(much); });
    });
    first.wait();
    second.wait();
    cancelled.cancel();
    EXPECT_THROW(cancelled.join(), weft::task_cancelled);
    a.close();
    EXPECT_EQ(closed.join(), std::errc::operation_canceled);
  });
}

TEST(UnixDatagram, a_released_socket_can_be_adopted) {
  with_sockets([] {
    auto [a, b] = unix_datagram::pair();
    const auto again = unix_datagram::adopt(a.release());
    again.send("x");
    EXPECT_EQ(text_from(b), "x");
  });
}

// ---- a receiver that has no room -------------------------------------------------------------------------------------

// The kernel tells a sender that is not connected of no edge. Without another socket that is, or a look from time to
// time, this waits for ever.
TEST(UnixDatagram, a_sender_waits_until_the_receiver_has_room) {
  with_sockets([] {
    const auto to = unix_datagram::bind_anywhere();
    const net::endpoint there = to.local_endpoint();
    const auto from = unix_datagram::open();
    const int fits = fill(from, there);
    parked_sign sign;
    auto sender = weft::spawn([&] {
      sign.here();
      for (int i = fits; i < 4 * fits; ++i) from.send_to(std::to_string(i), there);
    });
    sign.wait();
    expect_numbers(to, 0, 4 * fits);
    sender.join();
  });
}

// What a send has found out about one receiver says nothing about another.
TEST(UnixDatagram, a_receiver_without_room_does_not_hold_up_another) {
  with_sockets([] {
    const auto full = unix_datagram::bind_anywhere();
    const auto idle = unix_datagram::bind_anywhere();
    const net::endpoint there = full.local_endpoint();
    const auto from = unix_datagram::open();
    const int fits = fill(from, there);
    parked_sign sign;
    auto sender = weft::spawn([&] {
      sign.here();
      from.send_to(std::to_string(fits), there);
    });
    sign.wait();
    from.send_to("at once", idle.local_endpoint());
    EXPECT_EQ(text_from(idle), "at once");
    expect_numbers(full, 0, fits + 1);
    sender.join();
  });
}

TEST(UnixDatagram, a_connected_sender_waits_until_the_receiver_has_room) {
  with_sockets([] {
    const auto to = unix_datagram::bind_anywhere();
    const int fits = fill(unix_datagram::open(), to.local_endpoint());
    const auto from = unix_datagram::connected_to(to.local_endpoint());
    parked_sign sign;
    auto sender = weft::spawn([&] {
      sign.here();
      for (int i = fits; i < 4 * fits; ++i) from.send(std::to_string(i));
    });
    sign.wait();
    expect_numbers(to, 0, 4 * fits);
    sender.join();
  });
}

TEST(UnixDatagram, a_batch_by_address_arrives_in_order_though_it_does_not_fit) {
  with_sockets([] {
    const auto to = unix_datagram::bind_anywhere();
    const auto from = unix_datagram::open();
    const numbered_datagrams sent(300, 2'000, to.local_endpoint());
    auto sender = weft::spawn([&] { from.send_many(sent.all()); });
    EXPECT_EQ(texts_from(to, 300, 16), sent.texts());
    sender.join();
  });
}

// req: IO-2 IO-3
TEST(UnixDatagram, the_wait_for_a_receiver_ends_by_time_cancellation_and_close) {
  with_sockets([] {
    const auto to = unix_datagram::bind_anywhere();
    const net::endpoint there = to.local_endpoint();
    auto from = unix_datagram::open();
    const int fits = fill(from, there);
    EXPECT_EQ(error_of([&] { from.send_to_for(2ms, "late", there); }), std::errc::timed_out);
    parked_sign first, second;
    auto cancelled = weft::spawn([&] {
      first.here();
      from.send_to("cancelled", there);
    });
    first.wait();
    cancelled.cancel();
    EXPECT_THROW(cancelled.join(), weft::task_cancelled);
    auto closed = weft::spawn([&] {
      second.here();
      return code_of([&](auto& why) { from.send_to("closed", there, why); });
    });
    second.wait();
    from.close();
    EXPECT_EQ(closed.join(), std::errc::operation_canceled);
    expect_numbers(to, 0, fits);
    char room[16];
    EXPECT_EQ(code_of([&](auto& why) { to.recv_for(1ms, room, why); }), std::errc::timed_out) << "nothing else came";
  });
}

TEST(UnixDatagram, a_receiver_that_goes_away_ends_the_wait_for_it) {
  with_sockets([] {
    auto to = unix_datagram::bind_anywhere();
    const net::endpoint there = to.local_endpoint();
    const auto from = unix_datagram::open();
    (void)fill(from, there);
    parked_sign sign;
    auto sender = weft::spawn([&] {
      sign.here();
      return code_of([&](auto& why) { from.send_to("x", there, why); });
    });
    sign.wait();
    to.close();
    EXPECT_EQ(sender.join(), std::errc::connection_refused);
  });
}

TEST(UnixDatagram, many_senders_and_one_receiver_lose_nothing_and_keep_their_order) {
  with_sockets([] {
    constexpr std::size_t senders = 8;
    const std::size_t each = scaled(100);
    const auto to = unix_datagram::bind_anywhere();
    std::vector<weft::join_handle<void>> all;
    for (std::size_t s = 0; s < senders; ++s)
      all.push_back(weft::spawn([&, s] {
        const auto from = unix_datagram::open();
        for (std::size_t i = 0; i < each; ++i)
          from.send_to(std::to_string(s) + ' ' + std::to_string(i), to.local_endpoint());
      }));
    std::vector<std::size_t> next(senders, 0);
    for (std::size_t i = 0; i < senders * each; ++i) {
      const std::string text = text_from(to);
      const std::size_t s = std::stoul(text);
      ASSERT_LT(s, senders);
      EXPECT_EQ(text, std::to_string(s) + ' ' + std::to_string(next[s]++));
    }
    for (auto& a : all) a.join();
  });
}

TEST(UnixDatagram, outside_threads_wait_for_a_receiver_too) {
  const std::size_t before = open_descriptors();
  {
    const auto to = unix_datagram::bind_anywhere();
    const net::endpoint there = to.local_endpoint();
    const auto from = unix_datagram::open();
    const int fits = fill(from, there);
    std::thread sender([&] {
      for (int i = fits; i < 4 * fits; ++i) from.send_to(std::to_string(i), there);
    });
    expect_numbers(to, 0, 4 * fits);
    sender.join();
  }
  EXPECT_EQ(open_descriptors(), before);
}

// req: IO-4
TEST(UnixDatagram, an_arm_beside_a_timer_wins_when_a_datagram_comes) {
  with_sockets([] {
    const auto [a, b] = unix_datagram::pair();
    auto soon = weft::after(1ms);
    EXPECT_EQ(weft::select(b.readable(), soon).index(), 1u);
    a.send("x");
    auto late = weft::after(20s);
    EXPECT_EQ(weft::select(b.readable(), late).index(), 0u);
    EXPECT_EQ(text_from(b), "x") << "an arm takes nothing";
  });
}

}  // namespace
