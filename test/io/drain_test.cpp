// The end of a server: who may finish, who is cancelled, who is left and is named.
#include <weft/net/server.hpp>

#include <unistd.h>

#include <sstream>
#include <string>
#include <vector>

#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;

// Longer than any test: a drain that waits for it hangs, and the watchdog says so.
constexpr auto never = 1h;

[[nodiscard]] net::tcp_listener any_port() { return net::tcp_listener(net::endpoint::loopback(0)); }

// A Unix address that no other process has.
[[nodiscard]] net::endpoint own_name(const std::string& what) {
  return net::endpoint::unix_abstract("weft drain test " + what + " " + std::to_string(::getpid()));
}

void echo_once(const net::socket_stream& s) {
  char room[64];
  const std::size_t n = s.read_some(room);
  s.write_all({room, n});
}

[[nodiscard]] std::string ask(const net::socket_stream& s, std::string_view question) {
  s.write_all(question);
  std::string answer(question.size(), '\0');
  s.read_exactly(answer);
  return answer;
}

// The server has closed the connection, in one way or the other.
[[nodiscard]] bool is_over(const net::socket_stream& s) {
  char room[1];
  std::error_code why;
  return s.read_some(room, why) == 0 && why != std::errc::timed_out;
}

// req: IO-14
TEST(Drain, a_server_without_connections_has_drained_at_once) {
  with_sockets([] {
    net::server server;
    server.serve(any_port(), [](net::tcp_stream s) { echo_once(s); });
    const net::drain_report r = server.drain(never);
    EXPECT_EQ(r.finished, 0u);
    EXPECT_TRUE(r.is_clean());
    EXPECT_EQ(to_string(r), "drained: 0 finished, 0 cancelled");
  });
}

TEST(Drain, a_server_without_listeners_has_drained_at_once) {
  with_sockets([] {
    net::server server;
    EXPECT_TRUE(server.drain(never).is_clean());
  });
}

// req: IO-14
TEST(Drain, work_in_flight_finishes_and_is_counted) {
  with_sockets([] {
    weft::event go;
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      go.wait();
      echo_once(s);
    });
    std::vector<net::tcp_stream> clients;
    for (int i = 0; i < 5; ++i) clients.push_back(net::tcp_stream::connect(at));
    for (const auto& c : clients) c.write_all("x");
    until([&] { return server.connections() == 5; });
    auto opener = weft::spawn([&] {
      until([&] { return server.is_draining(); });
      go.set();
    });
    const net::drain_report r = server.drain(never);
    EXPECT_EQ(r.finished, 5u);
    EXPECT_TRUE(r.is_clean());
    for (const auto& c : clients) EXPECT_EQ(read_to_end(c), "x");
    opener.join();
  });
}

TEST(Drain, what_ended_before_is_not_counted) {
  with_sockets([] {
    net::server server;
    const auto at = server.serve(any_port(), [](net::tcp_stream s) { echo_once(s); });
    EXPECT_EQ(ask(net::tcp_stream::connect(at), "x"), "x");
    until([&] { return server.connections() == 0; });
    EXPECT_EQ(server.drain(never).finished, 0u);
  });
}

// req: IO-14
TEST(Drain, an_idle_connection_leaves_when_the_drain_begins) {
  with_sockets([] {
    net::server server;
    const auto at = server.serve(any_port(), [](net::tcp_stream s, net::server& of) {
      while (of.next_request(s)) echo_once(s);
    });
    const auto client = net::tcp_stream::connect(at);
    EXPECT_EQ(ask(client, "one"), "one");
    EXPECT_EQ(ask(client, "two"), "two");
    const net::drain_report r = server.drain(never);
    EXPECT_EQ(r.finished, 1u);
    EXPECT_TRUE(r.is_clean());
    EXPECT_TRUE(is_over(client));
  });
}

