// What a stream does when the kernel or the peer fails: an error that says it, and nothing else.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <array>
#include <string>
#include <vector>

#include "io/faults.hpp"
#include <weft/descriptor.hpp>
#include <weft/net/unix.hpp>

namespace {

using namespace support::usual;
using namespace support;

// Lets SIGPIPE end the process, as it does where nobody has changed that.
class deadly_sigpipe {
 public:
  deadly_sigpipe() : before_(::signal(SIGPIPE, SIG_DFL)) {}
  ~deadly_sigpipe() { ::signal(SIGPIPE, before_); }
  deadly_sigpipe(const deadly_sigpipe&) = delete;
  deadly_sigpipe& operator=(const deadly_sigpipe&) = delete;

 private:
  sighandler_t before_;
};

bool is_broken(const std::error_code& why) {
  return why == std::errc::connection_reset || why == std::errc::broken_pipe;
}

// ---- the kernel -------------------------------------------------------------------------------------------------------

script sends;
script receives;

const io::kernel_calls& failing_transfers() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.send = [](int fd, const void* from, std::size_t size, int flags) noexcept {
      return sends.fails() ? -1 : ::send(fd, from, size, flags);
    };
    k.sendmsg = [](int fd, const msghdr* m, int flags) noexcept {
      return sends.fails() ? -1 : ::sendmsg(fd, m, flags);
    };
    k.recv = [](int fd, void* to, std::size_t size, int flags) noexcept {
      return receives.fails() ? -1 : ::recv(fd, to, size, flags);
    };
    k.recvmsg = [](int fd, msghdr* m, int flags) noexcept { return receives.fails() ? -1 : ::recvmsg(fd, m, flags); };
    return k;
  }();
  return calls;
}

// req: IO-13
TEST(SocketFaults, a_shortage_of_memory_is_an_error_and_the_stream_stays_usable) {
  with_kernel(failing_transfers(), [] {
    auto [client, server] = connected_pair();
    for (const int error : {ENOBUFS, ENOMEM}) {
      const std::error_code expected(error, std::generic_category());
      std::error_code why;
      sends.play({error, error, error, error});
      EXPECT_EQ(client.write_some("lost", why), 0u);
      EXPECT_EQ(why, expected);
      EXPECT_EQ(client.write_all("lost", why), 0u);
      EXPECT_EQ(why, expected);
      EXPECT_EQ(error_of([&] { client.write_all({"lo", "st"}); }), expected);
      EXPECT_EQ(error_of([&] { client.write_all("lost"); }), expected);
      client.write_all("kept");
      receives.play({error, error});
      char room[8];
      EXPECT_EQ(server.read_some(room, why), 0u);
      EXPECT_EQ(why, expected);
      const weft::mutable_buffer several[] = {room};
      EXPECT_EQ(error_of([&] { (void)server.read_some(several); }), expected);
      until_buffered(server, 4);
      EXPECT_EQ(server.read_some(room), 4u);
      EXPECT_EQ(std::string(room, 4), "kept");
    }
  });
}

// req: IO-13
TEST(SocketFaults, the_count_before_an_error_is_exact) {
  with_kernel(failing_transfers(), [] {
    auto [client, server] = connected_pair();
    client.set(net::send_buffer{4096});
    const std::string much = pattern(std::size_t{1} << 20);
    // The first call fills the buffers and is short. The second one fails.
    sends.play({0, ENOBUFS});
    std::error_code why;
    const std::size_t sent = client.write_all(much, why);
    EXPECT_EQ(why, std::errc::no_buffer_space);
    EXPECT_GT(sent, 0u);
    EXPECT_LT(sent, much.size());
    client.shutdown(net::half::write);
    EXPECT_EQ(read_to_end(server), much.substr(0, sent));
  });
}

