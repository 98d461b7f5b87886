// The newest value, and waiting for it to change.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"

namespace {

using namespace support::usual;

// req: BZ-13
TEST(Watch, a_reader_gets_the_newest_and_not_each) {
  auto [out, in] = weft::make_watch(std::string("a"));
  EXPECT_EQ(in.get(), "a");
  EXPECT_TRUE(out.send("b"));
  EXPECT_TRUE(out.send("c"));
  EXPECT_EQ(in.recv(), "c");
  EXPECT_EQ(in.seen_version(), 2u);
  EXPECT_EQ(out.version(), 2u);
  EXPECT_EQ(out.get(), "c");
}

// req: BZ-13
TEST(Watch, what_was_seen_is_not_received_again) {
  auto [out, in] = weft::make_watch(1);
  EXPECT_FALSE(in.has_changed());
  EXPECT_EQ(in.try_recv(), std::nullopt);
  EXPECT_EQ(in.recv_for(1ms), std::nullopt);
  EXPECT_TRUE(out.send(2));
  EXPECT_TRUE(in.has_changed());
  auto copy = in;
  EXPECT_EQ(in.get(), 2);
  EXPECT_EQ(in.try_recv(), std::nullopt);
  EXPECT_EQ(copy.try_recv(), 2);  // a copy has seen what the original had then
  EXPECT_EQ(out.subscribe().try_recv(), std::nullopt);
}

// Each reader sees versions that grow, and the last one.
// req: BZ-13
TEST(Watch, every_reader_ends_with_the_last_version) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(100s);
    watched_runtime rt(workers);
    const std::size_t versions = scaled(50'000);
    rt->run([&] {
      auto [out, first] = weft::make_watch(std::size_t{0});
      std::vector<weft::join_handle<void>> readers;
      for (int r = 0; r < 4; ++r)
        readers.push_back(weft::spawn([in = first, versions]() mutable {
          std::size_t before = 0;
          while (auto v = in.recv()) {
            EXPECT_GT(*v, before);
            before = *v;
          }
          EXPECT_EQ(before, versions);
        }));
      for (std::size_t i = 1; i <= versions; ++i) EXPECT_TRUE(out.send(i));
      out.reset();
      for (auto& r : readers) r.join();
    });
  });
}

// req: BZ-13
TEST(Watch, a_change_is_never_missed_by_one_who_waits) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(100s);
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(20'000);
    rt->run([&] {
      auto [ping, ping_in] = weft::make_watch(std::size_t{0});
      auto [pong, pong_in] = weft::make_watch(std::size_t{0});
      auto echo = weft::spawn([in = std::move(ping_in), out = std::move(pong)]() mutable {
        while (auto v = in.recv()) EXPECT_TRUE(out.send(*v));
      });
      for (std::size_t i = 1; i <= rounds; ++i) {
        EXPECT_TRUE(ping.send(i));
        EXPECT_EQ(pong_in.recv(), i);
      }
      ping.reset();
      echo.join();
    });
  });
}

// req: BZ-13
TEST(Watch, close_ends_after_the_last_version_and_throws_its_error) {
  auto [out, in] = weft::make_watch(1);
  EXPECT_TRUE(out.send(2));
  out.close(std::make_exception_ptr(std::runtime_error("over")));
  EXPECT_FALSE(out.send(3));
  EXPECT_EQ(in.recv(), 2);
  EXPECT_THROW((void)in.recv(), std::runtime_error);
  EXPECT_EQ(in.get(), 2);
}

// req: BZ-13
TEST(Watch, threads_wait_for_tasks) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  auto [out, in] = weft::make_watch(0);
  std::thread reader([my_in = std::move(in)]() mutable {
    int last = 0;
    while (auto v = my_in.recv()) last = *v;
    EXPECT_EQ(last, 1'000);
  });
  rt->run([my_out = std::move(out)]() mutable {
    for (int i = 1; i <= 1'000; ++i) EXPECT_TRUE(my_out.send(i));
  });
  reader.join();
}

// req: BZ-13
TEST(Watch, a_cancelled_reader_has_seen_nothing) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([&] {
      auto [out, in] = weft::make_watch(-1);
      for (int i = 0; i < 300; ++i) {
        bool got = false;
        auto waiting = weft::spawn([&in, &got] { got = in.recv().has_value(); });
        if (i % 3 == 0) weft::yield();
        auto sending = weft::spawn([&out, i] { EXPECT_TRUE(out.send(i)); });
        waiting.cancel();
        waiting.wait();
        sending.join();
        EXPECT_EQ(in.try_recv() == i, !got);
      }
    });
  });
}

// req: BZ-13
TEST(Watch, it_is_an_arm_of_a_select) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([] {
      auto [config, changes] = weft::make_watch(0);
      auto [out, in] = weft::make_channel<int>();
      auto sending = weft::spawn([my_config = std::move(config), my_out = std::move(out)]() mutable {
        for (int i = 1; i <= 100; ++i) {
          EXPECT_TRUE(my_config.send(i));
          EXPECT_TRUE(my_out.send(i));
        }
      });
      int newest = 0, received = 0;
      for (bool open = true; open;)
        weft::select(changes.on_recv([&](int v) { newest = v; }), in.on_recv([&](std::optional<int> v) {
          open = v.has_value();
          received += open;
        }));
      EXPECT_EQ(received, 100);
      EXPECT_EQ(changes.get(), 100);
      EXPECT_LE(newest, 100);
      sending.join();
    });
  });
}

// req: BZ-13
TEST(Watch, a_writer_can_wait_until_nobody_watches) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([] {
      auto [out, in] = weft::make_watch(0);
      auto copy = in;
      auto leaving = weft::spawn([my_in = std::move(in), my_copy = std::move(copy)]() mutable {
        my_in.reset();
        weft::yield();
        my_copy.reset();
      });
      (void)weft::prialt(~out);
      auto again = out.subscribe();
      EXPECT_EQ(weft::prialt(~out, weft::otherwise).index(), 1u);
      leaving.join();
    });
  });
}

// req: BZ-13 BZ-11
TEST(Watch, a_recv_with_a_time_limit_gives_up_in_time_or_gets_the_value_or_throws_the_error) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  auto [out, in] = weft::make_watch(0);
  EXPECT_EQ(in.recv_for(1ms), std::nullopt);
  auto gets = rt->spawn([&from = in] { EXPECT_EQ(from.recv_for(1h), 5); });
  support::until([&] { return support::parked_tasks(rt.core()) == 1; });
  EXPECT_TRUE(out.send(5));
  gets.join();
  auto throws = rt->spawn([&from = in] { EXPECT_THROW((void)from.recv_for(1h), std::runtime_error); });
  support::until([&] { return support::parked_tasks(rt.core()) == 1; });
  out.close(std::make_exception_ptr(std::runtime_error("broken")));
  throws.join();
}

// req: BZ-13
TEST(Watch, an_error_that_comes_after_the_end_changes_nothing) {
  auto [out, in] = weft::make_watch(0);
  out.close();
  out.close(std::make_exception_ptr(std::runtime_error("too late")));
  EXPECT_EQ(in.recv(), std::nullopt);
  EXPECT_EQ(in.close_error(), nullptr);
}
}  // namespace
