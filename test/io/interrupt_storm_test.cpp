// Signals that interrupt system calls, a thousand times a second and in every thread: nothing ends early, and no byte is
// lost.
#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "io/faults.hpp"
#include "io/files.hpp"

namespace {

using namespace support::usual;
using namespace support;
using clock = std::chrono::steady_clock;

// While it lives, every thread of the process gets a SIGALRM each millisecond, whose handler does not restart calls.
class interrupt_storm {
 public:
  interrupt_storm() {
    struct sigaction count{};
    count.sa_handler = [](int) { ++interrupts(); };
    ::sigaction(SIGALRM, &count, &before_);
    constexpr itimerval each_ms{{0, 1000}, {0, 1000}};
    ::setitimer(ITIMER_REAL, &each_ms, nullptr);  // for whichever thread the kernel chooses
    thread_ = std::thread([this] {
      while (!is_over_) {
        interrupt_all();
        std::this_thread::sleep_for(1ms);
      }
    });
  }
  ~interrupt_storm() {
    is_over_ = true;
    thread_.join();
    constexpr itimerval none{};
    ::setitimer(ITIMER_REAL, &none, nullptr);
    ::signal(SIGALRM, SIG_IGN);  // drops one that is pending
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  interrupt_storm(const interrupt_storm&) = delete;
  interrupt_storm& operator=(const interrupt_storm&) = delete;

  static base::atomic<int>& interrupts() {
    static constinit base::atomic<int> count{0};
    return count;
  }

 private:
  static void interrupt_all() {
    DIR* threads = ::opendir("/proc/self/task");
    if (threads == nullptr) return;
    while (const dirent* e = ::readdir(threads)) {
      const int id = std::atoi(e->d_name);
      if (id > 0) ::syscall(SYS_tgkill, ::getpid(), id, SIGALRM);
    }
    ::closedir(threads);
  }
  struct sigaction before_{};
  base::atomic<bool> is_over_{false};
  std::thread thread_;
};

TEST(InterruptStorm, sockets_of_tasks_lose_nothing_and_wait_their_time) {
  with_sockets([] {
    const interrupt_storm storm;
    const int before = storm.interrupts();
    const std::string all = pattern(std::size_t{1} << 20);
    auto [client, server] = connected_pair();
    auto echo = weft::spawn([s = std::move(server)] {
      char room[3000];
      while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
      s.shutdown(net::half::write);
    });
    auto [from, to] = std::move(client).split();
    auto writer = weft::spawn([&all, half = std::move(to)] { half.write_all(all); });
    EXPECT_EQ(read_to_end(from), all);
    writer.join();
    echo.join();

    const net::tcp_listener listener(net::endpoint::loopback(0));
    std::error_code why;
    const auto begin = clock::now();
    EXPECT_FALSE(listener.accept_for(20ms, why).is_open());
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_GE(clock::now() - begin, 20ms);
    until([&] { return storm.interrupts() > before + 10; });
  });
}

TEST(InterruptStorm, sockets_of_threads_lose_nothing_and_wait_their_time) {
  const std::size_t before = open_descriptors();
  {
    const interrupt_storm storm;
    const net::tcp_listener listener(net::endpoint::loopback(0));
    std::thread echo([&] {
      const auto s = listener.accept();
      char room[3000];
      while (const std::size_t n = s.read_some(room)) s.write_all({room, n});
    });
    auto client = net::tcp_stream::connect(listener.local_endpoint());
    char room[64];
    const auto begin = clock::now();
    std::error_code why;
    EXPECT_EQ(client.read_some_for(20ms, room, why), 0u);
    EXPECT_EQ(why, std::errc::timed_out);
    EXPECT_GE(clock::now() - begin, 20ms);
    for (int i = 0; i < 2'000; ++i) {
      client.write_all("ping");
      client.read_exactly({room, 4});
      ASSERT_EQ(std::string(room, 4), "ping");
    }
    client.close();
    echo.join();
  }
  EXPECT_EQ(open_descriptors(), before);
}

using FileStorm = file_test::leaves_no_descriptor;

TEST_F(FileStorm, files_lose_nothing) {
  const std::string all = pattern(std::size_t{1} << 20);
  file_test::in_thread_and_tasks([&] {
    const interrupt_storm storm;
    for (int i = 0; i < 5; ++i) {
      file_test::file f = file_test::file::open(dir / "f", {.write = true, .create = true, .truncate = true});
      f.write_all_at(all, 0);
      f.data_sync();
      std::string got(all.size(), '-');
      EXPECT_EQ(f.read_at(got, 0), all.size());
      EXPECT_EQ(got, all);
      EXPECT_EQ(weft::fs::read_file(dir / "f"), all);
    }
  });
}

}  // namespace
