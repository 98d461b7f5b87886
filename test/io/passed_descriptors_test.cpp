// Descriptors that are passed over Unix sockets: they arrive, none is left open, and none is inherited.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "io/net.hpp"
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;
using net::unix_stream;

// A stream of its own that tells who it is, as the other side sees it.
void expect_talks(const weft::descriptor& passed, const net::tcp_stream& with) {
  ASSERT_EQ(::write(passed.native_handle(), "hi", 2), 2);
  char room[4];
  EXPECT_EQ(with.read_some(room), 2u);
}

TEST(PassedDescriptors, arrive_with_their_bytes) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    auto [client, server] = connected_pair();
    const int fds[] = {client.native_handle(), server.native_handle()};
    a.send_descriptors("two", fds);
    client.close();  // what was passed is a copy
    char room[16];
    const net::received_descriptors got = b.recv_descriptors(room);
    EXPECT_EQ(std::string(room, got.size), "two");
    ASSERT_EQ(got.descriptors.size(), 2u);
    expect_talks(got.descriptors[0], server);
    for (const weft::descriptor& d : got.descriptors)
      EXPECT_EQ(::fcntl(d.native_handle(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  });
}

TEST(PassedDescriptors, can_be_made_streams_again) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    auto [client, server] = connected_pair();
    a.send_descriptors("x", std::array{client.native_handle()});
    char room[16];
    net::received_descriptors got = b.recv_descriptors(room);
    ASSERT_EQ(got.descriptors.size(), 1u);
    const auto again = net::tcp_stream::adopt(got.descriptors[0].release());
    again.write_all("hello");
    EXPECT_EQ(server.read_some(room), 5u);
  });
}

TEST(PassedDescriptors, go_with_the_first_byte_of_many) {
  with_sockets([] {
    const std::string all = pattern(3 << 20);
    auto [a, b] = unix_stream::pair();
    auto sender = weft::spawn([&, s = std::move(a)] { s.send_descriptors(all, std::array{STDIN_FILENO}); });
    std::string room(5000, '\0');
    const net::received_descriptors got = b.recv_descriptors(room);
    EXPECT_EQ(got.descriptors.size(), 1u);
    EXPECT_EQ(room.substr(0, got.size) + read_to_end(b), all);
    sender.join();
  });
}

TEST(PassedDescriptors, are_waited_for_and_a_stream_without_them_is_read_as_well) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    auto receiver = weft::spawn([&] {
      char room[4];
      return b.recv_descriptors(room).descriptors.size();
    });
    weft::sleep_for(1ms);
    a.send_descriptors("x", std::array{STDIN_FILENO});
    EXPECT_EQ(receiver.join(), 1u);
    a.send_descriptors("plain", {});
    char room[8];
    EXPECT_EQ(b.recv_descriptors(room).size, 5u);
    a.close();
    const net::received_descriptors end = b.recv_descriptors(room);
    EXPECT_EQ(end.size, 0u);
    EXPECT_TRUE(end.descriptors.empty());
  });
}

// Two messages are not read as one, or nobody would know which descriptors belong to which.
TEST(PassedDescriptors, of_two_messages_stay_apart) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    a.send_descriptors("a", std::array{STDIN_FILENO});
    a.send_descriptors("b", std::array{STDIN_FILENO, STDIN_FILENO});
    char room[8];
    EXPECT_EQ(b.recv_descriptors(room).descriptors.size(), 1u);
    EXPECT_EQ(b.recv_descriptors(room).descriptors.size(), 2u);
  });
}

TEST(PassedDescriptors, that_nobody_receives_are_not_left_open) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    a.send_descriptors("x", std::array{STDIN_FILENO});
    a.send_descriptors("y", std::array{STDIN_FILENO});
    char room[1];
    EXPECT_EQ(b.read_some(room), 1u);
  });
}