TEST(Drain, what_has_arrived_is_still_served) {
  with_sockets([] {
    weft::event arrived;
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      arrived.wait();
      while (server.next_request(s)) {
        char room[1];
        if (s.read_some(room) == 0) return;
        s.write_all({room, 1});
      }
    });
    const auto client = net::tcp_stream::connect(at);
    client.write_all("abc");
    until([&] { return server.connections() == 1; });
    auto opener = weft::spawn([&] {
      until([&] { return server.is_draining(); });
      arrived.set();
    });
    EXPECT_TRUE(server.drain(never).is_clean());
    EXPECT_EQ(read_to_end(client), "abc");
    opener.join();
  });
}

TEST(Drain, a_handler_may_select_on_the_drain) {
  with_sockets([] {
    net::server server;
    weft::event never_set;
    int told = 0;
    const auto at = server.serve(
        any_port(), [&](net::tcp_stream) { weft::select(never_set.on_set(), server.on_drain([&] { ++told; })); });
    const auto client = net::tcp_stream::connect(at);
    until([&] { return server.connections() == 1; });
    EXPECT_FALSE(server.is_draining());
    EXPECT_TRUE(server.drain(never).is_clean());
    EXPECT_EQ(told, 1);
  });
}

// req: IO-14
TEST(Drain, after_the_limit_the_rest_is_cancelled_and_counted) {
  with_sockets([] {
    net::server server;
    base::atomic<int> unwound{0};
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      struct last_words {
        base::atomic<int>& n;
        ~last_words() { n.fetch_add(1, base::relaxed); }
      } const at_the_end{unwound};
      char room[1];
      (void)s.read_some(room);
    });
    std::vector<net::tcp_stream> clients;
    for (int i = 0; i < 3; ++i) clients.push_back(net::tcp_stream::connect(at));
    until([&] { return server.connections() == 3; });
    const net::drain_report r = server.drain(1ms, never);
    EXPECT_EQ(r.finished, 0u);
    EXPECT_EQ(r.cancelled, 3u);
    EXPECT_TRUE(r.survivors.empty());
    EXPECT_FALSE(r.is_clean());
    EXPECT_EQ(unwound.load(base::relaxed), 3);
    EXPECT_EQ(to_string(r), "drained: 0 finished, 3 cancelled");
    for (const auto& c : clients) EXPECT_TRUE(is_over(c));
  });
}

// req: IO-14 BZ-14
TEST(Drain, a_shielded_handler_is_named_with_the_place_where_it_waits) {
  with_sockets([] {
    weft::event release;
    base::atomic<unsigned> line{0};
    base::atomic<std::uint64_t> id{0};
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream) {
      weft::this_task::set_name("stubborn");
      id.store(weft::this_task::id(), base::relaxed);
      const weft::this_task::shield held;
      line.store(__LINE__ + 1, base::relaxed);
      release.wait();
    });
    const auto client = net::tcp_stream::connect(at);
    until([&] { return line.load(base::relaxed) != 0; });
    net::drain_report r;
    until([&] {
      r = server.drain(0ms, 1ms);
      return r.survivors.size() != 1 || r.survivors[0].task.state == weft::task_state::waiting;
    });
    EXPECT_EQ(r.finished + r.cancelled, 0u);
    ASSERT_EQ(r.survivors.size(), 1u);
    const net::survivor& s = r.survivors[0];
    EXPECT_EQ(s.peer, client.local_endpoint());
    EXPECT_EQ(s.task.id, id.load(base::relaxed));
    EXPECT_EQ(s.task.name, "stubborn");
    EXPECT_EQ(s.task.state, weft::task_state::waiting);
    EXPECT_EQ(s.task.waits_for, "event");
    EXPECT_EQ(s.task.where.line(), line.load(base::relaxed));
    EXPECT_NE(std::string_view(s.task.where.file_name()).find("drain_test.cpp"), std::string_view::npos);
    std::ostringstream text;
    text << r;
    EXPECT_NE(text.str().find("0 cancelled, 1 survived\n  " + s.peer.to_string() + ": #"), std::string::npos)
        << text.str();
    EXPECT_NE(text.str().find("drain_test.cpp:" + std::to_string(s.task.where.line())), std::string::npos)
        << text.str();

    release.set();
    r = server.drain(never);
    EXPECT_EQ(r.finished, 1u);
    EXPECT_TRUE(r.survivors.empty());
  });
}

