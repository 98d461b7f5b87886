// One value from one to another.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "base/lock.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

// req: BZ-13
TEST(Oneshot, the_value_arrives_whoever_comes_first) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(20'000);
    rt->run([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        auto [out, in] = weft::make_oneshot<std::unique_ptr<std::size_t>>();
        auto sending = weft::spawn([&out, i] { EXPECT_TRUE(out.send(std::make_unique<std::size_t>(i))); });
        if (i % 2 == 0) weft::yield();
        const auto got = in.recv();
        EXPECT_EQ(**got, i);
        sending.join();
      }
    });
  });
}

// req: BZ-13
TEST(Oneshot, a_writer_that_dies_without_a_word_is_the_end) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([] {
      auto [out, in] = weft::make_oneshot<int>();
      auto dying = weft::spawn([my_out = std::move(out)] { weft::yield(); });
      EXPECT_EQ(in.recv(), std::nullopt);
      dying.join();
    });
  });
}

// req: BZ-13
TEST(Oneshot, an_error_is_thrown_by_recv) {
  auto [out, in] = weft::make_oneshot<int>();
  out.close(std::make_exception_ptr(std::runtime_error("no")));
  EXPECT_THROW((void)in.recv(), std::runtime_error);
  EXPECT_FALSE(out.send(1));
}

// req: BZ-13
TEST(Oneshot, a_second_recv_finds_the_end) {
  auto [out, in] = weft::make_oneshot<int>();
  EXPECT_EQ(in.try_recv(), std::nullopt);
  EXPECT_TRUE(out.send(1));
  EXPECT_FALSE(out);
  EXPECT_EQ(in.recv(), 1);
  EXPECT_EQ(in.recv(), std::nullopt);
  EXPECT_EQ(in.try_recv(), std::nullopt);
}

// req: BZ-13
TEST(Oneshot, when_the_reader_is_gone_the_value_stays_with_the_sender) {
  auto [out, in] = weft::make_oneshot<std::unique_ptr<int>>();
  in.reset();
  (void)weft::prialt(~out);
  auto value = std::make_unique<int>(7);
  EXPECT_EQ(out.send(std::move(value)).status(), weft::send_status::closed);
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 7);
}

// req: BZ-13
TEST(Oneshot, a_value_nobody_took_dies_with_the_reader) {
  const auto value = std::make_shared<int>(1);
  auto [out, in] = weft::make_oneshot<std::shared_ptr<int>>();
  EXPECT_TRUE(out.send(value));
  EXPECT_EQ(value.use_count(), 2);
  in.reset();
  EXPECT_EQ(value.use_count(), 1);
}

// req: BZ-13
TEST(Oneshot, threads_and_tasks_wait_for_each_other) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  for (int i = 0; i < 200; ++i) {
    auto [there, task_in] = weft::make_oneshot<int>();
    auto [back, in] = weft::make_oneshot<int>();
    auto task = rt->spawn(
        [my_in = std::move(task_in), out = std::move(back)]() mutable { EXPECT_TRUE(out.send(*my_in.recv() + 1)); });
    EXPECT_TRUE(there.send(i));
    EXPECT_EQ(in.recv(), i + 1);
    task.join();
  }
}

// req: BZ-13
TEST(Oneshot, recv_gives_up_in_time_and_can_wait_again) {
  auto [out, in] = weft::make_oneshot<int>();
  EXPECT_EQ(in.recv_for(1ms), std::nullopt);
  EXPECT_TRUE(out.send(5));
  EXPECT_EQ(in.recv_for(1h), 5);
}

// req: BZ-13 BZ-11
TEST(Oneshot, a_recv_with_a_time_limit_that_waits_gets_the_value_or_throws_the_error) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  auto [out, in] = weft::make_oneshot<int>();
  auto gets = rt->spawn([&from = in] { EXPECT_EQ(from.recv_for(1h), 5); });
  support::until([&] { return support::parked_tasks(rt.core()) == 1; });
  EXPECT_TRUE(out.send(5));
  gets.join();
  auto [broken_out, broken_in] = weft::make_oneshot<int>();
  auto throws = rt->spawn([&from = broken_in] { EXPECT_THROW((void)from.recv_for(1h), std::runtime_error); });
  support::until([&] { return support::parked_tasks(rt.core()) == 1; });
  broken_out.close(std::make_exception_ptr(std::runtime_error("broken")));
  throws.join();
}

// A cancelled reader has taken nothing: the value is there for its handle's next user.
// req: BZ-13
TEST(Oneshot, a_cancelled_recv_takes_nothing) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([&] {
      for (int i = 0; i < 300; ++i) {
        auto [out, in] = weft::make_oneshot<int>();
        bool got = false;
        auto waiting = weft::spawn([&in, &got] { got = in.recv().has_value(); });
        if (i % 3 == 0) weft::yield();
        auto sending = weft::spawn([&out, i] { EXPECT_TRUE(out.send(i)); });
        waiting.cancel();
        waiting.wait();
        sending.join();
        EXPECT_EQ(in.try_recv().has_value(), !got);
      }
    });
  });
}

// req: BZ-13
TEST(Oneshot, it_is_an_arm_of_a_select) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([] {
      auto [out, in] = weft::make_oneshot<int>();
      auto [other_out, other] = weft::make_oneshot<int>();
      auto sending = weft::spawn([my_out = std::move(out)]() mutable { EXPECT_TRUE(my_out.send(3)); });
      int v = 0;
      const weft::selected s = weft::alt(other >> v, in >> v);
      EXPECT_EQ(s.index(), 1u);
      EXPECT_TRUE(s.ok());
      EXPECT_EQ(v, 3);
      other_out.reset();
      bool told = false;
      weft::select(other.on_recv([&](std::optional<int> none) { told = !none; }));
      EXPECT_TRUE(told);
      sending.join();
    });
  });
}

// req: BZ-13
TEST(Oneshot, a_used_up_or_empty_handle_says_so) {
  weft::oneshot_writer<int> out;
  weft::oneshot_reader<int> in;
  EXPECT_THROW((void)out.send(1), weft::usage_error);
  EXPECT_THROW((void)in.recv(), weft::usage_error);
  EXPECT_THROW((void)in.try_recv(), weft::usage_error);
  EXPECT_THROW((void)in.recv_for(1ms), weft::usage_error);
  EXPECT_THROW((void)in.recv_until(std::chrono::steady_clock::now()), weft::usage_error);
}

// The variable that an arm assigns to may hold what came before.
// req: BZ-13 CSP-4
TEST(Oneshot, the_end_empties_the_optional_of_an_arm) {
  auto [out, in] = weft::make_oneshot<int>();
  std::optional<int> got = 1;
  out.reset();
  EXPECT_FALSE(weft::select(in >> got).ok());
  EXPECT_EQ(got, std::nullopt);
}

}  // namespace
