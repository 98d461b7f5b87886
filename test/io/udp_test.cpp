// UDP sockets: datagrams one by one and in batches, their ends, time limits, errors.
#include <weft/net/udp.hpp>

#include <net/if.h>
#include <netinet/in.h>

#include <string>
#include <thread>
#include <vector>

#include "io/datagrams.hpp"

namespace {

using namespace support::usual;
using namespace support;
using net::udp_socket;

[[nodiscard]] udp_socket at_loopback() { return udp_socket::bind(net::endpoint::loopback(0)); }

// Two sockets that are connected with each other.
struct udp_pair {
  udp_socket a = at_loopback(), b = at_loopback();
  udp_pair() {
    a.connect(b.local_endpoint());
    b.connect(a.local_endpoint());
  }
};

// An address where nobody listens.
[[nodiscard]] net::endpoint nobody() { return at_loopback().local_endpoint(); }

// ---- exchange -------------------------------------------------------------------------------------------------------

// The example of udp.hpp, and a client of it.
TEST(Udp, an_echo_server_answers_whoever_asks) {
  with_sockets([] {
    auto server = at_loopback();
    const net::endpoint there = server.local_endpoint();
    auto echo = weft::spawn([&] {
      char room[1500];
      for (;;) {
        const auto [size, from, truncated] = server.recv_from(room);
        if (!truncated) server.send_to({room, size}, from);
      }
    });
    for (int client = 0; client < 3; ++client) {
      const auto socket = udp_socket::open(net::address_family::v4);
      for (int i = 0; i < 20; ++i) {
        const std::string asked = std::to_string(client) + " asks " + std::to_string(i);
        socket.send_to(asked, there);
        char room[64];
        const net::received got = socket.recv_from(room);
        EXPECT_EQ(std::string(room, got.size), asked);
        EXPECT_EQ(got.from, there);
        EXPECT_FALSE(got.truncated);
      }
    }
    server.close();
    EXPECT_THROW(echo.join(), std::system_error);
  });
}

TEST(Udp, connected_sockets_send_and_receive_without_addresses) {
  with_sockets([] {
    const udp_pair p;
    p.a.send("to b");
    p.b.send("to a");
    EXPECT_EQ(text_from(p.b), "to b");
    char room[16];
    EXPECT_EQ(p.a.recv(room), 4u);
    EXPECT_EQ(p.a.remote_endpoint(), p.b.local_endpoint());
  });
}

TEST(Udp, a_connected_socket_hears_its_peer_only_and_can_change_it) {
  with_sockets([] {
    const auto a = at_loopback();
    const auto b = at_loopback();
    const auto c = udp_socket::connected_to(a.local_endpoint());
    b.send_to("from b", c.local_endpoint());
    a.send_to("from a", c.local_endpoint());
    EXPECT_EQ(text_from(c), "from a");
    c.connect(b.local_endpoint());
    b.send_to("now from b", c.local_endpoint());
    EXPECT_EQ(text_from(c), "now from b");
    c.disconnect();
    EXPECT_EQ(code_of([&](auto& why) { c.send("to whom?", why); }), std::errc::destination_address_required);
    EXPECT_EQ(error_of([&] { (void)c.remote_endpoint(); }), std::errc::not_connected);
  });
}

// A short read of a stream means that there is no more, but one of datagrams does not. Both are there before the receiver
// is woken, so there is one edge for both.
// req: IO-5
TEST(Udp, a_short_datagram_does_not_hide_the_next) {
  with_sockets([] {
    const auto to = at_loopback();
    const auto from = udp_socket::connected_to(to.local_endpoint());
    for (int round = 0; round < 20; ++round) {
      parked_sign sign;
      auto receiver = weft::spawn([&] {
        sign.here();
        std::string all;
        for (int i = 0; i < 3; ++i) all += text_from(to);
        return all;
      });
      sign.wait();
      from.send("a");
      from.send("b");
      from.send("c");
      EXPECT_EQ(receiver.join(), "abc");
    }
  });
}

TEST(Udp, a_datagram_that_does_not_fit_is_flagged_and_the_next_is_whole) {
  with_sockets([] {
    const udp_pair p;
    p.a.send("too long");
    p.a.send("fits");
    char room[4];
    const net::received first = p.b.recv_from(room);
    EXPECT_TRUE(first.truncated);
    EXPECT_EQ(std::string(room, first.size), "too ");
    const net::received second = p.b.recv_from(room);
    EXPECT_FALSE(second.truncated);
    EXPECT_EQ(std::string(room, second.size), "fits");
    p.a.send("too long");
    std::error_code why;
    EXPECT_EQ(p.b.recv(room, why), 4u);
    EXPECT_EQ(why, std::errc::message_size);
    EXPECT_EQ(std::string(room, 4), "too ");
  });
}

TEST(Udp, an_empty_datagram_is_not_the_end) {
  with_sockets([] {
    const udp_pair p;
    p.a.send("");
    p.a.send(weft::const_buffer(nullptr, 0));
    p.a.send("x");
    char room[8];
    const net::received empty = p.b.recv_from(room);
    EXPECT_EQ(empty.size, 0u);
    EXPECT_FALSE(empty.truncated);
    EXPECT_EQ(empty.from, p.a.local_endpoint());
    EXPECT_EQ(p.b.recv(room), 0u);
    EXPECT_EQ(p.b.recv(room), 1u);
  });
}

TEST(Udp, a_buffer_of_size_zero_takes_a_datagram) {
  with_sockets([] {
    const udp_pair p;
    p.a.send("dropped");
    p.a.send("");
    p.a.send("kept");
    const weft::mutable_buffer none(nullptr, 0);
    const net::received first = p.b.recv_from(none);
    EXPECT_EQ(first.size, 0u);
    EXPECT_TRUE(first.truncated);
    EXPECT_FALSE(p.b.recv_from(none).truncated);
    EXPECT_EQ(text_from(p.b), "kept");
  });
}

TEST(Udp, a_datagram_longer_than_any_packet_is_an_error) {
  with_sockets([] {
    const udp_pair p;
    const std::string much(70'000, 'x');
    EXPECT_EQ(code_of([&](auto& why) { p.a.send(much, why); }), std::errc::message_size);
    p.a.send("still usable");
    EXPECT_EQ(text_from(p.b), "still usable");
  });
}

// ---- several at once ------------------------------------------------------------------------------------------------

TEST(Udp, a_batch_arrives_in_order_with_sizes_senders_and_flags) {
  with_sockets([] {
    const auto to = at_loopback();
    const auto from = at_loopback();
    const net::endpoint there = to.local_endpoint();
    const net::outgoing sent[] = {{"one", there}, {"", there}, {"much too long", there}, {"four", there}};
    from.send_many(sent);
    places p(8, 6);
    ASSERT_EQ(to.recv_many(p.all()), 4u) << "what there is, and it does not wait for more";
    EXPECT_EQ(p.text(0), "one");
    EXPECT_EQ(p.text(1), "");
    EXPECT_EQ(p.text(2), "much t");
    EXPECT_EQ(p.text(3), "four");
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(p.all()[i].from, from.local_endpoint());
      EXPECT_EQ(p.all()[i].truncated, i == 2);
    }
  });
}

TEST(Udp, what_has_no_place_in_a_batch_stays_for_the_next) {
  with_sockets([] {
    const udp_pair p;
    const numbered_datagrams sent(100, 300);
    p.a.send_many(sent.all());  // more than one system call takes
    EXPECT_EQ(texts_from(p.b, 100, 7), sent.texts());
    p.a.send_many(sent.all());
    EXPECT_EQ(texts_from(p.b, 100, 64), sent.texts());
  });
}

// A batch that is not full is taken as the end of what there is, so the next one parks at once.
// req: IO-5
TEST(Udp, no_edge_is_lost_after_a_batch_that_was_not_full) {
  with_sockets([] {
    const udp_pair p;
    const std::size_t n = scaled(2'000);
    auto echo = weft::spawn([&] {
      places room(8, 16);
      for (std::size_t done = 0; done < n;) {
        const std::size_t got = p.b.recv_many(room.all());
        for (std::size_t i = 0; i < got; ++i) p.b.send(room.text(i));
        done += got;
      }
    });
    for (std::size_t i = 0; i < n; ++i) {
      p.a.send(std::to_string(i));
      ASSERT_EQ(text_from(p.a), std::to_string(i));
    }
    echo.join();
  });
}

TEST(Udp, a_batch_of_nothing_does_not_wait) {
  with_sockets([] {
    const udp_pair p;
    EXPECT_EQ(p.a.recv_many({}), 0u);
    p.a.send_many({});
    std::error_code why = std::make_error_code(std::errc::io_error);
    EXPECT_EQ(p.a.send_many({}, why), 0u);
    EXPECT_FALSE(why);
  });
}

TEST(Udp, a_batch_says_how_many_were_sent_before_the_error) {
  with_sockets([] {
    const auto to = at_loopback();
    const auto from = at_loopback();
    const std::string much(70'000, 'x');
    const net::endpoint there = to.local_endpoint();
    const net::outgoing all[] = {{"a", there}, {"b", there}, {much, there}, {"d", there}};
    std::error_code why;
    EXPECT_EQ(from.send_many(all, why), 2u);
    EXPECT_EQ(why, std::errc::message_size);
    EXPECT_EQ(message_of([&] { from.send_many(all); }), "send to " + there.to_string() + ": Message too long");
    EXPECT_EQ(texts_from(to, 4, 4), (std::vector<std::string>{"a", "b", "a", "b"}));
  });
}

// Each sender waits for an answer, so that there is always room for what is on its way.
TEST(Udp, many_senders_and_one_receiver_lose_nothing) {
  with_sockets([] {
    constexpr int senders = 16;
    const int each = static_cast<int>(scaled(100));
    const auto server = at_loopback();
    auto receiver = weft::spawn([&] {
      places room(16, 64);
      std::vector<net::outgoing> answers;
      std::vector<std::string> texts(room.all().size());
      for (int done = 0; done < senders * each;) {
        const std::size_t n = server.recv_many(room.all());
        answers.clear();
        for (std::size_t i = 0; i < n; ++i) {
          texts[i] = room.text(i);
          answers.push_back({texts[i], room.all()[i].from});
        }
        server.send_many(answers);
        done += static_cast<int>(n);
      }
    });
    std::vector<weft::join_handle<int>> all;
    for (int s = 0; s < senders; ++s)
      all.push_back(weft::spawn([&, s] {
        const auto mine = udp_socket::connected_to(server.local_endpoint());
        int answered = 0;
        for (int i = 0; i < each; ++i) {
          const std::string text = std::to_string(s) + ':' + std::to_string(i);
          mine.send(text);
          answered += text_from(mine) == text ? 1 : 0;
        }
        return answered;
      }));
    for (auto& a : all) EXPECT_EQ(a.join(), each);
    receiver.join();
  });
}

TEST(Udp, several_receivers_share_the_datagrams) {
  with_sockets([] {
    const auto server = at_loopback();
    const auto client = udp_socket::connected_to(server.local_endpoint());
    constexpr int receivers = 3;
    const int n = static_cast<int>(scaled(500));
    std::vector<weft::join_handle<int>> all;
    for (int r = 0; r < receivers; ++r)
      all.push_back(weft::spawn([&] {
        int got = 0;
        char room[8];
        for (;;) {
          const net::received d = server.recv_from(room);
          if (d.size == 0) return got;
          ++got;
          server.send_to("ok", d.from);
        }
      }));
    for (int i = 0; i < n; ++i) {
      client.send("x");
      EXPECT_EQ(text_from(client), "ok");
    }
    for (int r = 0; r < receivers; ++r) client.send("");
    int sum = 0;
    for (auto& a : all) sum += a.join();
    EXPECT_EQ(sum, n);
  });
}

// ---- errors ---------------------------------------------------------------------------------------------------------

// req: IO-13
TEST(Udp, nobody_there_is_told_once_and_the_socket_stays_usable) {
  with_sockets([] {
    const auto socket = at_loopback();
    socket.connect(nobody());
    socket.send("is anybody there?");
    char room[8];
    EXPECT_EQ(code_of([&](auto& why) { socket.recv(room, why); }), std::errc::connection_refused);
    EXPECT_EQ(code_of([&](auto& why) { socket.recv_for(1ms, room, why); }), std::errc::timed_out) << "told once";
    const auto friendly = at_loopback();
    socket.connect(friendly.local_endpoint());
    friendly.send_to("yes", socket.local_endpoint());
    EXPECT_EQ(text_from(socket), "yes");
  });
}

// req: IO-13
TEST(Udp, a_parked_receiver_is_told_that_nobody_is_there) {
  with_sockets([] {
    const auto socket = udp_socket::connected_to(nobody());
    for (int round = 0; round < 3; ++round) {
      parked_sign sign;
      auto receiver = weft::spawn([&] {
        char room[8];
        sign.here();
        return message_of([&] { (void)socket.recv_from(room); });
      });
      sign.wait();
      socket.send("x");
      EXPECT_EQ(receiver.join(), "receive from " + socket.remote_endpoint().to_string() + ": Connection refused");
    }
  });
}

// req: IO-13
TEST(Udp, messages_say_operation_address_and_reason) {
  with_sockets([] {
    const auto first = at_loopback();
    const net::endpoint taken = first.local_endpoint();
    const std::string here = taken.to_string();
    EXPECT_EQ(message_of([&] { (void)udp_socket::bind(taken); }), "bind to " + here + ": Address already in use");
    char room[8];
    EXPECT_EQ(message_of([&] { (void)first.recv_from_for(1ms, room); }),
              "receive at " + here + ": Connection timed out");
    EXPECT_EQ(message_of([&] { first.send("x"); }), "send from " + here + ": Destination address required");
    const auto everybody = net::endpoint::v4({255, 255, 255, 255}, 9);
    EXPECT_EQ(message_of([&] { first.send_to("x", everybody); }), "send to 255.255.255.255:9: Permission denied");
  });
}

// req: IO-13
TEST(Udp, sockets_that_are_not_there_are_a_usage_error) {
  with_sockets([] {
    const udp_socket none;
    char room[1];
    EXPECT_THROW((void)none.recv_from(room), weft::usage_error);
    EXPECT_THROW((void)none.recv_many({}), weft::usage_error);
    auto first = at_loopback();
    const udp_socket moved = std::move(first);
    EXPECT_THROW(first.send("x"), weft::usage_error);
    EXPECT_THROW(moved.send_to("x", {}), weft::usage_error);
    EXPECT_THROW(moved.connect({}), weft::usage_error);
    EXPECT_THROW((void)udp_socket::bind({}), weft::usage_error);
    EXPECT_THROW((void)udp_socket::bind(net::endpoint::unix_abstract("x")), weft::usage_error);
    EXPECT_THROW((void)udp_socket::open(net::address_family::local), weft::usage_error);
  });
}

// ---- time limits, cancellation, close -------------------------------------------------------------------------------

// req: IO-2 IO-13
TEST(Udp, a_time_limit_ends_an_operation_and_not_the_socket) {
  with_sockets([] {
    udp_pair p;
    char room[8];
    places several(2, 8);
    const auto soon = [] { return std::chrono::steady_clock::now() + 1ms; };
    EXPECT_EQ(code_of([&](auto& why) { p.b.recv_from_for(1ms, room, why); }), std::errc::timed_out);
    EXPECT_EQ(code_of([&](auto& why) { p.b.recv_until(soon(), room, why); }), std::errc::timed_out);
    EXPECT_EQ(code_of([&](auto& why) { (void)p.b.recv_many_for(1ms, several.all(), why); }), std::errc::timed_out);
    EXPECT_EQ(error_of([&] { (void)p.b.recv_many_until(soon(), several.all()); }), std::errc::timed_out);
    p.b.expires_after(1ms);
    EXPECT_EQ(error_of([&] { (void)p.b.recv_from(room); }), std::errc::timed_out);
    p.b.expires_never();
    p.a.send_for(10s, "in time");
    EXPECT_EQ(p.b.recv_for(10s, room), 7u);
  });
}

// req: IO-2
TEST(Udp, cancellation_ends_a_receive_and_no_datagram_is_lost) {
  with_sockets([] {
    const udp_pair p;
    for (int round = 0; round < 20; ++round) {
      parked_sign sign;
      weft::base::atomic<bool> took{false};
      auto receiver = weft::spawn([&] {
        sign.here();
        const std::string got = text_from(p.b);
        took.store(true, base::release);
        return got;
      });
      sign.wait();
      if (round % 2 == 0) {
        receiver.cancel();
        p.a.send("kept");
      } else {
        p.a.send("kept");  // either of both may win
        receiver.cancel();
      }
      try {
        EXPECT_EQ(receiver.join(), "kept");
      } catch (const weft::task_cancelled&) {
        EXPECT_FALSE(took.load(base::acquire));
      }
      if (!took.load(base::acquire)) {
        EXPECT_EQ(text_from(p.b), "kept");
      }
    }
  });
}

// req: IO-2
TEST(Udp, a_cancelled_task_receives_nothing_though_there_is_something) {
  with_sockets([] {
    const udp_pair p;
    p.a.send("kept");
    auto receiver = weft::spawn([&] {
      while (!weft::this_task::is_cancelled()) weft::yield();
      char room[8];
      std::error_code why;
      return p.b.recv(room, why);  // cancellation is thrown in both forms
    });
    receiver.cancel();
    EXPECT_THROW(receiver.join(), weft::task_cancelled);
    EXPECT_EQ(text_from(p.b), "kept");
  });
}

// req: IO-3
TEST(Udp, close_wakes_whoever_waits) {
  with_sockets([] {
    auto socket = at_loopback();
    parked_sign signs[3];
    std::vector<weft::join_handle<std::error_code>> receivers;
    for (parked_sign& sign : signs)
      receivers.push_back(weft::spawn([&] {
        places room(2, 8);
        sign.here();
        return code_of([&](auto& why) { (void)socket.recv_many(room.all(), why); });
      }));
    for (parked_sign& sign : signs) sign.wait();
    socket.close();
    for (auto& r : receivers) EXPECT_EQ(r.join(), std::errc::operation_canceled);
    socket.close();  // harmless
    EXPECT_FALSE(socket.is_open());
    EXPECT_EQ(socket.native_handle(), -1);
    const net::endpoint there = net::endpoint::loopback(9);
    EXPECT_EQ(code_of([&](auto& why) { socket.send_to("x", there, why); }), std::errc::operation_canceled);
    EXPECT_EQ(code_of([&](auto& why) { socket.connect(there, why); }), std::errc::operation_canceled);
    EXPECT_EQ(message_of([&] { (void)text_from(socket); }), "receive at a closed socket: Operation canceled");
  });
}

// req: IO-4
TEST(Udp, an_arm_beside_a_timer_wins_when_a_datagram_comes) {
  with_sockets([] {
    const udp_pair p;
    auto soon = weft::after(1ms);
    EXPECT_EQ(weft::select(p.b.readable(), soon).index(), 1u);
    p.a.send("x");
    p.a.send("y");
    std::string got;
    for (int i = 0; i < 2; ++i) {
      auto late = weft::after(20s);
      weft::select(p.b.on_readable([&] { got += text_from(p.b); }), late.on_expire([] { FAIL() << "nothing came"; }));
    }
    EXPECT_EQ(got, "xy");
    auto again = weft::after(1ms);
    EXPECT_EQ(weft::select(p.b.readable(), again).index(), 1u);
    EXPECT_EQ(weft::prialt(p.b.readable(), p.b.on_writable([] {})).index(), 1u);
  });
}

TEST(Udp, a_released_socket_can_be_adopted) {
  with_sockets([] {
    auto first = at_loopback();
    const net::endpoint here = first.local_endpoint();
    const auto again = udp_socket::adopt(first.release());
    EXPECT_FALSE(first.is_open());
    EXPECT_EQ(again.local_endpoint(), here);
    udp_socket::connected_to(here).send("x");
    EXPECT_EQ(text_from(again), "x");
  });
}

// ---- families and options -------------------------------------------------------------------------------------------

// Whether there is IPv6 here.
[[nodiscard]] bool has_v6() {
  std::error_code why;
  const auto s = udp_socket::bind(net::endpoint::loopback_v6(0), {}, why);
  return !why;
}

TEST(Udp, ipv6_works) {
  if (!has_v6()) GTEST_SKIP() << "there is no ::1 here";
  with_sockets([] {
    const auto server = udp_socket::bind(net::endpoint::loopback_v6(0));
    const auto client = udp_socket::connected_to(server.local_endpoint());
    client.send("six");
    char room[8];
    const net::received got = server.recv_from(room);
    EXPECT_EQ(got.size, 3u);
    EXPECT_EQ(got.from, client.local_endpoint());
  });
}

TEST(Udp, one_socket_serves_both_families_unless_it_is_v6_only) {
  if (!has_v6()) GTEST_SKIP() << "there is no ::1 here";
  with_sockets([] {
    const auto both = udp_socket::bind(net::endpoint::any_v6(0), {.v6_only = false});
    const auto client = at_loopback();
    client.send_to("four", net::endpoint::loopback(both.local_endpoint().port()));
    char room[8];
    const net::received got = both.recv_from(room);
    EXPECT_EQ(got.from.to_string(), "[::ffff:127.0.0.1]:" + std::to_string(client.local_endpoint().port()));
    both.send_to("back", got.from);
    both.send_to("as four", client.local_endpoint());
    EXPECT_EQ(text_from(client), "back");
    EXPECT_EQ(text_from(client), "as four");

    const auto six = udp_socket::bind(net::endpoint::any_v6(0), {.v6_only = true});
    EXPECT_EQ(code_of([&](auto& why) { six.send_to("x", client.local_endpoint(), why); }),
              std::errc::network_unreachable);
    EXPECT_EQ(code_of([&](auto& why) { client.send_to("x", net::endpoint::loopback_v6(9), why); }),
              std::errc::address_family_not_supported);
  });
}

TEST(Udp, a_link_local_address_without_its_scope_is_told) {
  if (!has_v6()) GTEST_SKIP() << "there is no ::1 here";
  with_sockets([] {
    std::error_code why;
    const auto s = udp_socket::bind(net::endpoint::v6("fe80::1", 0), {}, why);
    EXPECT_FALSE(s.is_open());
    EXPECT_EQ(why, std::errc::invalid_argument);
  });
}

TEST(Udp, sockets_share_a_port_if_all_of_them_say_so) {
  with_sockets([] {
    const auto first = udp_socket::bind(net::endpoint::loopback(0), {.reuse_port = true});
    const auto second = udp_socket::bind(first.local_endpoint(), {.reuse_port = true});
    EXPECT_EQ(second.local_endpoint(), first.local_endpoint());
    std::error_code why;
    EXPECT_FALSE(udp_socket::bind(first.local_endpoint(), {}, why).is_open());
    EXPECT_EQ(why, std::errc::address_in_use);
  });
}

TEST(Udp, options_are_set_and_read) {
  with_sockets([] {
    const auto socket = at_loopback();
    socket.set(net::broadcast{true});
    EXPECT_TRUE(socket.get<net::broadcast>().on);
    socket.set(net::ttl{7});
    EXPECT_EQ(socket.get<net::ttl>().hops, 7);
  });
}

TEST(Udp, a_group_is_heard_while_it_is_joined) {
  with_sockets([] {
    const unsigned loopback = ::if_nametoindex("lo");
    const auto member = udp_socket::bind(net::endpoint::any(0), {.reuse_address = true});
    const auto group = net::endpoint::v4({239, 255, 77, 1}, member.local_endpoint().port());
    const auto sender = at_loopback();
    ip_mreqn by_loopback{};
    by_loopback.imr_ifindex = static_cast<int>(loopback);
    sender.set(net::raw_option<IPPROTO_IP, IP_MULTICAST_IF, ip_mreqn>{by_loopback});
    member.join(group, loopback);
    sender.send_to("to the group", group);
    EXPECT_EQ(text_from(member), "to the group");
    EXPECT_EQ(code_of([&](auto& why) { member.join(group, loopback, why); }), std::errc::address_in_use);
    member.leave(group, loopback);
    EXPECT_EQ(message_of([&] { member.leave(group, loopback); }),
              "leave the group " + group.to_string() + ": Cannot assign requested address");
    EXPECT_EQ(code_of([&](auto& why) { member.join(net::endpoint::loopback(1), 0, why); }),
              std::errc::invalid_argument);
  });
}

// ---- outside threads ------------------------------------------------------------------------------------------------

TEST(Udp, outside_threads_send_and_receive) {
  const std::size_t before = open_descriptors();
  {
    const udp_pair p;
    char room[8];
    EXPECT_EQ(code_of([&](auto& why) { p.a.recv_for(1ms, room, why); }), std::errc::timed_out);
    std::thread other([&] {
      for (int i = 0; i < 100; ++i) p.b.send(text_from(p.b));
    });
    for (int i = 0; i < 100; ++i) {
      p.a.send(std::to_string(i));
      EXPECT_EQ(text_from(p.a), std::to_string(i));
    }
    other.join();
    const numbered_datagrams sent(40, 100);
    p.a.send_many(sent.all());
    EXPECT_EQ(texts_from(p.b, 40, 16), sent.texts());
  }
  EXPECT_EQ(open_descriptors(), before);
}

// req: IO-3
TEST(Udp, close_wakes_an_outside_thread) {
  auto socket = at_loopback();
  std::error_code why;
  weft::base::atomic<bool> begins{false};
  std::thread receiver([&] {
    char room[8];
    begins.store(true, base::release);
    (void)socket.recv_from(room, why);
  });
  until([&] { return begins.load(base::acquire); });
  socket.close();
  receiver.join();
  EXPECT_EQ(why, std::errc::operation_canceled);
}

TEST(Udp, a_task_and_an_outside_thread_talk_while_all_workers_sleep) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const udp_pair p;
    auto echo = rt->spawn([&] {
      for (;;) {
        const std::string text = text_from(p.b);
        p.b.send(text);
        if (text.empty()) return;
      }
    });
    for (std::size_t i = 0; i < scaled(300); ++i) {
      p.a.send("ping");
      EXPECT_EQ(text_from(p.a), "ping");
    }
    p.a.send("");
    EXPECT_EQ(text_from(p.a), "");
    echo.join();
  });
}

}  // namespace
