// Many connections, of which some are dropped in the middle of a request: nothing is left of them.
// ctest: timeout=3600 serial
#include <algorithm>
#include <vector>

#include "stress/io.hpp"
#include <weft/net/serve.hpp>

namespace {

using namespace io_stress;

constexpr std::size_t request_size = 64;

void answer_requests(const net::tcp_stream& s) {
  char room[request_size];
  std::error_code why;
  while (s.read_exactly(room, why) == request_size) s.write_all(room);
}

// A client with a few requests. One of a hundred is dropped in the middle, by an end or by a reset.
void ask(net::tcp_stream c, std::uint64_t seed) {
  base::random random(seed);
  const std::string request = pattern(request_size);
  for (int i = 0; i < 5; ++i) {
    if (random.below(100) == 0) {
      c.write_all({request.data(), random.below(request_size)});
      if (random.below(2) == 0) reset(c);
      return;
    }
    c.write_all(request);
    char room[request_size];
    c.read_exactly(room);
    ASSERT_EQ(std::string_view(room, request_size), request);
  }
}

// The addresses 127.0.0.1 to 127.0.0.4, because each has only 28,232 ports for its clients.
std::vector<net::tcp_listener> listen_everywhere() {
  std::vector<net::tcp_listener> all;
  for (std::uint8_t host = 1; host <= 4; ++host)
    all.emplace_back(net::endpoint::v4({127, 0, 0, host}, 0), net::listen_options{.backlog = 4096});
  return all;
}

// All connections are open at the same time, before the first asks.
void one_round(std::size_t connections, std::uint64_t seed) {
  auto listeners = listen_everywhere();
  weft::with_scope([&](weft::scope& s) {
    for (const auto& l : listeners) s.spawn([&] { net::serve(l, s, [](net::tcp_stream c) { answer_requests(c); }); });
    std::vector<net::tcp_stream> clients;
    for (std::size_t i = 0; i < connections; ++i)
      clients.push_back(net::tcp_stream::connect(listeners[i % listeners.size()].local_endpoint()));
    std::vector<weft::child<void>> asking;
    for (std::size_t i = 0; i < connections; ++i)
      asking.push_back(s.spawn([c = std::move(clients[i]), seed, i]() mutable { ask(std::move(c), seed + i); }));
    for (auto& a : asking) a.join();
    for (auto& l : listeners) l.close();
  });
}

void leave_nothing_behind(std::size_t connections) {
  const watchdog guard(std::chrono::seconds(is_soak() ? 3'000 : 250), "many connections");
  const std::size_t room = raise_descriptor_limit(2 * connections + 200);
  const std::size_t n = std::min(connections, (room - 200) / 2);
  const std::size_t before = open_descriptors();
  {
    watched_runtime rt(2);
    std::vector<std::size_t> memory;
    std::size_t open = 0;
    for (std::uint64_t round = 0; round < 5; ++round) {
      rt->run([&] { one_round(n, round * n); });
      if (round == 0) open = open_descriptors();
      EXPECT_EQ(open_descriptors(), open) << "in round " << round;
      memory.push_back(rss());
    }
    // The first rounds fill pools and caches.
    if (!under_asan && !under_tsan) {
      EXPECT_LT(memory[4], memory[2] + memory[2] / 10 + (std::size_t{2} << 20));
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(IoConnections, dropped_in_the_middle_of_a_request_leave_nothing_behind) {
  leave_nothing_behind(soaked(300, 10'000));
}

TEST(IoConnections, fifty_thousand_leave_nothing_behind) {
  constexpr std::size_t n = 50'000;
  if (!is_soak()) GTEST_SKIP() << "only in a soak";
  if (raise_descriptor_limit(2 * n + 200) < 2 * n + 200) GTEST_SKIP() << "there are not so many descriptors";
  if (available_memory() < std::size_t{6} << 30) GTEST_SKIP() << "there is too little memory";
  leave_nothing_behind(n);
}

// Clients that send a byte now and then, and never a request. The server gives each so much time for its header; others
// are served meanwhile. Both ends of a connection, each with its task, take some pages.
TEST(IoConnections, slow_clients_are_closed_at_their_deadline_and_others_are_served) {
  const watchdog guard(std::chrono::seconds(is_soak() ? 3'000 : 250), "slow clients");
  const std::size_t wanted = soaked(300, 10'000);
  const std::size_t n = std::min(wanted, (raise_descriptor_limit(2 * wanted + 200) - 200) / 2);
  const std::size_t before = open_descriptors();
  const std::size_t memory = rss();
  // Both ends share the workers. So many slow clients are slower, and all have more time: the server is not to be
  // overloaded, and those who do not dawdle need a while, too.
  const auto time_for_a_byte = 20ms + n * 40us;
  const auto time_for_a_header = 300ms + n * 200us;
  at_worker_counts([&](std::size_t workers) {
    if (workers > 2) return;
    watched_runtime rt(workers);
    rt->run([&] {
      auto listeners = listen_everywhere();
      weft::with_scope([&](weft::scope& s) {
        for (const auto& l : listeners)
          s.spawn([&] {
            net::serve(l, s, [&](net::tcp_stream c) {
              char room[request_size];
              if (weft::with_timeout(time_for_a_header, [&] { c.read_exactly(room); })) c.write_all(room);
            });
          });
        std::vector<weft::child<bool>> slow;
        for (std::size_t i = 0; i < n; ++i)
          slow.push_back(s.spawn([&, i] {
            const auto c = net::tcp_stream::connect(listeners[i % listeners.size()].local_endpoint());
            std::error_code why;
            char room[1];
            for (int bytes = 0; bytes < 60; ++bytes) {  // fewer than a request has
              (void)c.write_all("x", why);
              if (why) return true;
              const std::size_t got = c.read_some_for(time_for_a_byte, room, why);
              if (why != std::errc::timed_out) return got == 0;
            }
            return c.read_some(room, why) == 0;  // it was accepted late
          }));
        for (int i = 0; i < 50; ++i) {
          const auto c = net::tcp_stream::connect(listeners[0].local_endpoint());
          const std::string request = pattern(request_size);
          c.write_all(request);
          EXPECT_EQ(read_to_end(c), request);
        }
        std::size_t closed = 0;
        for (auto& one : slow) closed += one.join() ? 1 : 0;
        EXPECT_EQ(closed, n);
        for (auto& l : listeners) l.close();
      });
    });
  });
  if (!under_asan && !under_tsan) {
    EXPECT_LT(status("VmHWM") * 1024, memory + n * (std::size_t{48} << 10) + (std::size_t{16} << 20));
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
