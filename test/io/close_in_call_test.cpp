// Closing a descriptor while another task is inside of a system call on it. The number must stay taken until that call
// is over, because otherwise the call could work on a descriptor of somebody else.
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "io/faults.hpp"
#include "io/fd_record.hpp"

namespace {

using namespace support::usual;
using namespace support;

// A kernel whose calls wait until the test lets them go on, and that sees one number being closed.
struct {
  base::atomic<int> number{-1};
  base::atomic<bool> is_inside{false};
  base::atomic<bool> may_go_on{true};
  base::atomic<int> closed{0};

  void expect(int fd) {
    number = fd;
    is_inside = may_go_on = false;
    closed = 0;
  }
  void enter(int fd) noexcept {
    if (fd != number) return;
    is_inside = true;
    hold_worker_until([this] { return may_go_on.load(); });
  }
} held;

const io::kernel_calls& holding_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.recv = [](int fd, void* to, std::size_t size, int flags) noexcept {
      held.enter(fd);
      return ::recv(fd, to, size, flags);
    };
    k.send = [](int fd, const void* from, std::size_t size, int flags) noexcept {
      held.enter(fd);
      return ::send(fd, from, size, flags);
    };
    k.accept4 = [](int fd, sockaddr* from, socklen_t* size, int flags) noexcept {
      held.enter(fd);
      return ::accept4(fd, from, size, flags);
    };
    k.close = [](int fd) noexcept {
      if (fd == held.number) ++held.closed;
      return ::close(fd);
    };
    return k;
  }();
  return calls;
}

// `subject` is closed by this thread while call() is inside of the kernel. Returns what call() says.
template <class Subject, class Call>
std::error_code close_during(faulty_runtime& rt, Subject& subject, Call call) {
  const int fd = subject.native_handle();
  held.expect(fd);
  auto caller = rt.spawn([&] {
    std::error_code why;
    call(why);
    return why;
  });
  until([] { return held.is_inside.load(); });
  subject.close();
  EXPECT_FALSE(subject.is_open());
  EXPECT_EQ(held.closed.load(), 0);
  EXPECT_NE(::fcntl(fd, F_GETFD), -1) << "the number is still taken";
  const int stranger = ::fcntl(0, F_DUPFD_CLOEXEC, 0);
  EXPECT_NE(stranger, fd) << "nobody else gets it";
  held.may_go_on = true;
  const std::error_code why = caller.join();
  EXPECT_EQ(held.closed.load(), 1) << "whoever left last has given it back";
  ::close(stranger);
  return why;
}

// req: IO-3
TEST(CloseInCall, a_reader_gets_operation_canceled_and_the_number_is_given_back_after_it) {
  at_worker_counts_over(holding_kernel(), [](faulty_runtime& rt) {
    auto pair = rt.run([] { return connected_pair(); });
    const std::error_code why = close_during(rt, pair.server, [&](std::error_code& error) {
      char room[8];
      (void)pair.server.read_some(room, error);
    });
    EXPECT_EQ(why, std::errc::operation_canceled);
  });
}

// req: IO-3
TEST(CloseInCall, what_the_call_has_taken_is_not_lost) {
  at_worker_counts_over(holding_kernel(), [](faulty_runtime& rt) {
    auto pair = rt.run([] { return connected_pair(); });
    pair.client.write_all("kept");
    until_buffered(pair.server, 4);
    std::string got;
    const std::error_code why = close_during(rt, pair.server, [&](std::error_code& error) {
      char room[8];
      got.assign(room, pair.server.read_some(room, error));
    });
    EXPECT_FALSE(why) << why.message();
    EXPECT_EQ(got, "kept");
  });
}

// req: IO-3
TEST(CloseInCall, a_writer_gets_operation_canceled) {
  at_worker_counts_over(holding_kernel(), [](faulty_runtime& rt) {
    auto pair = rt.run([] { return connected_pair(); });
    fill(pair.server);
    const std::error_code why =
        close_during(rt, pair.server, [&](std::error_code& error) { (void)pair.server.write_all("x", error); });
    EXPECT_EQ(why, std::errc::operation_canceled);
  });
}

// req: IO-3
TEST(CloseInCall, an_acceptor_gets_operation_canceled) {
  at_worker_counts_over(holding_kernel(), [](faulty_runtime& rt) {
    auto listener = rt.run([] { return net::tcp_listener(net::endpoint::loopback(0)); });
    const std::error_code why =
        close_during(rt, listener, [&](std::error_code& error) { (void)listener.accept(error); });
    EXPECT_EQ(why, std::errc::operation_canceled);
  });
}

// req: IO-3
TEST(CloseInCall, an_outside_thread_in_a_call_gets_operation_canceled) {
  const std::size_t before = open_descriptors();
  {
    faulty_runtime rt(1, holding_kernel());
    auto pair = rt.run([] { return connected_pair(); });
    held.expect(pair.server.native_handle());
    std::error_code why;
    std::thread reader([&] {
      char room[8];
      (void)pair.server.read_some(room, why);
    });
    until([] { return held.is_inside.load(); });
    pair.server.close();
    EXPECT_EQ(held.closed.load(), 0);
    held.may_go_on = true;
    reader.join();
    EXPECT_EQ(why, std::errc::operation_canceled);
    EXPECT_EQ(held.closed.load(), 1);
  }
  EXPECT_EQ(open_descriptors(), before);
}

// ---- duplicates -------------------------------------------------------------------------------------------------------

// Events that the kernel tells of one record.
struct {
  base::atomic<std::uint32_t> index{UINT32_MAX};
  base::atomic<int> events{0};
} heard;

const io::kernel_calls& listening_kernel() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.epoll_wait = [](int epoll, epoll_event* events, int most, const timespec* timeout) noexcept {
      const int found = io::real_kernel().epoll_wait(epoll, events, most, timeout);
      for (int i = 0; i < found; ++i)
        if (static_cast<std::uint32_t>(events[i].data.u64) == heard.index) ++heard.events;
      return found;
    };
    return k;
  }();
  return calls;
}

// req: IO-3
TEST(CloseInCall, the_kernel_tells_nothing_of_a_closed_descriptor_whose_duplicate_stays_open) {
  with_kernel(listening_kernel(), [] {
    auto pair = connected_pair();
    auto witness = connected_pair();
    heard.index = pair.server.record().index();
    auto reader = spawn_and_park([&] {
      char room[8];
      std::error_code why;
      (void)pair.server.read_some(room, why);
      return why;
    });
    const int duplicate = ::fcntl(pair.server.native_handle(), F_DUPFD_CLOEXEC, 0);
    ASSERT_GE(duplicate, 0);
    pair.server.close();
    EXPECT_EQ(reader.join(), std::errc::operation_canceled);
    heard.events = 0;
    pair.client.write_all("nobody waits for this");
    // The kernel tells of events in the order in which they come, so this one is behind.
    auto other = spawn_and_park([&] {
      char room[1];
      return witness.server.read_some(room);
    });
    witness.client.write_all("x");
    EXPECT_EQ(other.join(), 1u);
    EXPECT_EQ(heard.events.load(), 0);
    ::close(duplicate);
  });
}

}  // namespace
