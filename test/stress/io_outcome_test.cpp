// Data, cancellation, a time limit and a close race for one read: it has one outcome, and no byte is lost or doubled.
// ctest: timeout=7200 uring
#include <optional>

#include "stress/io.hpp"

namespace {

using namespace io_stress;

struct outcome {
  std::optional<unsigned char> byte;
  std::error_code why;
};

// A read of one byte that may be cancelled, or late.
template <class Stream>
weft::join_handle<outcome> read_within(const Stream& from, std::chrono::microseconds limit) {
  return weft::spawn([&from, limit] {
    outcome o;
    unsigned char c = 0;
    if (from.read_some_for(limit, {&c, 1}, o.why) == 1) o.byte = c;
    return o;
  });
}

// The bytes are numbers, one after the other: a byte that was lost or doubled is seen at the next one.
template <class Stream>
void has_one_outcome(Stream from, Stream to, std::size_t rounds, base::random& random) {
  unsigned char sent = 0;
  unsigned char expected = 0;
  const auto take = [&](weft::join_handle<outcome>& reader, bool may_be_closed) {
    try {
      const outcome o = reader.join();
      if (o.byte) {
        ASSERT_EQ(*o.byte, expected++);
        ASSERT_FALSE(o.why);
      } else {
        ASSERT_TRUE(o.why == std::errc::timed_out || (may_be_closed && o.why == std::errc::operation_canceled))
            << o.why.message();
      }
    } catch (const weft::task_cancelled&) {
      // It has transferred nothing.
    }
  };
  for (std::size_t i = 0; i < rounds; ++i) {
    auto reader = read_within(to, std::chrono::microseconds(random.below(20)));
    if (random.below(2) == 0) weft::yield();
    dawdle(random, 3'000);
    const std::uint32_t what = random.below(4);
    if ((what & 1) != 0) from.write_all({&sent, 1}), ++sent;
    if (random.below(2) == 0) dawdle(random, 3'000);
    if ((what & 2) != 0) reader.cancel();
    take(reader, false);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (; expected != sent; ++expected) {
    unsigned char c = 0;
    to.read_exactly({&c, 1});
    ASSERT_EQ(c, expected);
  }
  auto last = read_within(to, std::chrono::microseconds(random.below(20)));
  if (random.below(2) == 0) weft::yield();
  from.write_all({&sent, 1});
  if (random.below(2) == 0) last.cancel();
  to.close();
  take(last, true);
}

// req: IO-2
TEST(IoOutcome, of_data_cancellation_time_limit_and_close_one_wins) {
  in_rounds(10'000, 1'000'000, [](std::size_t rounds) {
    base::random random(rounds);
    constexpr std::size_t batch = 100;
    for (std::size_t i = 0; i * 2 * batch < rounds; ++i) {
      auto pair = connected_pair();
      has_one_outcome(std::move(pair.client), std::move(pair.server), batch, random);
      auto [one, other] = net::unix_stream::pair();
      has_one_outcome(std::move(one), std::move(other), batch, random);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

// The same for connections: one that was accepted is not lost, and one that was not stays in the queue.
// req: IO-2
TEST(IoOutcome, a_cancelled_or_late_accept_loses_no_connection) {
  in_rounds(2'000, 1'000'000, [](std::size_t rounds) {
    base::random random(rounds);
    const net::tcp_listener listener(net::endpoint::loopback(0));
    std::size_t asked = 0;
    std::size_t accepted = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      auto acceptor = weft::spawn([&, limit = std::chrono::microseconds(random.below(40))] {
        std::error_code why;
        return listener.accept_for(limit, why).is_open();
      });
      dawdle(random, 4'000);
      if (random.below(2) == 0) {
        auto client = net::tcp_stream::connect(listener.local_endpoint());
        reset(client);
        ++asked;
      }
      if (random.below(4) == 0) acceptor.cancel();
      try {
        accepted += acceptor.join() ? 1 : 0;
      } catch (const weft::task_cancelled&) {
        // It has accepted nothing.
      }
    }
    for (std::error_code why; listener.accept_for(0s, why).is_open();) ++accepted;
    EXPECT_EQ(accepted, asked);
  });
}

}  // namespace
