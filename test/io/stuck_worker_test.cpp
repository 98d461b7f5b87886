// A worker is kept by its task, in a system call that Weft does not know of or in a loop. The sockets of all other tasks
// go on, because the other workers poll, and the monitor finds one to do so if nobody does.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "io/net.hpp"
#include "sched/placement.hpp"

namespace {

using namespace support::usual;
using namespace support;
using clock = std::chrono::steady_clock;

// Keeps its thread until it is told to stop.
class captor {
 public:
  enum class by { system_call, loop };

  explicit captor(by how) : how_(how) {
    if (::pipe(pipe_) != 0) std::abort();
  }
  ~captor() {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  captor(const captor&) = delete;
  captor& operator=(const captor&) = delete;

  void hold() {
    holds_.store(true, base::release);
    char byte = 0;
    if (how_ == by::system_call)  // read(2) sleeps like sleep(2), but the test can end it
      EXPECT_EQ(::read(pipe_[0], &byte, 1), 1);
    else
      hold_worker_until([&] { return is_over_.load(base::acquire); });
  }
  void until_held() const {
    until([&] { return holds_.load(base::acquire); });
  }
  void let_go() {
    is_over_.store(true, base::release);
    EXPECT_EQ(::write(pipe_[1], "x", 1), 1);
  }

 private:
  const by how_;
  int pipe_[2];
  base::atomic<bool> holds_{false}, is_over_{false};
};

void echo(const net::tcp_stream& s) {
  char room[16];
  while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
}

// All send at once and wait for their answers. The time of each is that from its own message to its own answer.
void ping_all(const std::vector<net::tcp_stream>& all, std::vector<clock::duration>& times) {
  std::vector<clock::time_point> sent;
  for (const auto& c : all) {
    sent.push_back(clock::now());
    c.write_all("ping");
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    char room[4];
    all[i].read_exactly(room);
    EXPECT_EQ(std::string_view(room, 4), "ping");
    times.push_back(clock::now() - sent[i]);
  }
}

// The time that one exchange in a hundred takes longer than, while one worker is kept from the beginning.
clock::duration late_by(const weft::runtime_options& options, captor::by how) {
  std::vector<clock::duration> times;
  captor keeper(how);
  watched_runtime rt(options);
  std::vector<net::tcp_stream> connections;
  for (int i = 0; i < 64; ++i) {
    auto [client, server] = connected_pair();
    connections.push_back(std::move(client));
    rt->spawn([s = std::move(server)] { echo(s); }).detach();
  }
  ping_all(connections, times);
  times.clear();
  auto kept = rt->spawn([&] { keeper.hold(); });
  keeper.until_held();
  for (int round = 0; round < 20; ++round) ping_all(connections, times);
  keeper.let_go();
  kept.join();
  connections.clear();
  const auto one_in_a_hundred = times.end() - 1 - static_cast<std::ptrdiff_t>(times.size() / 100);
  std::nth_element(times.begin(), one_in_a_hundred, times.end());
  return *one_in_a_hundred;
}

// The goal is 3 ms (bench/echo, mode `stuck`). Here machines are busy with other tests, so the bound only tells a delay
// from a standstill.
// req: IO-7
TEST(StuckWorker, the_sockets_of_others_go_on) {
  if (weft::sched::force_migration) GTEST_SKIP() << "without stealing tasks stay behind a stuck worker";
  constexpr auto bound = 100 * 3ms;
  const watchdog guard(100s, "64 sockets beside a stuck worker");
  const weft::runtime_options pools[] = {{.workers = 1}, {.workers = 2}, {.workers = 2, .elastic = false}};
  for (const captor::by how : {captor::by::system_call, captor::by::loop})
    for (const weft::runtime_options& options : pools) {
      SCOPED_TRACE(testing::Message() << (how == captor::by::loop ? "in a loop, " : "in a system call, ")
                                      << options.workers << (options.elastic ? " workers or more" : " workers"));
      EXPECT_LT(late_by(options, how), bound);
    }
}

}  // namespace
