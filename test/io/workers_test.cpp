// Input and output do not depend on which worker does it: workers that leave, that are stuck, and that sleep.
// ctest: uring
#include <string>
#include <thread>
#include <vector>

#include "io/faults.hpp"

namespace {

using namespace support::usual;
using namespace support;

void echo(const net::tcp_stream& s) {
  char room[16];
  while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
}
void ping(const net::tcp_stream& s) {
  char room[4];
  s.write_all("ping");
  s.read_exactly(room);
  ASSERT_EQ(std::string(room, 4), "ping");
}

// Connections whose servers are tasks.
class echoes {
 public:
  explicit echoes(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      auto [client, server] = connected_pair();
      clients.push_back(std::move(client));
      tasks_.push_back(weft::spawn([s = std::move(server)] { echo(s); }));
    }
  }
  void end() {
    clients.clear();
    for (auto& t : tasks_) t.join();
  }
  std::vector<net::tcp_stream> clients;

 private:
  std::vector<weft::join_handle<void>> tasks_;
};

TEST(Workers, what_a_worker_that_has_left_has_begun_goes_on) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing the pool does not grow";
  const watchdog guard(100s, "workers that leave");
  const std::size_t before = open_descriptors();
  {
    watched_runtime rt({.workers = 1, .keep_alive = 1ms});
    rt->run([&] {
      echoes all(8);
      for (int round = 0; round < 3; ++round) {
        const auto retired = rt->elasticity().retired;
        const auto grown = rt->elasticity().grown;
        base::atomic<bool> over{false};
        // The only worker is stuck, so others come, and do the input and output.
        auto stuck = weft::spawn([&] { hold_worker_until([&] { return over.load(); }); });
        until([&] { return rt->elasticity().grown > grown; });
        for (int i = 0; i < 20; ++i)
          for (const auto& c : all.clients) ping(c);
        over = true;
        stuck.join();
        weft::sleep_for(1ms);
        std::size_t idle = 0;
        until([&] {
          ping(all.clients[++idle % all.clients.size()]);
          weft::sleep_for(2ms);
          return rt->elasticity().retired > retired;
        });
        for (const auto& c : all.clients) ping(c);
      }
      all.end();
    });
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(Workers, one_that_is_stuck_does_not_stop_the_sockets_of_the_others) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing tasks stay behind a stuck worker";
  const watchdog guard(100s, "a stuck worker");
  for (const weft::runtime_options& options :
       {weft::runtime_options{.workers = 1}, weft::runtime_options{.workers = 2, .elastic = false}}) {
    watched_runtime rt(options);
    rt->run([] {
      echoes all(64);
      base::atomic<bool> over{false};
      auto stuck = weft::spawn([&] { hold_worker_until([&] { return over.load(); }); });
      for (int i = 0; i < 10; ++i)
        for (const auto& c : all.clients) ping(c);
      over = true;
      stuck.join();
      all.end();
    });
  }
}

// Idle connections cost nothing: sooner or later there is a while in which no thread of the process does anything.
// req: W-4
TEST(Workers, while_all_connections_are_idle_no_thread_runs) {
  const watchdog guard(100s, "idle connections");
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    constexpr std::size_t n = 100;
    std::vector<tcp_pair> pairs;
    for (std::size_t i = 0; i < n; ++i) pairs.push_back(connected_pair());
    std::vector<weft::join_handle<void>> tasks;
    for (auto& p : pairs) tasks.push_back(rt->spawn([&] { echo(p.server); }));
    for (const auto& p : pairs) ping(p.client);
    until([&] {
      const activity earlier = activity_of_others();
      std::this_thread::sleep_for(30ms);
      return activity_of_others() == earlier;
    });
    for (auto& p : pairs) {
      ping(p.client);
      p.client.close();
    }
    for (auto& t : tasks) t.join();
  });
}

}  // namespace
