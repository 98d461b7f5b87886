// A library that knows nothing of fibers: libpq. Forty queries of 50 ms share eight connections, and one worker has time
// for all of them and for the notifications that come in between.
//
// The server is the one that libpq's environment variables name, such as PGHOST.
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "pq_connection.hpp"

using namespace std::chrono_literals;

int main() {
  weft::runtime rt({.workers = 1});
  return rt.run([] {
    // A channel is a pool: whoever receives a connection has it to itself.
    constexpr int connections = 8;
    auto [give_back, take] = weft::make_channel<pq::connection>(connections);
    for (int i = 0; i < connections; ++i) (void)give_back.send(pq::connection());

    pq::connection ears;
    ears.query("listen done");

    const auto start = std::chrono::steady_clock::now();
    weft::with_scope([&](weft::scope& s) {
      for (int i = 1; i <= 40; ++i)
        s.spawn([&, i] {
          pq::connection db = *take.recv();
          db.query("select pg_sleep(0.05)");
          db.query("select pg_notify('done', $1)", {std::to_string(i)});
          (void)give_back.send(std::move(db));
        });
      auto limit = weft::after(10s);
      for (int heard = 0; heard < 40;) {
        if (ears.take_notification())
          ++heard;
        else if (weft::select(ears.readable(), limit).index() == 1)
          throw std::runtime_error("only " + std::to_string(heard) + " notifications in ten seconds");
      }
    });
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
    std::printf("40 queries of 50 ms on %d connections and one worker, and as many notifications: %lld ms\n",
                connections, static_cast<long long>(took.count()));
    return 0;
  });
}