// req: IO-14 BZ-14
TEST(Drain, a_handler_in_a_blocking_call_is_named_with_the_place_of_the_call) {
  const std::size_t before = open_descriptors();
  const watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt({.workers = workers});  // it may grow, because the one worker is blocked
    rt->run([] {
      support::latch inside, leave;
      unsigned line = 0;
      net::server server;
      const auto at = server.serve(any_port(), [&](net::tcp_stream) {
        line = __LINE__ + 1;
        weft::blocking([&] {
          inside.count_down();
          leave.hold();
        });
      });
      const auto client = net::tcp_stream::connect(at);
      inside.wait();
      net::drain_report r = server.drain(0ms, 1ms);
      ASSERT_EQ(r.survivors.size(), 1u);
      EXPECT_EQ(r.survivors[0].task.state, weft::task_state::blocking);
      EXPECT_EQ(r.survivors[0].task.where.line(), line);
      EXPECT_EQ(r.survivors[0].peer, client.local_endpoint());
      EXPECT_NE(to_string(r).find("is in a blocking call at "), std::string::npos) << to_string(r);
      leave.count_down();
      r = server.drain(never);
      EXPECT_TRUE(r.survivors.empty());
    });
  });
  EXPECT_EQ(open_descriptors(), before) << "descriptors are left open";
}

// req: IO-14
TEST(Drain, clients_are_refused_after_the_stop) {
  with_sockets([] {
    weft::event go;
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      go.wait();
      echo_once(s);
    });
    const auto first = net::tcp_stream::connect(at);
    first.write_all("x");
    until([&] { return server.connections() == 1; });
    server.stop_accepting();
    // The kernel closes the socket when the acceptor has left it, and until then takes connections that it resets.
    until([&] { return error_of([&] { (void)net::tcp_stream::connect(at); }) == std::errc::connection_refused; });
    EXPECT_FALSE(server.is_draining());
    go.set();
    EXPECT_TRUE(server.drain(never).is_clean());
    EXPECT_EQ(read_to_end(first), "x");
    EXPECT_THROW((void)server.serve(any_port(), [](net::tcp_stream) {}), weft::usage_error);
  });
}

// With one worker the acceptor does not run between the connects and the drain: a Unix socket connects at once.
TEST(Drain, connections_in_the_queue_are_served_while_there_is_room) {
  with_sockets([] {
    net::server server;
    const auto at = server.serve(net::unix_listener(own_name("queue")), [](net::unix_stream s) { echo_once(s); });
    std::vector<net::unix_stream> clients;
    for (int i = 0; i < 4; ++i) {
      clients.push_back(net::unix_stream::connect(at));
      clients.back().write_all("x");
    }
    EXPECT_TRUE(server.drain(never).is_clean());
    for (const auto& c : clients) EXPECT_EQ(read_to_end(c), "x");
  });
}

TEST(Drain, connections_in_the_queue_are_refused_when_there_is_no_room) {
  with_sockets([] {
    weft::event go;
    net::server server({.max_connections = 1});
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      go.wait();
      echo_once(s);
    });
    const auto first = net::tcp_stream::connect(at);
    first.write_all("x");
    until([&] { return server.connections() == 1; });
    const auto second = net::tcp_stream::connect(at);
    const auto third = net::tcp_stream::connect(at);
    auto opener = weft::spawn([&] {
      until([&] { return server.is_draining(); });
      EXPECT_TRUE(is_over(second));
      EXPECT_TRUE(is_over(third));
      go.set();
    });
    const net::drain_report r = server.drain(never);
    EXPECT_EQ(r.finished, 1u);
    EXPECT_EQ(read_to_end(first), "x");
    opener.join();
  });
}

TEST(Drain, a_second_drain_tells_the_same) {
  with_sockets([] {
    net::server server;
    const auto at = server.serve(any_port(), [](net::tcp_stream) { wait_for_ever(); });
    const auto client = net::tcp_stream::connect(at);
    until([&] { return server.connections() == 1; });
    EXPECT_EQ(server.drain(0ms, never).cancelled, 1u);
    EXPECT_EQ(server.drain(never).cancelled, 1u);
  });
}

