// Names that have changed are still understood, with a warning.
#include <gtest/gtest.h>

#include <weft/weft.hpp>

#include "support/watchdog.hpp"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

using namespace std::chrono_literals;
using support::watched_runtime;

TEST(OldNames, on_receive_is_on_recv_for_every_kind_of_reader) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    int sum = 0;
    const auto add = [&](int v) { sum += v; };
    auto [channel, channel_reader] = weft::make_channel<int>(1);
    auto [oneshot, oneshot_reader] = weft::make_oneshot<int>();
    auto [broadcast, broadcast_reader] = weft::make_broadcast<int>(1);
    auto [watch, watch_reader] = weft::make_watch(0);
    EXPECT_TRUE(channel.send(1) && oneshot.send(10) && broadcast.send(100) && watch.send(1000));
    (void)weft::alt(channel_reader.on_receive(add));
    (void)weft::alt(oneshot_reader.on_receive(add));
    (void)weft::alt(broadcast_reader.on_receive(add));
    (void)weft::alt(watch_reader.on_receive(add));
    EXPECT_EQ(sum, 1111);
  });
}

TEST(OldNames, acquire_for_and_acquire_until_are_tries_of_a_semaphore) {
  support::watchdog guard(20s);
  weft::semaphore s(4);
  EXPECT_TRUE(s.acquire_for(1h));
  EXPECT_TRUE(s.acquire_for(1h, 2));
  EXPECT_FALSE(s.acquire_until(std::chrono::steady_clock::now(), 2));
  EXPECT_TRUE(s.acquire_until(std::chrono::steady_clock::now()));
  EXPECT_EQ(s.available(), 0U);
}

}  // namespace