// A kernel that cannot watch descriptors, now or for ever.
script watches;
script sets;
script bells;
const io::kernel_calls& failing_watches() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.epoll_create1 = [](int flags) noexcept { return sets.fails() ? -1 : ::epoll_create1(flags); };
    k.eventfd = [](unsigned count, int flags) noexcept { return bells.fails() ? -1 : ::eventfd(count, flags); };
    k.epoll_ctl = [](int epoll, int operation, int fd, epoll_event* event) noexcept {
      return operation == EPOLL_CTL_ADD && watches.fails() ? -1 : ::epoll_ctl(epoll, operation, fd, event);
    };
    return k;
  }();
  return calls;
}

// The pair is made outside of the runtime, whose first wait so is the one that opens its epoll. No descriptor of a failed
// opening is left.
// req: IO-13
TEST(SocketFaults, a_descriptor_that_cannot_be_watched_is_told_and_can_be_later) {
  at_worker_counts_over(failing_watches(), [](faulty_runtime& rt) {
    auto [client, server] = connected_pair();
    sets.play({EMFILE});
    bells.play({ENFILE});
    watches.play({ENOMEM, 0, ENOSPC, ENOMEM});  // the bell is watched first
    rt.run([&c = client, &s = server] {
      char room[1];
      const auto read = [&] { return s.read_some(room); };
      for (const auto expected :
           {std::errc::too_many_files_open, std::errc::too_many_files_open_in_system, std::errc::not_enough_memory,
            std::errc::no_space_on_device, std::errc::not_enough_memory})
        EXPECT_EQ(error_of([&] { (void)read(); }), expected);
      auto reader = spawn_and_park(read);
      c.write_all("x");
      EXPECT_EQ(reader.join(), 1u);
    });
  });
}

// A process that has closed its standard input is given that number for something else.
TEST(SocketFaults, an_epoll_may_have_the_number_0) {
  static io::kernel_calls calls = io::real_kernel();
  calls.epoll_create1 = [](int flags) noexcept {
    const int fd = ::epoll_create1(flags);
    const int moved = ::dup3(fd, STDIN_FILENO, O_CLOEXEC);
    ::close(fd);
    return moved;
  };
  const watchdog guard(110s, "an epoll with the number 0");
  const std::size_t before = open_descriptors();
  const int input = ::dup(STDIN_FILENO);
  ASSERT_GE(input, 0);
  {
    faulty_runtime rt(1, calls);
    auto [client, server] = connected_pair();
    auto reader = rt.spawn([&s = server] {
      char room[1];
      return s.read_some(room);
    });
    for (int i = 0; i < 100; ++i) {
      until([&] { return rt.waiting() == 1 && rt.all_sleep(); });
      rt.run([] {});  // the worker sleeps in the epoll, and is woken from there
    }
    client.write_all("x");
    EXPECT_EQ(reader.join(), 1u);
    EXPECT_EQ(rt.waiting(), 0) << "nobody polls for it any more";
  }
  ::dup2(input, STDIN_FILENO);
  ::close(input);
  EXPECT_EQ(open_descriptors(), before);
}

// ---- connecting -------------------------------------------------------------------------------------------------------

script connects;
const io::kernel_calls& failing_connects() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.connect = [](int fd, const sockaddr* to, socklen_t size) noexcept {
      return connects.fails() ? -1 : ::connect(fd, to, size);
    };
    return k;
  }();
  return calls;
}

// req: IO-13
TEST(SocketFaults, a_connect_tells_the_error_of_the_kernel_and_closes_its_socket) {
  with_kernel(failing_connects(), [] {
    const net::endpoint at = net::endpoint::loopback(9);
    for (const int error : {EADDRNOTAVAIL, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EACCES, EADDRINUSE, ECONNREFUSED}) {
      const std::error_code expected(error, std::generic_category());
      const std::size_t before = open_descriptors();
      std::error_code why;
      connects.play({error, error});
      EXPECT_FALSE(net::tcp_stream::connect(at, why).is_open());
      EXPECT_EQ(why, expected);
      try {
        (void)net::tcp_stream::connect(at);
        ADD_FAILURE() << "it must throw";
      } catch (const std::system_error& e) {
        EXPECT_EQ(std::string(e.what()), "connect to 127.0.0.1:9: " + expected.message());
      }
      EXPECT_EQ(open_descriptors(), before);
    }
  });
}