TEST(Drain, an_owner_that_is_cancelled_in_it_cancels_the_handlers) {
  with_sockets([] {
    auto listener = any_port();
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    base::atomic<net::server*> made{nullptr};
    auto owner = weft::spawn([&] {
      net::server server;
      server.serve(std::move(listener), [](net::tcp_stream) { wait_for_ever(); });
      until([&] { return server.connections() == 1; });
      made.store(&server, base::release);
      (void)server.drain(never);
    });
    until([&] { return made.load(base::acquire) != nullptr && made.load(base::acquire)->is_draining(); });
    owner.cancel();
    EXPECT_THROW(owner.join(), weft::task_cancelled);
    EXPECT_TRUE(is_over(client));
  });
}

TEST(Drain, a_server_in_a_scope_that_fails_ends_with_it) {
  with_sockets([] {
    auto listener = any_port();
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    const auto serve_and_fail = [&] {
      weft::with_scope([&](weft::scope& s) {
        weft::event stop;
        net::server server;
        server.serve(std::move(listener), [](net::tcp_stream) { wait_for_ever(); });
        s.spawn([&] { throw failure("elsewhere"); });
        server.serve_until(stop.on_set());
      });
    };
    EXPECT_THROW(serve_and_fail(), failure);
    EXPECT_TRUE(is_over(client));
  });
}

TEST(Drain, a_server_that_is_not_drained_stops_at_once) {
  with_sockets([] {
    net::tcp_stream client;
    net::endpoint at;
    {
      net::server server;
      at = server.serve(any_port(), [](net::tcp_stream) { wait_for_ever(); });
      client = net::tcp_stream::connect(at);
      until([&] { return server.connections() == 1; });
    }
    EXPECT_TRUE(is_over(client));
    EXPECT_EQ(error_of([&] { (void)net::tcp_stream::connect(at); }), std::errc::connection_refused);
  });
}

TEST(Drain, what_a_handler_throws_reaches_the_owner) {
  with_sockets([] {
    weft::event stop;
    net::server server;
    const auto bad = server.serve(any_port(), [](net::tcp_stream) { throw failure("a handler"); });
    const auto good = server.serve(any_port(), [](net::tcp_stream) { wait_for_ever(); });
    const auto bystander = net::tcp_stream::connect(good);
    until([&] { return server.connections() == 1; });
    const auto culprit = net::tcp_stream::connect(bad);
    EXPECT_THROW(server.serve_until(stop.on_set()), failure);
    EXPECT_TRUE(is_over(bystander));
  });
}

TEST(Drain, what_a_handler_throws_meanwhile_is_thrown_by_drain) {
  with_sockets([] {
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream) {
      weft::select(server.on_drain());
      throw failure("a handler");
    });
    const auto client = net::tcp_stream::connect(at);
    until([&] { return server.connections() == 1; });
    EXPECT_THROW((void)server.drain(never), failure);
  });
}

TEST(Drain, a_connection_that_fails_ends_alone) {
  with_sockets([] {
    weft::event stop;
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      echo_once(s);
      stop.set();
      throw std::system_error(std::make_error_code(std::errc::connection_reset));
    });
    EXPECT_EQ(ask(net::tcp_stream::connect(at), "x"), "x");
    server.serve_until(stop.on_set());
    EXPECT_TRUE(server.drain(never).is_clean());
  });
}

// The one place goes from a connection of one listener to that of another.
TEST(Drain, listeners_share_the_limit) {
  with_sockets([] {
    base::atomic<int> now{0};
    const auto count = [&](const net::socket_stream& s) {
      EXPECT_EQ(now.fetch_add(1, base::acq_rel), 0);
      echo_once(s);
      now.fetch_sub(1, base::acq_rel);
    };
    net::server server({.max_connections = 1});
    const auto tcp = server.serve(any_port(), [&](net::tcp_stream s) { count(s); });
    const auto local = server.serve(net::unix_listener(own_name("limit")), [&](net::unix_stream s) { count(s); });
    weft::with_scope([&](weft::scope& s) {
      for (int i = 0; i < 8; ++i) {
        s.spawn([&] { EXPECT_EQ(ask(net::tcp_stream::connect(tcp), "x"), "x"); });
        s.spawn([&] { EXPECT_EQ(ask(net::unix_stream::connect(local), "y"), "y"); });
      }
    });
    EXPECT_TRUE(server.drain(never).is_clean());
  });
}

