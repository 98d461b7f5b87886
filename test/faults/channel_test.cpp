// Channels when memory runs out: the operation throws, nothing is lost, the channel stays usable.
// ctest: notsan channels timeout=300
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "faults/failing_new.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// req: W-9 KC-11
TEST(ChannelAllocation, a_channel_that_cannot_be_made_leaves_nothing_behind) {
  const auto make_all = [] {
    for (const std::size_t capacity : {0, 1, 3}) {
      (void)weft::make_channel<int>(capacity);
      (void)weft::make_channel<std::array<long, 2>>(capacity);
      (void)weft::make_channel<std::string>(capacity);
    }
    (void)weft::make_channel<int>(weft::unlimited);
    (void)weft::make_channel<std::string>(weft::conflated);
  };
  fails_cleanly_at_every(make_all, [] {});
}

// req: W-9 KC-11
TEST(ChannelAllocation, an_unlimited_send_that_finds_no_memory_throws_and_the_value_stays_with_the_caller) {
  const auto before = alive.load();
  {
    auto [out, in] = weft::make_channel<std::unique_ptr<int>>(weft::unlimited);
    std::size_t sent = 0;
    std::size_t refused = 0;
    for (int i = 0; i < 5'000; ++i) {
      auto mine = std::make_unique<int>(i);
      until_failure = 0;  // whatever the send allocates
      try {
        EXPECT_TRUE(out.send(std::move(mine)));
        until_failure = -1;
      } catch (const std::bad_alloc&) {
        until_failure = -1;
        ++refused;
        ASSERT_NE(mine, nullptr);
        ASSERT_EQ(in.size(), sent);
        ASSERT_TRUE(out.send(std::move(mine)));  // there is memory again
      }
      ++sent;
    }
    EXPECT_GT(refused, 2u);
    for (int i = 0; i < 5'000; ++i) ASSERT_EQ(**in.recv(), i);
    EXPECT_EQ(in.try_recv(), std::nullopt);
  }
  EXPECT_EQ(alive.load(), before);
}

// req: W-9 CC-11
TEST(ChannelAllocation, a_select_of_many_arms_that_finds_no_memory_has_done_nothing) {
  std::vector<weft::channel_ends<int>> channels;
  std::vector<weft::receive_arm<int>> arms;
  std::vector<int> values(100);
  for (std::size_t i = 0; i < 100; ++i) {
    channels.push_back(weft::make_channel<int>(1));
    arms.push_back(channels[i].in >> values[i]);
  }
  EXPECT_TRUE(channels[40].out.send(7));
  std::size_t failures = 0;
  for (long n = 0;; ++n) {
    until_failure = n;
    try {
      const weft::selected s = weft::alt(arms);
      until_failure = -1;
      EXPECT_EQ(s.index(), 40u);
      break;
    } catch (const std::bad_alloc&) {
      until_failure = -1;
      ++failures;
      ASSERT_EQ(channels[40].in.size(), 1u);
    }
  }
  EXPECT_GT(failures, 0u);
  EXPECT_EQ(values[40], 7);
}

// req: W-9
TEST(ChannelAllocation, no_operation_on_a_channel_allocates) {
  support::watchdog guard(60s);
  weft::runtime rt({.workers = 1, .elastic = false});  // a new worker would allocate
  rt.run([] {
    for (const std::size_t capacity : {0, 1, 8}) {
      auto [out, in] = weft::make_channel<std::unique_ptr<int>>(capacity);
      auto [numbers_out, numbers_in] = weft::make_channel<int>(capacity);
      const auto talk = [&](int n) {
        auto peer = weft::spawn([&, n] {
          for (int i = 0; i < n; ++i) {
            (void)in.recv();
            (void)numbers_in.recv_for(1h);
            std::unique_ptr<int> got;
            (void)weft::alt(in >> got);
          }
        });
        for (int i = 0; i < n; ++i) {
          (void)out.send(std::unique_ptr<int>());
          (void)numbers_out.send(1);
          (void)weft::prialt(out << std::unique_ptr<int>(), ~out);
        }
        peer.join();
      };
      talk(100);
      const long before = made.load();
      talk(1'000);
      EXPECT_EQ(made.load(), before);
    }
    auto [out, in] = weft::make_channel<int>(weft::unlimited);
    for (int i = 0; i < 1'000; ++i) (void)out.send(i);
    const auto hover = [&](int n) {  // around a level, over many edges of chunks
      for (int i = 0; i < n; ++i) {
        (void)out.send(i);
        (void)in.recv();
      }
    };
    hover(1'000);
    const long before = made.load();
    hover(10'000);
    EXPECT_EQ(made.load(), before);
  });
}

}  // namespace
