// Accepting connections while the kernel fails: what concerns one connection is skipped, and a shortage is survived.
#include <weft/net/serve.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "io/faults.hpp"

namespace {

using namespace support::usual;
using namespace support;

script accepts;

const io::kernel_calls& failing_accepts() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.accept4 = [](int fd, sockaddr* from, socklen_t* size, int flags) noexcept {
      return accepts.fails() ? -1 : ::accept4(fd, from, size, flags);
    };
    return k;
  }();
  return calls;
}

const std::vector<int> of_one_connection = {ECONNABORTED, EPROTO, EINTR,        ENETDOWN,   ENOPROTOOPT,
                                            EHOSTDOWN,    ENONET, EHOSTUNREACH, ENETUNREACH};

TEST(AcceptFaults, a_connection_that_failed_before_is_skipped) {
  with_kernel(failing_accepts(), [] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    accepts.play(of_one_connection);
    const auto server = listener.accept();
    EXPECT_EQ(accepts.calls(), of_one_connection.size() + 1);
    client.write_all("x");
    char room[1];
    EXPECT_EQ(server.read_some(room), 1u);
  });
}

TEST(AcceptFaults, an_acceptor_that_waits_skips_them_too) {
  with_kernel(failing_accepts(), [] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    // The first call has found nothing. The failures come together with the connection.
    std::vector<int> errors = {EAGAIN};
    errors.insert(errors.end(), of_one_connection.begin(), of_one_connection.end());
    accepts.play(errors);
    auto acceptor = spawn_and_park([&] { return listener.accept().is_open(); });
    const auto client = net::tcp_stream::connect(listener.local_endpoint());
    EXPECT_TRUE(acceptor.join());
    EXPECT_GT(accepts.calls(), errors.size());
  });
}

TEST(AcceptFaults, a_shortage_is_told_and_the_listener_goes_on) {
  with_kernel(failing_accepts(), [] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    for (const int error : {EMFILE, ENFILE, ENOBUFS, ENOMEM}) {
      const auto client = net::tcp_stream::connect(listener.local_endpoint());
      accepts.play({error, error});
      std::error_code why;
      EXPECT_FALSE(listener.accept(why).is_open());
      EXPECT_EQ(why, std::error_code(error, std::generic_category()));
      EXPECT_EQ(error_of([&] { (void)listener.accept(); }), std::error_code(error, std::generic_category()));
      EXPECT_TRUE(listener.accept().is_open()) << "the connection is still there";
    }
  });
}

// ---- a server without descriptors ------------------------------------------------------------------------------------

// A kernel whose table of descriptors has few places for this runtime while `is_short`. As in Linux, an accept needs a
// place before it looks whether there is a connection.
struct {
  base::atomic<bool> is_short{false};
  base::atomic<int> places{0};
  base::atomic<int> refusals{0};  // accepts that found no place

  // Whether there is a place, which is then taken.
  bool takes() noexcept {
    if (!is_short) return true;
    for (int seen = places.load(); seen > 0;)
      if (places.compare_exchange_weak(seen, seen - 1)) return true;
    errno = EMFILE;
    return false;
  }
} tight;

const io::kernel_calls& tight_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.accept4 = [](int fd, sockaddr* from, socklen_t* size, int flags) noexcept {
      if (!tight.takes()) return ++tight.refusals, errno = EMFILE, -1;
      const int accepted = ::accept4(fd, from, size, flags);
      if (accepted < 0) ++tight.places;
      return accepted;
    };
    k.open = [](const char* path, int flags, mode_t permissions) noexcept {
      if (std::strcmp(path, "/dev/null") == 0 && !tight.takes()) return -1;
      return ::open(path, flags, permissions);
    };
    k.close = [](int fd) noexcept {
      ++tight.places;
      return ::close(fd);
    };
    return k;
  }();
  return calls;
}

// How many attempts there can be in this time, if the pauses between them grow from 5 to 100 ms.
int most_attempts(std::chrono::steady_clock::duration time) {
  int n = 1;
  for (auto pause = 5ms, at = 0ms; at + pause <= time; pause = std::min(2 * pause, 100ms)) {
    at += pause;
    ++n;
  }
  return n + 1;  // one may be going on
}

// req: IO-8
TEST(AcceptFaults, a_server_without_descriptors_closes_its_clients_pauses_and_recovers) {
  at_worker_counts_over(tight_kernel(), [](faulty_runtime& rt) {
    tight.is_short = false;
    auto listener = rt.run([] { return net::tcp_listener(net::endpoint::loopback(0)); });
    const net::endpoint at = listener.local_endpoint();
    base::atomic<int> ended{0};
    auto server = rt.spawn([&] {
      weft::with_scope([&](weft::scope& s) {
        net::serve(listener, s, [&](net::tcp_stream c) {
          char room[8];
          while (const std::size_t n = c.read_some(room)) c.write_all({room, n});
          c.close();
          ++ended;
        });
      });
    });
    const auto is_served = [&] {
      const auto client = net::tcp_stream::connect(at);  // of this thread, with the real kernel
      std::error_code why;
      client.write_all("x", why);
      char room[1];
      return client.read_exactly(room, why) == 1;
    };
    EXPECT_TRUE(is_served());
    until([&] { return ended == 1; });  // its place is not one that the next client could have
    tight.places = tight.refusals = 0;
    const auto begin = std::chrono::steady_clock::now();
    tight.is_short = true;
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(is_served()) << i;
    const int refusals = tight.refusals;
    EXPECT_LE(refusals, most_attempts(std::chrono::steady_clock::now() - begin)) << "it pauses";
    EXPECT_GE(refusals, 4) << "each client needs one";
    tight.is_short = false;
    EXPECT_TRUE(is_served());
    listener.close();
    server.join();
  });
}

}  // namespace