// req: IO-14
TEST(Drain, a_thousand_idle_connections_leave) {
  with_sockets([] {
    const std::size_t many = under_tsan || under_asan ? 200 : 1000;
    net::server server;
    const auto at =
        server.serve(net::tcp_listener(net::endpoint::loopback(0), {.backlog = 4096}), [&](net::tcp_stream s) {
          while (server.next_request(s)) echo_once(s);
        });
    std::vector<net::tcp_stream> clients;
    for (std::size_t i = 0; i < many; ++i) clients.push_back(net::tcp_stream::connect(at));
    for (const auto& c : clients) EXPECT_EQ(ask(c, "x"), "x");
    EXPECT_EQ(server.connections(), many);
    const net::drain_report r = server.drain(never);
    EXPECT_EQ(r.finished, many);
    EXPECT_TRUE(r.is_clean());
    for (const auto& c : clients) EXPECT_TRUE(is_over(c));
  });
}

TEST(Drain, clients_that_come_and_go_are_all_answered_or_refused) {
  with_sockets([] {
    for (int round = 0; round < 10; ++round) {
      base::atomic<std::size_t> served{0};
      std::size_t answered = 0;
      net::server server({.max_connections = 4});
      const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
        echo_once(s);
        served.fetch_add(1, base::relaxed);
      });
      std::vector<weft::join_handle<bool>> clients;
      for (int i = 0; i < 20; ++i)
        clients.push_back(
            weft::spawn([&] { return !error_of([&] { (void)ask(net::tcp_stream::connect(at), "x"); }); }));
      for (int i = 0; i < round; ++i) weft::yield();
      const net::drain_report r = server.drain(never);
      EXPECT_TRUE(r.is_clean());
      EXPECT_EQ(server.connections(), 0u);
      for (auto& c : clients) answered += c.join() ? 1 : 0;
      EXPECT_EQ(answered, served.load(base::relaxed));
    }
  });
}

TEST(Drain, an_outside_thread_may_own_a_server) {
  const std::size_t before = open_descriptors();
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::event stop;
    net::server server(*rt);
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      echo_once(s);
      stop.set();
      while (server.next_request(s)) echo_once(s);
    });
    const auto client = net::tcp_stream::connect(at);
    EXPECT_EQ(ask(client, "x"), "x");
    server.serve_until(stop.on_set());
    const net::drain_report r = server.drain(never);
    EXPECT_EQ(r.finished, 1u);
    EXPECT_TRUE(is_over(client));
  });
  EXPECT_EQ(open_descriptors(), before);
}

// The acceptors end, and that is no failure of the server.
// req: IO-14
TEST(Drain, a_server_that_has_stopped_accepting_still_waits_for_its_arm) {
  with_sockets([] {
    weft::event stop;
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      while (server.next_request(s)) echo_once(s);
    });
    const auto idle = net::tcp_stream::connect(at);
    EXPECT_EQ(ask(idle, "x"), "x");
    server.stop_accepting();
    auto stopper = weft::spawn([&] {
      EXPECT_EQ(ask(idle, "y"), "y") << "still served";
      stop.set();
    });
    server.serve_until(stop.on_set());
    stopper.join();
    EXPECT_TRUE(server.drain(never).is_clean());
  });
}

// req: IO-14
TEST(Drain, requests_that_a_reader_holds_are_served_though_the_socket_is_silent) {
  with_sockets([] {
    net::server server;
    const auto at = server.serve(any_port(), [&](net::tcp_stream s) {
      weft::buffered_reader in(s);
      while (server.next_request(in)) {
        const auto line = in.read_line();
        if (!line) break;
        s.write_all(*line);
      }
    });
    const auto client = net::tcp_stream::connect(at);
    client.write_all("ab\ncd\n");
    char answers[4];
    client.read_exactly(answers);
    EXPECT_EQ(std::string(answers, 4), "abcd");
    (void)server.drain(never);
  });
}

}  // namespace
