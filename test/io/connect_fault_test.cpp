// Connecting when the kernel says what it seldom says, and the options of a connection.
#include "io/connecting.hpp"

#include <array>

namespace {

using namespace connect_test;

// The kernel's answer for each address 10.0.0.N: a number of errno.
constexpr std::array answers{0, ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, EADDRNOTAVAIL, ETIMEDOUT, ECONNRESET, EACCES};

io::kernel_calls answering(const fake_names& names) {
  io::kernel_calls k = names.kernel();
  k.connect = [](int fd, const sockaddr* to, socklen_t size) noexcept {
    const endpoint e(to, size);
    if (e.address().rfind("10.0.0.", 0) != 0) return ::connect(fd, to, size);
    errno = answers[static_cast<std::size_t>(e.address().back() - '0')];
    return -1;
  };
  return k;
}

// req: IO-10
TEST(ConnectFault, what_the_kernel_says_is_the_error_and_the_socket_is_closed) {
  const fake_names names;
  const io::kernel_calls kernel = answering(names);
  with_sockets([&] {
    for (std::size_t i = 1; i < answers.size(); ++i) {
      const std::error_code expected(answers[i], std::generic_category());
      std::error_code why;
      const std::string host = std::to_string(i) + ".test";
      EXPECT_FALSE(reach(kernel, host, 80, {}, why).is_open());
      EXPECT_EQ(why, expected);
      EXPECT_EQ(message_of([&] { (void)reach(kernel, host, 80); }),
                "connect to \"" + host + "\" port 80 at 10.0.0." + std::to_string(i) + ":80: " + expected.message());
      // The same by address.
      const io::fd_handle h = io::open_socket(kernel, AF_INET, SOCK_STREAM, io::tcp_traits, why);
      io::connect(h.record(), endpoint::v4({10, 0, 0, static_cast<std::uint8_t>(i)}, 80), io::limit(), why);
      EXPECT_EQ(why, expected);
    }
  });
}

TEST(ConnectFault, an_address_that_fails_in_any_way_is_followed_by_the_next) {
  const fake_names names;
  const io::kernel_calls kernel = answering(names);
  names.know("host.test", {"10.0.0.2", "10.0.0.4", "10.0.0.7", "127.0.0.1"});
  with_sockets([&] {
    const lan here;
    EXPECT_TRUE(reach(kernel, "host.test", here.port(), {.attempt_delay = for_ever}).is_open());
  });
}

// The error of a connection to an address that this machine does not have, from the kernel itself.
TEST(ConnectFault, a_local_address_of_another_machine_is_not_available) {
  with_sockets([] {
    const lan here;
    const connect_options o{.local = endpoint::v4({192, 0, 2, 1}, 0)};
    std::error_code why;
    EXPECT_FALSE(net::tcp_stream::connect("127.0.0.1", here.port(), o, why).is_open());
    EXPECT_EQ(why, std::errc::address_not_available);
  });
}

// The first calls do what they should, and say something else.
base::atomic<int> false_answers{0};
base::atomic<int> false_answer{0};
io::kernel_calls lying(const fake_names& names, int number, int times) {
  io::kernel_calls k = names.kernel();
  false_answer = number;
  false_answers = times;
  k.connect = [](int fd, const sockaddr* to, socklen_t size) noexcept {
    const int result = ::connect(fd, to, size);
    if (false_answers.fetch_sub(1) <= 0) return result;
    errno = false_answer.load();
    return -1;
  };
  return k;
}

// req: IO-10
TEST(ConnectFault, a_connect_that_goes_on_already_is_waited_for) {
  const fake_names names;
  for (const int number : {EALREADY, EINTR}) {
    with_sockets([&] {
      const io::kernel_calls kernel = lying(names, number, 1);
      const lan here;
      std::error_code why;
      EXPECT_TRUE(reach(kernel, "127.0.0.1", here.port(), {}, why).is_open()) << why.message();
      false_answers = 1;
      const io::fd_handle h = io::open_socket(kernel, AF_INET, SOCK_STREAM, io::tcp_traits, why);
      io::connect(h.record(), here.listener().local_endpoint(), io::limit(), why);
      EXPECT_FALSE(why) << why.message();
    });
  }
}

// req: IO-10
TEST(ConnectFault, a_connect_that_goes_on_for_ever_ends_with_the_time_limit) {
  const fake_names names;
  const io::kernel_calls kernel = lying(names, EALREADY, 1 << 30);
  with_sockets([&] {
    const lan here;
    std::error_code why;
    EXPECT_FALSE(reach(kernel, "127.0.0.1", here.port(), {.timeout = 5ms}, why).is_open());
    EXPECT_EQ(why, std::errc::timed_out);
  });
}

TEST(ConnectFault, without_a_descriptor_for_a_socket_the_error_is_that) {
  const fake_names names;
  io::kernel_calls kernel = names.kernel();
  kernel.socket = [](int, int, int) noexcept {
    errno = EMFILE;
    return -1;
  };
  names.know("host.test", {"127.0.0.1", "::1"});
  with_sockets([&] {
    std::error_code why;
    EXPECT_FALSE(reach(kernel, "host.test", 80, {}, why).is_open());
    EXPECT_EQ(why, std::errc::too_many_files_open);
  });
}

// ---- options ---------------------------------------------------------------------------------------------------------

TEST(ConnectOptions, are_those_of_the_stream) {
  with_sockets([] {
    const lan here;
    const auto usual = net::tcp_stream::connect("127.0.0.1", here.port());
    EXPECT_TRUE(usual.get<net::no_delay>().on);
    EXPECT_FALSE(usual.get<net::keep_alive>().on);
    const auto s = net::tcp_stream::connect("127.0.0.1", here.port(),
                                            {.no_delay = false, .keep_alive = net::keep_alive{.idle = 30s}});
    EXPECT_FALSE(s.get<net::no_delay>().on);
    EXPECT_TRUE(s.get<net::keep_alive>().on);
    EXPECT_EQ(s.get<net::keep_alive>().idle, 30s);
    EXPECT_EQ(support::error_of([&] {
                (void)net::tcp_stream::connect("127.0.0.1", here.port(), {.keep_alive = net::keep_alive{.idle = -1s}});
              }),
              std::errc::invalid_argument);
  });
}

TEST(ConnectOptions, a_connection_comes_from_the_local_address) {
  with_sockets([] {
    const lan here;
    const auto from = [&](const endpoint& local, const lan& to) {
      return net::tcp_stream::connect("127.0.0.1", to.port(), {.local = local});
    };
    EXPECT_EQ(from(endpoint::v4({127, 0, 0, 9}, 0), here).local_endpoint().address(), "127.0.0.9");
    const endpoint free = net::tcp_listener(endpoint::v4({127, 0, 0, 9}, 0)).local_endpoint();
    const lan there;
    const auto first = from(free, here);
    const auto second = from(free, there);
    EXPECT_EQ(first.local_endpoint(), free);
    EXPECT_EQ(second.local_endpoint(), free) << "connections to different peers share the port";
  });
}

TEST(ConnectOptions, only_addresses_of_the_family_are_tried) {
  const fake_names names;
  names.know("host.test", {"127.0.0.1"});
  with_sockets([&] {
    const lan here;
    std::error_code why;
    EXPECT_TRUE(reach(names.kernel(), "host.test", here.port(), {.family = net::address_family::v4}, why).is_open());
    EXPECT_FALSE(reach(names.kernel(), "127.0.0.1", here.port(), {.family = net::address_family::v6}, why).is_open());
    EXPECT_EQ(why.category(), net::resolve_category());
    EXPECT_FALSE(reach(names.kernel(), "127.0.0.1", here.port(), {.local = endpoint::any_v6(0)}, why).is_open());
    EXPECT_EQ(why.category(), net::resolve_category());
    EXPECT_THROW((void)reach(names.kernel(), "host.test", here.port(), {.local = endpoint::unix_abstract("a")}),
                 weft::usage_error);
    EXPECT_THROW((void)reach(names.kernel(), "host.test", here.port(),
                             {.family = net::address_family::v6, .local = endpoint::any(0)}),
                 weft::usage_error);
  });
}

}  // namespace
