// Data, ends and resets that come at any moment between a short read and the park: none is lost.
// ctest: timeout=7200
#include <thread>

#include "stress/io.hpp"

namespace {

using namespace io_stress;

// Each byte meets the reader inside of a call, on its way to the park, or parked.
// req: IO-5
TEST(IoEdge, no_byte_is_lost_between_a_short_read_and_the_park) {
  in_rounds(20'000, 10'000'000, [](std::size_t rounds) {
    auto [client, server] = connected_pair();
    auto echo = weft::spawn([&s = server] {
      char room[64];  // every read is short
      while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
    });
    base::random random(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      const char sent = static_cast<char>(i);
      client.write_all({&sent, 1});
      if (i % 4 == 0) dawdle(random, 4'000);
      char got;
      client.read_exactly({&got, 1});
      ASSERT_EQ(got, sent);
    }
    client.close();
    echo.join();
  });
}

// A few bytes, and then the end or a reset.
// req: IO-5
TEST(IoEdge, no_end_and_no_reset_is_lost_behind_a_short_read) {
  in_rounds(2'000, 10'000'000, [](std::size_t rounds) {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    base::random random(rounds);
    for (std::size_t i = 0; i < rounds; ++i) {
      auto client = net::tcp_stream::connect(listener.local_endpoint());
      auto server = listener.accept();
      std::string got;
      auto reader = weft::spawn([&] {
        char room[64];
        std::error_code why;
        while (const std::size_t n = server.read_some(room, why)) got.append(room, n);
        return why;
      });
      const std::string_view sent = std::string_view("abc").substr(random.below(4));
      if (i % 2 == 0) weft::yield();
      if (!sent.empty()) {
        dawdle(random, 5'000);
        client.write_all(sent);
      }
      dawdle(random, 5'000);
      const bool by_reset = random.below(2) == 0;
      if (by_reset)
        reset(client);
      else
        client.shutdown(net::half::write);
      const std::error_code why = reader.join();
      ASSERT_EQ(why, by_reset ? std::make_error_code(std::errc::connection_reset) : std::error_code());
      ASSERT_EQ(got, sent);
      if (!by_reset) reset(client);  // leaves no port behind that nobody may use for a minute
    }
  });
}

// The other end is a thread, and the workers sleep, or are about to.
// req: IO-5
TEST(IoEdge, no_byte_is_lost_that_comes_while_all_workers_sleep) {
  const watchdog guard(std::chrono::seconds(is_soak() ? 7'000 : 250), "bytes for workers that sleep");
  const std::size_t rounds = soaked(4'000, 1'000'000) / std::size(worker_counts) + 1;
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    auto pair = connected_pair();
    auto echo = rt->spawn([&] {
      char room[16];
      while (const std::size_t n = pair.server.read_some(room)) pair.server.write_all({room, n});
    });
    base::random random(workers);
    for (std::size_t i = 0; i < rounds; ++i) {
      dawdle(random, 60'000);  // the workers spin for 20 µs
      char got;
      pair.client.write_all("x");
      pair.client.read_exactly({&got, 1});
    }
    pair.client.close();
    echo.join();
  });
}

}  // namespace
