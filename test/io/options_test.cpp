// Options of sockets: what is set is read again, and what is refused says which option it was.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include <weft/net/options.hpp>

#include "io/kernel.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
namespace net = weft::net;
using weft::io::kernel_calls;
using weft::io::real_kernel;

class test_socket {
 public:
  explicit test_socket(int domain = AF_INET, int type = SOCK_STREAM) : fd_(::socket(domain, type, 0)) {}
  ~test_socket() { ::close(fd_); }
  test_socket(const test_socket&) = delete;
  test_socket& operator=(const test_socket&) = delete;
  [[nodiscard]] bool exists() const { return fd_ >= 0; }
  [[nodiscard]] net::option_socket options() const { return {fd_, real_kernel()}; }

  template <class Option>
  void set(const Option& o) const {
    net::set_option(options(), o, "the test's socket");
  }
  template <class Option>
  [[nodiscard]] Option get() const {
    return net::get_option<Option>(options(), "the test's socket");
  }

 private:
  int fd_;
};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::system_error& e) {
    return e.what();
  }
  return "no std::system_error";
}

template <class Flag>
void can_be_switched(const test_socket& s) {
  SCOPED_TRACE(std::string(Flag::label()));
  s.set(Flag{true});
  EXPECT_TRUE(s.get<Flag>().on);
  s.set(Flag{false});
  EXPECT_FALSE(s.get<Flag>().on);
  EXPECT_EQ(s.get<Flag>(), Flag{false});
}

TEST(Options, flags_are_switched_on_and_off) {
  const test_socket tcp;
  can_be_switched<net::no_delay>(tcp);
  can_be_switched<net::reuse_address>(tcp);
  can_be_switched<net::reuse_port>(tcp);
  const test_socket udp(AF_INET, SOCK_DGRAM);
  can_be_switched<net::broadcast>(udp);
  if (const test_socket v6(AF_INET6); v6.exists()) can_be_switched<net::v6_only>(v6);
}

TEST(Options, buffers_get_at_least_the_size_that_is_set) {
  const test_socket s;
  s.set(net::receive_buffer{16384});
  EXPECT_GE(s.get<net::receive_buffer>().bytes, 16384);
  s.set(net::send_buffer{16384});
  EXPECT_GE(s.get<net::send_buffer>().bytes, 16384);
}

TEST(Options, keep_alive_sets_what_is_given_and_leaves_the_rest) {
  const test_socket s;
  const auto before = s.get<net::keep_alive>();
  EXPECT_FALSE(before.on);
  s.set(net::keep_alive{.idle = 30s});
  EXPECT_EQ(s.get<net::keep_alive>(), (net::keep_alive{true, 30s, before.interval, before.count}));
  const net::keep_alive all{.idle = 20s, .interval = 5s, .count = 4};
  s.set(all);
  EXPECT_EQ(s.get<net::keep_alive>(), all);
  s.set(net::keep_alive{.on = false});
  EXPECT_EQ(s.get<net::keep_alive>(), (net::keep_alive{false, 20s, 5s, 4}));
}

TEST(Options, linger_has_a_time_or_none) {
  const test_socket s;
  EXPECT_EQ(s.get<net::linger>().time, std::nullopt);
  s.set(net::linger{0s});
  EXPECT_EQ(s.get<net::linger>().time, 0s);
  s.set(net::linger{7s});
  EXPECT_EQ(s.get<net::linger>().time, 7s);
  s.set(net::linger{});
  EXPECT_EQ(s.get<net::linger>(), net::linger{});
}

TEST(Options, times_and_numbers_are_read_as_they_were_set) {
  const test_socket v4;
  v4.set(net::user_timeout{1500ms});
  EXPECT_EQ(v4.get<net::user_timeout>().time, 1500ms);
  v4.set(net::ttl{5});
  EXPECT_EQ(v4.get<net::ttl>().hops, 5);
  if (const test_socket v6(AF_INET6); v6.exists()) {
    v6.set(net::ttl{6});
    EXPECT_EQ(v6.get<net::ttl>().hops, 6);
  }
}

TEST(Options, any_other_option_is_set_by_its_numbers) {
  using priority = net::raw_option<SOL_SOCKET, SO_PRIORITY, int>;
  const test_socket s;
  s.set(priority{3});
  EXPECT_EQ(s.get<priority>().value, 3);
}