TEST(PassedDescriptors, as_many_as_the_kernel_takes_and_not_more) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    std::vector<int> many(253, STDIN_FILENO);
    a.send_descriptors("x", many);
    char room[1];
    EXPECT_EQ(b.recv_descriptors(room).descriptors.size(), 253u);
    many.push_back(STDIN_FILENO);
    std::error_code why;
    EXPECT_EQ(a.send_descriptors("x", many, why), 0u);
    EXPECT_EQ(why, std::errc::invalid_argument);
  });
}

// req: IO-13
TEST(PassedDescriptors, what_cannot_be_sent_or_received_is_an_error) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    const std::array one{STDIN_FILENO};
    std::error_code why;
    EXPECT_EQ(a.send_descriptors("", one, why), 0u);
    EXPECT_EQ(why, std::errc::invalid_argument) << "they need a byte to go with";
    EXPECT_EQ(error_of([&] { a.send_descriptors("x", std::array{-1}); }), std::errc::bad_file_descriptor);
    EXPECT_EQ(error_of([&] { (void)b.recv_descriptors(weft::mutable_buffer(nullptr, 0)); }),
              std::errc::invalid_argument);
    b.close();
    EXPECT_EQ(error_of([&] { a.send_descriptors("x", one); }), std::errc::broken_pipe);
    char room[1];
    EXPECT_EQ(error_of([&] { (void)b.recv_descriptors(room); }), std::errc::operation_canceled);
  });
}

// Numbers above this one cannot be had while it lives.
class limit_of_numbers {
 public:
  explicit limit_of_numbers(int first_refused) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit now = before_;
    now.rlim_cur = static_cast<rlim_t>(first_refused);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &now), 0);
  }
  ~limit_of_numbers() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  limit_of_numbers(const limit_of_numbers&) = delete;
  limit_of_numbers& operator=(const limit_of_numbers&) = delete;

 private:
  rlimit before_{};
};

int next_free_number() {
  const int fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
  ::close(fd);
  return fd;
}

TEST(PassedDescriptors, without_room_for_all_of_them_none_is_kept_and_the_bytes_are_read) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    a.send_descriptors("abc", std::vector<int>(5, STDIN_FILENO));
    const std::size_t before = open_descriptors();
    char room[4];
    std::error_code why;
    {
      const limit_of_numbers tight(next_free_number() + 2);  // room for some, and not for five
      const net::received_descriptors got = b.recv_descriptors(room, why);
      EXPECT_EQ(std::string(room, got.size), "abc");
      EXPECT_TRUE(got.descriptors.empty());
    }
    EXPECT_EQ(why, std::errc::too_many_files_open);
    EXPECT_EQ(open_descriptors(), before);
    a.send_descriptors("d", std::array{STDIN_FILENO});
    EXPECT_EQ(b.recv_descriptors(room).descriptors.size(), 1u) << "the stream works on";
  });
}

// req: IO-2
TEST(PassedDescriptors, a_cancelled_call_has_received_nothing) {
  with_sockets([] {
    auto [a, b] = unix_stream::pair();
    auto receiver = weft::spawn([&] {
      char room[4];
      std::error_code why;
      (void)b.recv_descriptors(room, why);
    });
    weft::sleep_for(1ms);
    receiver.cancel();
    EXPECT_THROW(receiver.join(), weft::task_cancelled);
    a.send_descriptors("x", std::array{STDIN_FILENO});
    char room[4];
    EXPECT_EQ(b.recv_descriptors(room).descriptors.size(), 1u);
    b.expires_after(1ms);
    EXPECT_EQ(error_of([&] { (void)b.recv_descriptors(room); }), std::errc::timed_out);
  });
}

TEST(PassedDescriptors, outside_threads_pass_them_too) {
  const std::size_t before = open_descriptors();
  {
    auto [a, b] = unix_stream::pair();
    a.send_descriptors("x", std::array{STDIN_FILENO});
    char room[4];
    EXPECT_EQ(b.recv_descriptors(room).descriptors.size(), 1u);
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