TEST(SocketFaults, a_connect_that_goes_on_or_is_interrupted_is_waited_for) {
  with_kernel(failing_connects(), [] {
    const net::tcp_listener listener(net::endpoint::loopback(0));
    connects.play({EINTR, 0, EISCONN});
    EXPECT_TRUE(net::tcp_stream::connect(listener.local_endpoint()).is_open());
    connects.play({0, EALREADY});
    std::error_code why;
    const auto soon = std::chrono::steady_clock::now() + 1ms;
    const auto client = net::tcp_stream::connect_until(soon, listener.local_endpoint(), why);
    EXPECT_TRUE(client.is_open() || why == std::errc::timed_out) << why.message();
  });
}

TEST(SocketFaults, sockets_that_cannot_be_had_are_told) {
  static script sockets;
  static io::kernel_calls calls = io::real_kernel();
  calls.socket = [](int domain, int type, int protocol) noexcept {
    return sockets.fails() ? -1 : ::socket(domain, type, protocol);
  };
  with_kernel(calls, [] {
    sockets.play({EMFILE, ENFILE});
    EXPECT_EQ(error_of([] { (void)net::tcp_stream::connect(net::endpoint::loopback(9)); }),
              std::errc::too_many_files_open);
    EXPECT_EQ(error_of([] { const net::tcp_listener none(net::endpoint::loopback(0)); }),
              std::errc::too_many_files_open_in_system);
  });
}

// ---- resets -----------------------------------------------------------------------------------------------------------

TEST(SocketFaults, a_reset_ends_a_read_that_waits) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    auto reader = spawn_and_park([&s = server] {
      char room[8];
      return error_of([&] { (void)s.read_some(room); });
    });
    reset(client);
    EXPECT_EQ(reader.join(), std::errc::connection_reset);
  });
}

TEST(SocketFaults, a_reset_ends_a_write_that_waits_and_sends_no_signal) {
  const deadly_sigpipe as_usual;
  with_sockets([] {
    auto [client, server] = connected_pair();
    const std::string much(std::size_t{8} << 20, 'x');
    auto writer = spawn_and_park([&, &s = server] { return error_of([&] { s.write_all(much); }); });
    reset(client);
    EXPECT_TRUE(is_broken(writer.join()));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_broken(error_of([&, &s = server] { s.write_all({"a", "b"}); })));
  });
}

TEST(SocketFaults, what_came_before_a_reset_is_read_first) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    client.write_all("kept");
    until_buffered(server, 4);
    reset(client);
    char room[3];
    EXPECT_EQ(server.read_some(room), 3u);
    EXPECT_EQ(server.read_some(room), 1u);
    EXPECT_EQ(room[0], 't');
    EXPECT_EQ(error_of([&, &s = server] { (void)s.read_some(room); }), std::errc::connection_reset);
    EXPECT_EQ(server.read_some(room), 0u) << "an error is told once";
  });
}

// ---- bad input --------------------------------------------------------------------------------------------------------

// req: IO-13
TEST(SocketFaults, an_option_that_the_kernel_refuses_changes_nothing) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    using unknown = net::raw_option<IPPROTO_TCP, 9999, int>;
    std::error_code why;
    client.set(unknown{1}, why);
    EXPECT_EQ(why, std::errc::no_protocol_option);
    (void)client.get<unknown>(why);
    EXPECT_EQ(why, std::errc::no_protocol_option);
    EXPECT_EQ(error_of([&, &c = client] { c.set(net::ttl{0}); }), std::errc::invalid_argument);
    client.write_all("x");
    char room[1];
    EXPECT_EQ(server.read_some(room), 1u);
  });
}

