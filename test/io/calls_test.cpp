// Which system calls an operation makes: no more than a server that is written by hand.
#include <string>
#include <utility>

#include "io/fd_record.hpp"
#include "io/kernel.hpp"
#include "io/net.hpp"
#include <weft/detail/fd_handle.hpp>

namespace {

using namespace support::usual;
using namespace support;
namespace io = weft::io;

struct counts {
  base::atomic<int> recv{0}, send{0};
};
counts made;

// A runtime's driver has a table of its own, so calls on the epoll are not among these.
const io::kernel_calls& counting_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.recv = [](int fd, void* to, std::size_t size, int flags) noexcept {
      ++made.recv;
      return io::real_kernel().recv(fd, to, size, flags);
    };
    k.send = [](int fd, const void* from, std::size_t size, int flags) noexcept {
      ++made.send;
      return io::real_kernel().send(fd, from, size, flags);
    };
    return k;
  }();
  return calls;
}

// The server's end of a connection, with the calls that are counted.
io::fd_handle counted(net::tcp_stream&& s) {
  return io::fd_handle(io::fd_record::take_over(s.release(), counting_kernel(), {.short_is_all = true}));
}

// Each request is read whole and is shorter than the room for it. So the next read waits at once, and makes no call that
// would only say EAGAIN.
// req: IO-5
TEST(Calls, a_request_takes_one_recv_and_one_send) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const io::fd_handle h = counted(std::move(server));
    made.recv = made.send = 0;
    constexpr int n = 1'000;
    auto echo = weft::spawn([&] {
      char room[64];
      std::error_code why;
      while (const std::size_t got = io::read_some(h.record(), room, io::limit{}, why))
        io::write_all(h.record(), weft::const_buffer(room, got), io::limit{}, why);
    });
    for (int i = 0; i < n; ++i) {
      client.write_all("request");
      char room[7];
      client.read_exactly(room);
    }
    client.close();
    echo.join();
    EXPECT_EQ(made.send, n);
    EXPECT_GE(made.recv, n + 1);  // and one that finds the end
    EXPECT_LE(made.recv, n + 1 + n / 20) << "calls that find nothing";
  });
}

}  // namespace
