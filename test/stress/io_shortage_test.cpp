// A server without descriptors for a long time: it does not spin.
// ctest: timeout=600 serial
#include <time.h>

#include <thread>

#include "stress/io.hpp"
#include <weft/net/serve.hpp>

namespace {

using namespace io_stress;

std::chrono::nanoseconds processor_time() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

base::atomic<bool> is_short{false};
base::atomic<std::size_t> refusals{0};

// req: IO-8
TEST(IoShortage, a_server_without_descriptors_takes_little_of_a_processor_and_recovers) {
  const watchdog guard(250s, "a server without descriptors");
  static io::kernel_calls calls = io::real_kernel();
  calls.accept4 = [](int fd, sockaddr* from, socklen_t* size, int flags) noexcept {
    if (!is_short) return ::accept4(fd, from, size, flags);
    ++refusals;
    errno = refusals % 2 == 0 ? EMFILE : ENFILE;
    return -1;
  };
  const std::size_t before = open_descriptors();
  {
    faulty_runtime rt(2, calls);
    auto listener = rt.run([] { return net::tcp_listener(net::endpoint::loopback(0)); });
    auto server = rt.spawn([&] {
      weft::with_scope(
          [&](weft::scope& s) { net::serve(listener, s, [](net::tcp_stream c) { c.write_all("served"); }); });
    });
    const auto at = listener.local_endpoint();
    EXPECT_EQ(read_to_end(net::tcp_stream::connect(at)), "served");
    is_short = true;
    const auto waits = net::tcp_stream::connect(at);
    const auto time = is_soak() ? std::chrono::milliseconds(10'000) : 300ms;
    const auto begin = std::chrono::steady_clock::now();
    const auto used = processor_time();
    std::this_thread::sleep_for(time);
    const auto passed = std::chrono::steady_clock::now() - begin;
    if (is_soak() && !under_asan && !under_tsan) {
      EXPECT_LT((processor_time() - used) * 20, passed) << "less than 5 % of a processor";
    }
    // Pauses of 5, 10, 20, 40, 80 ms, and then of 100 ms; two calls each, because one follows when the spare descriptor
    // was given up, and that one is made again when its time is up.
    EXPECT_LE(refusals.load(), 3 * (7 + static_cast<std::size_t>(passed / 100ms)));
    EXPECT_GE(refusals.load(), 2u);
    is_short = false;
    EXPECT_EQ(read_to_end(waits), "served") << "it has waited in the queue";
    listener.close();
    server.join();
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
