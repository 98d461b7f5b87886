// Ten thousand idle connections: no thread of the runtime runs while nothing arrives, and a byte on any of them is
// answered nevertheless.
// ctest: timeout=300 serial
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include "base/random.hpp"
#include "io/net.hpp"
#include "support/monitor_state.hpp"

namespace {

using namespace support::usual;
using namespace support;

// The clients are a process of their own: both ends of ten thousand connections are more descriptors than a process may
// have here. It is a fork of this one, so it makes bare system calls and nothing else.
class clients {
 public:
  clients() {
    if (::pipe(orders_) != 0 || ::pipe(answers_) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ < 0) std::abort();
    if (pid_ == 0) obey();
    ::close(orders_[0]);
    ::close(answers_[1]);
  }
  ~clients() {
    ::close(orders_[1]);  // they end then, and their connections with them
    ::close(answers_[0]);
    ::waitpid(pid_, nullptr, 0);
  }
  clients(const clients&) = delete;
  clients& operator=(const clients&) = delete;

  // So many of them begin to connect to that port.
  void connect(std::uint16_t port, std::uint32_t count) { order({port, count}); }
  [[nodiscard]] bool are_connected() { return answer(); }
  // That one sends a byte. Returns whether the same byte came back.
  [[nodiscard]] bool get_an_echo(std::uint32_t which) {
    order({0, which});
    return answer();
  }

 private:
  struct message {
    std::uint16_t port;  // 0: the byte of a client
    std::uint32_t number;
  };
  void order(message m) {
    if (::write(orders_[1], &m, sizeof m) != sizeof m) std::abort();
  }
  [[nodiscard]] bool answer() {
    bool is_well = false;
    return ::read(answers_[0], &is_well, 1) == 1 && is_well;
  }

  // The child.
  [[noreturn]] void obey() noexcept {
    ::close(orders_[1]);
    ::close(answers_[0]);
    message m{};
    while (::read(orders_[0], &m, sizeof m) == sizeof m) {
      const bool is_well = m.port != 0 ? connect_all(m) : echo(fds_[m.number]);
      if (::write(answers_[1], &is_well, 1) != 1) break;
    }
    ::_exit(0);
  }
  bool connect_all(message m) noexcept {
    const sockaddr_in to{AF_INET, htons(m.port), {htonl(INADDR_LOOPBACK)}, {}};
    const timeval patience_of_reads{60, 0};
    const linger with_a_reset{1, 0};  // so that no port stays occupied after the test
    for (std::uint32_t i = 0; i < m.number; ++i) {
      const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
      if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return false;
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience_of_reads, sizeof patience_of_reads);
      ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &with_a_reset, sizeof with_a_reset);
      fds_[i] = fd;
    }
    return true;
  }
  static bool echo(int fd) noexcept {
    char byte = 'x';
    if (::write(fd, &byte, 1) != 1) return false;
    byte = 0;
    return ::read(fd, &byte, 1) == 1 && byte == 'x';
  }

  int orders_[2], answers_[2];
  pid_t pid_;
  std::vector<int> fds_ = std::vector<int>(20'000);  // allocated before the fork
};

void echo(const net::tcp_stream& s, base::atomic<std::uint32_t>& ended) {
  char room[16];
  std::error_code why;  // the end is a reset
  while (const std::size_t n = s.read_some(room, why)) s.write_all({room, n}, why);
  ended.fetch_add(1);
}

// Waits until the monitor rests and no thread of the runtime has run for a while.
activity until_at_rest(weft::sched::scheduler& of) {
  activity at_rest;
  until([&] {
    at_rest = activity_of_others("weft-");
    std::this_thread::sleep_for(100ms);  // three times as long as an alert monitor rests
    return monitor_rests(of) && activity_of_others("weft-") == at_rest;
  });
  return at_rest;
}

// A thread that does not run makes no system call and uses no processor.
// req: IO-7
TEST(IdleConnections, ten_thousand_of_them_make_no_system_call_and_use_no_processor) {
  const std::size_t wanted = scaled(10'000);
  const auto n = static_cast<std::uint32_t>(std::min(wanted, raise_descriptor_limit(wanted + 200) - 200));
  for (const std::size_t workers : {1, 2}) {
    SCOPED_TRACE(testing::Message() << workers << " workers");
    const watchdog guard(140s, "idle connections");
    base::atomic<std::uint32_t> ended{0};
    watched_runtime rt(workers);
    clients far;  // they leave before the runtime waits for its tasks
    rt->run([&] {
      const net::tcp_listener listener(net::endpoint::loopback(0), net::listen_options{.backlog = 4096});
      far.connect(listener.local_endpoint().port(), n);
      for (std::uint32_t i = 0; i < n; ++i) weft::spawn([&ended, s = listener.accept()] { echo(s, ended); }).detach();
    });
    ASSERT_TRUE(far.are_connected());

    const activity before = until_at_rest(rt.core());
    EXPECT_GT(before.switches, 0u) << "the threads of the runtime have other names now";
    std::this_thread::sleep_for(2s);
    const activity after = activity_of_others("weft-");
    EXPECT_EQ(after.switches, before.switches);
    EXPECT_EQ(after.turns, before.turns);
    EXPECT_EQ(after.cpu_ns, before.cpu_ns);

    base::random random(workers);
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(far.get_an_echo(random.below(n)));
    EXPECT_EQ(ended.load(), 0u);
  }
}

}  // namespace