// req: IO-13
TEST(Options, a_refusal_names_the_option_and_the_socket_in_both_forms) {
  const net::option_socket closed(-1, real_kernel());
  std::error_code error;
  net::set_option(closed, net::no_delay{}, error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  (void)net::get_option<net::keep_alive>(closed, error);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  EXPECT_EQ(message_of([&] { net::set_option(closed, net::no_delay{}, "127.0.0.1:80"); }),
            "set option no_delay of 127.0.0.1:80: Bad file descriptor");
  EXPECT_EQ(message_of([&] { (void)net::get_option<net::linger>(closed, "127.0.0.1:80"); }),
            "get option linger of 127.0.0.1:80: Bad file descriptor");
  using mark = net::raw_option<1, 2, int>;
  EXPECT_EQ(message_of([&] { net::set_option(closed, mark{}, "127.0.0.1:80"); }),
            "set option raw_option<1, 2> of 127.0.0.1:80: Bad file descriptor");

  const test_socket tcp;
  net::set_option(tcp.options(), net::no_delay{}, error);
  EXPECT_FALSE(error);
  const test_socket local(AF_UNIX);
  EXPECT_NE(message_of([&] { local.set(net::no_delay{}); }).find("set option no_delay of the test's socket: "),
            std::string::npos);
  EXPECT_NE(message_of([&] { local.set(net::ttl{}); }).find("set option ttl"), std::string::npos);
}

TEST(Options, a_value_that_does_not_fit_is_refused_and_not_cut_off) {
  const test_socket s;
  const std::int64_t large = std::int64_t{1} << 32;
  const auto before = s.get<net::receive_buffer>();
  EXPECT_NE(message_of([&] { s.set(net::receive_buffer{large}); }).find("Invalid argument"), std::string::npos);
  EXPECT_NE(message_of([&] { s.set(net::receive_buffer{-1}); }).find("Invalid argument"), std::string::npos);
  EXPECT_EQ(s.get<net::receive_buffer>(), before);
  for (const std::int64_t bad : {large, std::int64_t{-1}}) {
    const std::chrono::seconds time(bad);
    EXPECT_NE(message_of([&] { s.set(net::linger{time}); }).find("linger"), std::string::npos);
    EXPECT_NE(message_of([&] { s.set(net::keep_alive{.idle = time}); }).find("keep_alive"), std::string::npos);
    EXPECT_NE(message_of([&] { s.set(net::keep_alive{.interval = time}); }).find("keep_alive"), std::string::npos);
    EXPECT_NE(message_of([&] { s.set(net::user_timeout{std::chrono::milliseconds(bad)}); }).find("user_timeout"),
              std::string::npos);
  }
  EXPECT_NE(message_of([&] { s.set(net::keep_alive{.count = -1}); }).find("keep_alive"), std::string::npos);
  EXPECT_NE(message_of([&] { s.set(net::ttl{256}); }).find("ttl"), std::string::npos);
  EXPECT_NE(message_of([&] { s.set(net::ttl{-5}); }).find("ttl"), std::string::npos);
  EXPECT_FALSE(s.get<net::keep_alive>().on);
  EXPECT_EQ(s.get<net::linger>().time, std::nullopt);
}

// The n-th system call of an option fails, for each n: the error comes out, and nothing is called after it.
base::atomic<int> calls_left{0};

TEST(Options, a_system_call_that_fails_ends_it) {
  kernel_calls failing = real_kernel();
  failing.setsockopt = [](int fd, int level, int name, const void* value, socklen_t size) noexcept {
    if (calls_left.fetch_sub(1) > 0) return ::setsockopt(fd, level, name, value, size);
    errno = ENOBUFS;
    return -1;
  };
  failing.getsockopt = [](int fd, int level, int name, void* value, socklen_t* size) noexcept {
    if (calls_left.fetch_sub(1) > 0) return ::getsockopt(fd, level, name, value, size);
    errno = ENOBUFS;
    return -1;
  };
  for (int n = 0; n < 4; ++n) {
    SCOPED_TRACE(n);
    const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
    const net::option_socket s(fd, failing);
    std::error_code error;
    calls_left = n;
    net::set_option(s, net::keep_alive{.idle = 9s, .interval = 9s, .count = 9}, error);
    EXPECT_EQ(error, std::errc::no_buffer_space);
    EXPECT_EQ(calls_left.load(), -1);
    calls_left = n;
    (void)net::get_option<net::keep_alive>(s, error);
    EXPECT_EQ(error, std::errc::no_buffer_space);
    EXPECT_EQ(calls_left.load(), -1);
    calls_left = n % 2;
    net::set_option(s, net::ttl{3}, error);
    EXPECT_EQ(error, std::errc::no_buffer_space);
    ::close(fd);
  }
}

}  // namespace
