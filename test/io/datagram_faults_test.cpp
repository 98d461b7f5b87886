// What a datagram socket does when the kernel fails: an error that says it, and the socket goes on.
#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "io/datagrams.hpp"
#include "io/faults.hpp"
#include <weft/net/udp.hpp>

namespace {

using namespace support::usual;
using namespace support;

script sends;
script receives;

const io::kernel_calls& failing_transfers() {
  static const io::kernel_calls calls = [] {
    io::kernel_calls k = io::real_kernel();
    k.sendmsg = [](int fd, const msghdr* m, int flags) noexcept {
      return sends.fails() ? -1 : ::sendmsg(fd, m, flags);
    };
    k.sendmmsg = [](int fd, mmsghdr* all, unsigned count, int flags) noexcept {
      return sends.fails() ? -1 : ::sendmmsg(fd, all, count, flags);
    };
    k.recvmsg = [](int fd, msghdr* m, int flags) noexcept { return receives.fails() ? -1 : ::recvmsg(fd, m, flags); };
    k.recvmmsg = [](int fd, mmsghdr* all, unsigned count, int flags) noexcept {
      return receives.fails() ? -1 : ::recvmmsg(fd, all, count, flags, nullptr);
    };
    return k;
  }();
  return calls;
}

net::udp_socket at_loopback() { return net::udp_socket::bind(net::endpoint::loopback(0)); }

// EPERM is what a firewall says.
constexpr std::array refusals{ENOBUFS, ENOMEM, EPERM};

// req: IO-13
TEST(DatagramFaults, a_send_that_the_kernel_refuses_is_an_error_and_the_socket_stays_usable) {
  with_kernel(failing_transfers(), [] {
    const auto to = at_loopback();
    const auto from = at_loopback();
    const auto there = to.local_endpoint();
    for (const int error : refusals) {
      const std::error_code expected(error, std::generic_category());
      sends.play({error, error});
      EXPECT_EQ(code_of([&](std::error_code& why) { from.send_to("lost", there, why); }), expected);
      EXPECT_EQ(error_of([&] { from.send_to("lost", there); }), expected);
      from.send_to("kept", there);
      EXPECT_EQ(text_from(to), "kept");
    }
  });
}

// req: IO-13
TEST(DatagramFaults, a_receive_that_fails_is_an_error_and_the_datagram_is_still_there) {
  with_kernel(failing_transfers(), [] {
    const auto to = at_loopback();
    const auto from = at_loopback();
    for (const int error : {ENOBUFS, ENOMEM}) {
      const std::error_code expected(error, std::generic_category());
      from.send_to("kept", to.local_endpoint());
      receives.play({error, error});
      char room[8];
      EXPECT_EQ(code_of([&](std::error_code& why) { (void)to.recv_from(room, why); }), expected);
      EXPECT_EQ(error_of([&] { (void)to.recv_from(room); }), expected);
      EXPECT_EQ(text_from(to), "kept");
    }
  });
}

// req: IO-13
TEST(DatagramFaults, a_batch_says_how_many_were_sent_before_the_kernel_refused_and_the_rest_can_follow) {
  with_kernel(failing_transfers(), [] {
    const auto to = at_loopback();
    const auto from = at_loopback();
    const numbered_datagrams many(40, 100, to.local_endpoint());  // more than one call takes
    const std::span<const net::outgoing> all = many.all();
    for (const int error : refusals) {
      sends.play({0, error});
      std::error_code why;
      const std::size_t sent = from.send_many(all, why);
      EXPECT_EQ(why, std::error_code(error, std::generic_category()));
      ASSERT_GT(sent, 0u);
      ASSERT_LT(sent, all.size());
      from.send_many(all.subspan(sent));
      for (const std::string& text : many.texts()) EXPECT_EQ(text_from(to), text);
    }
  });
}

// req: IO-13
TEST(DatagramFaults, a_batch_that_cannot_be_received_is_an_error_and_nothing_of_it_is_lost) {
  with_kernel(failing_transfers(), [] {
    const auto to = at_loopback();
    const auto from = at_loopback();
    const numbered_datagrams some(5, 100, to.local_endpoint());
    from.send_many(some.all());
    receives.play({ENOMEM});
    char rooms[5][256];
    std::vector<net::incoming> places;
    for (auto& room : rooms) places.push_back({.room = room});
    std::error_code why;
    EXPECT_EQ(to.recv_many(places, why), 0u);
    EXPECT_EQ(why, std::errc::not_enough_memory);
    for (const std::string& text : some.texts()) EXPECT_EQ(text_from(to), text);
  });
}

}  // namespace
