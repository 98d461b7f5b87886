// A server: one task for each connection, a limit, shortage of descriptors, its end.
// ctest: uring
#include <weft/net/serve.hpp>

#include <sys/resource.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;

void echo(const net::tcp_stream& s) {
  char room[512];
  while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
}

TEST(Serve, every_connection_has_its_task_and_close_ends_it) {
  with_sockets([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const net::endpoint at = listener.local_endpoint();
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(listener, s, [](net::tcp_stream c) { echo(c); }); });
      std::vector<net::tcp_stream> clients;
      for (int i = 0; i < 20; ++i) clients.push_back(net::tcp_stream::connect(at));
      for (auto& c : clients) c.write_all("hello");
      for (auto& c : clients) {
        char room[5];
        c.read_exactly(room);
        EXPECT_EQ(std::string(room, 5), "hello");
      }
      listener.close();
    });
  });
}

TEST(Serve, no_more_connections_at_a_time_than_allowed) {
  with_sockets([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const net::endpoint at = listener.local_endpoint();
    base::atomic<int> now{0};
    base::atomic<int> most{0};
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] {
        net::serve(listener, s,
                   [&](net::tcp_stream c) {
                     const int n = now.fetch_add(1, base::acq_rel) + 1;
                     int seen = most.load(base::relaxed);
                     while (n > seen && !most.compare_exchange_weak(seen, n, base::relaxed, base::relaxed)) {}
                     echo(c);
                     now.fetch_sub(1, base::acq_rel);
                   },
                   {.max_connections = 3});
      });
      std::vector<weft::child<void>> clients;
      for (int i = 0; i < 12; ++i)
        clients.push_back(s.spawn([&] {
          const auto c = net::tcp_stream::connect(at);
          c.write_all("x");
          char room[1];
          c.read_exactly(room);
        }));
      for (auto& c : clients) c.join();
      listener.close();
    });
    EXPECT_LE(most.load(base::relaxed), 3);
    EXPECT_GT(most.load(base::relaxed), 0);
  });
}

TEST(Serve, a_connection_that_fails_ends_alone) {
  with_sockets([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const net::endpoint at = listener.local_endpoint();
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(listener, s, [](net::tcp_stream c) { echo(c); }); });
      {
        const auto rude = net::tcp_stream::connect(at);
        rude.write_all("x");
        const linger at_once{1, 0};
        ASSERT_EQ(::setsockopt(rude.native_handle(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
      }
      const auto polite = net::tcp_stream::connect(at);
      polite.write_all("y");
      char room[1];
      polite.read_exactly(room);
      listener.close();
    });
  });
}

// req: IO-2
TEST(Serve, cancellation_ends_it) {
  with_sockets([] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    auto server = weft::spawn([&] {
      weft::with_scope([&](weft::scope& s) { net::serve(listener, s, [](net::tcp_stream c) { echo(c); }); });
    });
    weft::sleep_for(1ms);
    server.cancel();
    EXPECT_THROW(server.join(), weft::task_cancelled);
  });
}

// Not under ASan, which needs a descriptor itself to look at an object (UBSan's check of types).
// While there are no descriptors, clients are told at once instead of waiting in the queue; afterwards all is well.
// req: IO-8
TEST(ServeNoAsan, survives_a_shortage_of_descriptors) {
  watched_runtime rt(2);
  rt->run([] {
    net::tcp_listener listener(net::endpoint::loopback(0));
    const net::endpoint at = listener.local_endpoint();
    weft::with_scope([&](weft::scope& s) {
      s.spawn([&] { net::serve(listener, s, [](net::tcp_stream c) { echo(c); }); });
      {
        const auto warm = net::tcp_stream::connect(at);  // everything that the runtime opens itself is open now
        warm.write_all("x");
        char room[1];
        warm.read_exactly(room);
      }
      const auto client = net::tcp_stream::connect(at);
      weft::sleep_for(5ms);
      rlimit before{};
      ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
      // A socket for one more client, and none for its server.
      const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      ASSERT_GE(fd, 0);
      const rlimit tight{static_cast<rlim_t>(fd), before.rlim_max};
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
      ASSERT_EQ(::connect(fd, at.data(), at.size()), 0);
      {
        const auto refused = net::tcp_stream::adopt(fd);
        char room[1];
        std::error_code why;
        EXPECT_EQ(refused.read_some_for(5s, room, why), 0u) << "closed by the server";
        EXPECT_NE(why, std::errc::timed_out);
      }
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
      const auto later = net::tcp_stream::connect(at);
      later.write_all("z");
      char room[1];
      later.read_exactly(room);
      listener.close();
    });
  });
}

}  // namespace
