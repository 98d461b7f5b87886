// Waiting for descriptors that others read and write.
#include <weft/descriptor.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "io/net.hpp"

namespace {

using namespace support::usual;
using namespace support;

struct pipe_ends {
  int from = -1, to = -1;
  pipe_ends() {
    int both[2];
    if (::pipe2(both, O_CLOEXEC) == 0) from = both[0], to = both[1];
  }
  ~pipe_ends() {
    ::close(from);
    ::close(to);
  }
};

TEST(Descriptor, waits_until_there_is_something_to_read) {
  with_sockets([] {
    const pipe_ends p;
    auto reader = weft::spawn([&] {
      weft::wait_readable(p.from);
      char c = 0;
      EXPECT_EQ(::read(p.from, &c, 1), 1);
      return c;
    });
    weft::sleep_for(1ms);
    ASSERT_EQ(::write(p.to, "ab", 2), 2);
    EXPECT_EQ(reader.join(), 'a');
    weft::wait_readable(p.from);  // there is still something, though no edge comes any more
    EXPECT_TRUE(weft::wait_readable_for(1ms, p.from));
    char c = 0;
    EXPECT_EQ(::read(p.from, &c, 1), 1);
    EXPECT_FALSE(weft::wait_readable_for(1ms, p.from));
  });
}

TEST(Descriptor, can_be_waited_for_many_times) {
  with_sockets([] {
    const pipe_ends p;
    const auto d = weft::descriptor::borrow(p.from);
    constexpr int n = 2'000;
    auto writer = weft::spawn([&] {
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(::write(p.to, "x", 1), 1);
        if (i % 3 == 0) weft::yield();
      }
    });
    for (int i = 0; i < n; ++i) {
      d.wait_readable();
      char c = 0;
      ASSERT_EQ(::read(p.from, &c, 1), 1);
    }
    writer.join();
  });
}

TEST(Descriptor, several_may_wait_for_the_same_number) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    const int fd = server.native_handle();
    auto a = weft::spawn([&] { weft::wait_readable(fd); });
    auto b = weft::spawn([&] { weft::wait_readable(fd); });
    weft::wait_writable(fd);
    weft::sleep_for(1ms);
    client.write_all("x");
    a.join();
    b.join();
  });
}

TEST(Descriptor, the_end_of_a_pipe_is_readable) {
  with_sockets([] {
    pipe_ends p;
    auto reader = weft::spawn([&] { weft::wait_readable(p.from); });
    weft::sleep_for(1ms);
    ::close(std::exchange(p.to, -1));
    reader.join();
  });
}

TEST(Descriptor, a_regular_file_is_always_ready) {
  with_sockets([] {
    const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    const auto d = weft::descriptor::own(fd);
    d.wait_readable();
    EXPECT_EQ(weft::prialt(d.readable(), weft::otherwise).index(), 0u);
  });
}

// req: IO-2 IO-3
TEST(Descriptor, cancellation_and_close_end_a_wait) {
  with_sockets([] {
    const pipe_ends p;
    auto d = weft::descriptor::borrow(p.from);
    auto cancelled = weft::spawn([&] { d.wait_readable(); });
    auto closed = weft::spawn([&] { return error_of([&] { d.wait_readable(); }); });
    weft::sleep_for(1ms);
    cancelled.cancel();
    EXPECT_THROW(cancelled.join(), weft::task_cancelled);
    d.close();
    EXPECT_EQ(closed.join(), std::errc::operation_canceled);
    EXPECT_EQ(::write(p.to, "x", 1), 1) << "a borrowed descriptor stays open";
  });
}

// req: IO-13
TEST(Descriptor, one_that_does_not_exist_is_told) {
  with_sockets([] {
    EXPECT_EQ(error_of([] { weft::wait_readable(-1); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(error_of([] { weft::wait_writable(100'000); }), std::errc::bad_file_descriptor);
  });
}

TEST(Descriptor, outside_threads_wait_too) {
  const pipe_ends p;
  EXPECT_FALSE(weft::wait_readable_for(1ms, p.from));
  weft::wait_writable(p.to);
}

}  // namespace