// req: IO-13
TEST(SocketFaults, what_was_closed_or_moved_from_says_so_in_every_operation) {
  with_sockets([] {
    auto [client, server] = connected_pair();
    char room[1];
    const auto closed = std::errc::operation_canceled;
    client.close();
    EXPECT_EQ(error_of([&, &c = client] { (void)c.read_some(room); }), closed);
    EXPECT_EQ(error_of([&, &c = client] { c.read_exactly(room); }), closed);
    EXPECT_EQ(error_of([&, &c = client] { (void)c.read_some_for(1h, room); }), closed);
    EXPECT_EQ(error_of([&, &c = client] { (void)c.write_some("x"); }), closed);
    EXPECT_EQ(error_of([&, &c = client] { c.write_all({"x", "y"}); }), closed);
    EXPECT_EQ(error_of([&, &c = client] { c.shutdown(net::half::both); }), closed);
    EXPECT_EQ(error_of([&, &c = client] { (void)c.remote_endpoint(); }), closed);
    EXPECT_THROW((void)client.release(), weft::usage_error);
    EXPECT_EQ(weft::prialt(client.readable(), weft::otherwise).index(), 0u) << "the operation says so";

    const net::tcp_stream moved = std::move(server);
    net::tcp_stream& empty = server;
    EXPECT_FALSE(empty.is_open());
    EXPECT_THROW((void)empty.read_some(room), weft::usage_error);
    EXPECT_THROW((void)empty.write_some("x"), weft::usage_error);
    EXPECT_THROW(empty.shutdown(net::half::both), weft::usage_error);
    EXPECT_THROW((void)empty.local_endpoint(), weft::usage_error);
    EXPECT_THROW((void)empty.readable(), weft::usage_error);
    EXPECT_THROW((void)empty.native_handle(), weft::usage_error);
    EXPECT_THROW(empty.set(net::no_delay{}), weft::usage_error);
    empty.close();  // harmless, as a destructor is

    net::tcp_listener none;
    EXPECT_THROW((void)none.accept(), weft::usage_error);
    EXPECT_THROW((void)none.local_endpoint(), weft::usage_error);
    none.close();
    const weft::descriptor no_descriptor;
    EXPECT_THROW(no_descriptor.wait_readable(), weft::usage_error);
  });
}

TEST(SocketFaults, addresses_that_cannot_be_used_are_refused_with_the_address) {
  with_sockets([] {
    EXPECT_THROW((void)net::tcp_stream::connect(net::endpoint::unix_path("/tmp/x")), weft::usage_error);
    EXPECT_THROW(net::tcp_listener(net::endpoint::unix_path("/tmp/x")), weft::usage_error);
    EXPECT_THROW((void)net::endpoint::loopback(65536), std::invalid_argument);
    EXPECT_THROW((void)net::endpoint::loopback(-1), std::invalid_argument);
    // Documentation's addresses belong to nobody, so nobody can listen at one.
    const auto foreign = net::endpoint::parse("192.0.2.1:80");
    EXPECT_EQ(error_of([&] { const net::tcp_listener l(foreign); }), std::errc::address_not_available);
  });
}

TEST(SocketFaults, a_link_local_address_without_its_interface_is_refused) {
  with_sockets([] {
    std::error_code why;
    { const net::tcp_listener probe(net::endpoint::loopback_v6(0), {}, why); }
    if (why) GTEST_SKIP() << "no IPv6 here";
    EXPECT_EQ(error_of([] { (void)net::tcp_stream::connect(net::endpoint::parse("[fe80::1]:80")); }),
              std::errc::invalid_argument);
  });
}

TEST(SocketFaults, a_listener_at_any_v6_takes_ipv4_too) {
  with_sockets([] {
    std::error_code why;
    const net::tcp_listener listener(net::endpoint::any_v6(0), {}, why);
    if (why) GTEST_SKIP() << "no IPv6 here";
    const auto client = net::tcp_stream::connect(net::endpoint::loopback(listener.local_endpoint().port()));
    const auto server = listener.accept();
    EXPECT_EQ(server.remote_endpoint().family(), net::address_family::v6) << "as a mapped address";
    EXPECT_EQ(server.remote_endpoint().port(), client.local_endpoint().port());
  });
}

}  // namespace
