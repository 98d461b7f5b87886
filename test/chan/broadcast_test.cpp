// Every value to every reader; the slow are told what they missed.
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "base/lock.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

// req: BZ-13
TEST(Broadcast, every_reader_gets_every_value_in_order) {
  auto [out, in] = weft::make_broadcast<std::string>(8);
  auto copy = in;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(out.send(std::to_string(i)));
  out.reset();
  for (auto* r : {&in, &copy}) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(r->recv(), std::to_string(i));
      EXPECT_EQ(r->missed(), 0u);
    }
    EXPECT_EQ(r->recv(), std::nullopt);
  }
}

// req: BZ-13
TEST(Broadcast, a_slow_reader_is_told_how_many_it_missed) {
  auto [out, in] = weft::make_broadcast<int>(3);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(out.send(i));
  EXPECT_EQ(in.recv(), 7);
  EXPECT_EQ(in.missed(), 7u);
  EXPECT_EQ(in.recv(), 8);
  EXPECT_EQ(in.missed(), 0u);
}

// req: BZ-13
TEST(Broadcast, a_subscriber_sees_what_is_sent_from_then_on) {
  auto [out, in] = weft::make_broadcast<int>(8);
  EXPECT_TRUE(out.send(1));
  auto late = out.subscribe();
  EXPECT_TRUE(out.send(2));
  EXPECT_EQ(late.recv(), 2);
  EXPECT_EQ(late.missed(), 0u);
  EXPECT_EQ(in.recv(), 1);
  in.reset();
  EXPECT_EQ(weft::select(~out, weft::otherwise).index(), 1u) << "there is still a reader";
  late.reset();
  EXPECT_EQ(weft::select(~out, weft::otherwise).index(), 0u);
}

// received + missed = sent, for each reader.
// req: BZ-13
TEST(Broadcast, what_a_reader_got_and_missed_is_what_was_sent) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(100s);
    watched_runtime rt(workers);
    static constexpr std::size_t writers = 3, readers = 4;
    const std::uint64_t each = scaled(20'000);
    rt->run([&] {
      auto [out, first] = weft::make_broadcast<std::uint64_t>(16);
      std::vector<weft::join_handle<void>> all;
      for (std::size_t r = 0; r < readers; ++r)
        all.push_back(weft::spawn([in = first]() mutable {
          std::uint64_t got = 0, missed = 0;
          std::vector<std::uint64_t> last(writers);
          while (auto v = in.recv()) {
            ++got;
            missed += in.missed();
            std::uint64_t& before = last[*v % writers];  // of the same writer: in order, never twice
            EXPECT_GT(*v / writers + 1, before);
            before = *v / writers + 1;
          }
          EXPECT_EQ(got + missed, writers * each);
        }));
      first.reset();
      for (std::size_t w = 0; w < writers; ++w)
        all.push_back(weft::spawn([my_out = out, w]() mutable {
          for (std::uint64_t i = 0; i < each; ++i) EXPECT_TRUE(my_out.send(i * writers + w));
        }));
      out.reset();
      for (auto& h : all) h.join();
    });
  });
}

// One who waits each time and one who sends each time: a lost wake would hang.
// req: BZ-13
TEST(Broadcast, a_value_is_never_missed_by_one_who_waits) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(100s);
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(20'000);
    rt->run([&] {
      auto [ping, ping_in] = weft::make_broadcast<std::size_t>(1);
      auto [pong, pong_in] = weft::make_broadcast<std::size_t>(1);
      auto echo = weft::spawn([in = std::move(ping_in), out = std::move(pong)]() mutable {
        while (auto v = in.recv()) EXPECT_TRUE(out.send(*v));
      });
      for (std::size_t i = 0; i < rounds; ++i) {
        EXPECT_TRUE(ping.send(i));
        EXPECT_EQ(pong_in.recv(), i);
      }
      ping.reset();
      echo.join();
    });
  });
}

// req: BZ-13
TEST(Broadcast, close_ends_after_what_is_left_and_throws_its_error) {
  auto [out, in] = weft::make_broadcast<int>(4);
  EXPECT_TRUE(out.send(1));
  out.close(std::make_exception_ptr(std::runtime_error("over")));
  EXPECT_EQ(out.send(2).status(), weft::send_status::closed);
  EXPECT_EQ(in.recv(), 1);
  EXPECT_THROW((void)in.recv(), std::runtime_error);
}

// req: BZ-13
TEST(Broadcast, a_cancelled_reader_has_taken_nothing) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([&] {
      auto [out, in] = weft::make_broadcast<int>(4);
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
TEST(Broadcast, threads_receive_too) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  auto [out, in] = weft::make_broadcast<int>(1'000);
  std::thread reader([my_in = std::move(in)]() mutable {
    int expected = 0;
    while (auto v = my_in.recv()) EXPECT_EQ(*v, expected++);
    EXPECT_EQ(expected, 1'000);
  });
  rt->run([my_out = std::move(out)]() mutable {
    for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(my_out.send(i));
  });
  reader.join();
}

// req: BZ-13
TEST(Broadcast, it_is_an_arm_of_a_select) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    rt->run([] {
      auto [out, in] = weft::make_broadcast<int>(64);
      auto [stop, stopped] = weft::make_oneshot<bool>();
      auto sending = weft::spawn([my_out = std::move(out), my_stop = std::move(stop)]() mutable {
        for (int i = 0; i < 50; ++i) EXPECT_TRUE(my_out.send(i));
        (void)weft::prialt(~my_out);  // nobody reads any more
        EXPECT_TRUE(my_stop.send(true));
      });
      for (int i = 0; i < 50; ++i) {
        int v = -1;
        EXPECT_TRUE(weft::alt(in >> v, stopped.on_recv([](bool) { ADD_FAILURE(); })).ok());
        EXPECT_EQ(v, i);
      }
      in.reset();
      EXPECT_EQ(stopped.recv(), true);
      sending.join();
    });
  });
}

struct noisy {
  int value = 0;
  noisy(int v) : value(v) {}
  noisy(const noisy&) = default;
  noisy& operator=(const noisy&) = default;
  ~noisy() {
    if (weft::base::locks_held() != 0) ++destroyed_under_a_lock;  // counted in checked builds only
  }
  static inline weft::base::atomic<int> destroyed_under_a_lock{0};
};

// req: BZ-13
TEST(Broadcast, what_is_replaced_is_destroyed_without_the_lock) {
  auto [out, in] = weft::make_broadcast<std::shared_ptr<noisy>>(2);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(out.send(std::make_shared<noisy>(i)));
  EXPECT_EQ((*in.recv())->value, 8);
  EXPECT_EQ(noisy::destroyed_under_a_lock.load(), 0);
}

struct moody {
  int value = 0;
  bool throws = false;
  moody(int v) : value(v) {}
  moody(const moody& other) : value(other.value), throws(other.throws) {
    if (throws) throw std::runtime_error("moody");
  }
  moody(moody&& other) noexcept = default;
  moody& operator=(moody&& other) noexcept = default;
};

// req: BZ-13
TEST(Broadcast, a_copy_that_throws_leaves_the_reader_where_it_was) {
  auto [out, in] = weft::make_broadcast<moody>(2);
  moody bad(1);
  bad.throws = true;
  EXPECT_TRUE(out.send(std::move(bad)));
  EXPECT_THROW((void)in.recv(), std::runtime_error);
  EXPECT_THROW((void)in.recv(), std::runtime_error);
  EXPECT_TRUE(out.send(moody(2)));
  EXPECT_TRUE(out.send(moody(3)));
  EXPECT_EQ(in.recv()->value, 2);
  EXPECT_EQ(in.missed(), 1u);
}

// req: BZ-13
TEST(Broadcast, it_holds_at_least_one_and_not_more_than_could_be) {
  EXPECT_THROW((void)weft::make_broadcast<int>(0), weft::usage_error);
  EXPECT_THROW((void)weft::make_broadcast<int>(SIZE_MAX), weft::usage_error);
}

// req: BZ-13 BZ-11
TEST(Broadcast, a_recv_with_a_time_limit_gives_up_in_time_or_gets_the_value_or_throws_the_error) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  auto [out, in] = weft::make_broadcast<int>(2);
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
TEST(Broadcast, an_error_that_comes_after_the_end_changes_nothing) {
  auto [out, in] = weft::make_broadcast<int>(2);
  out.close();
  out.close(std::make_exception_ptr(std::runtime_error("too late")));
  EXPECT_EQ(in.recv(), std::nullopt);
  EXPECT_EQ(in.close_error(), nullptr);
}

// req: BZ-13 CSP-4
TEST(Broadcast, an_arm_that_is_used_again_is_told_of_the_end_and_not_of_the_last_value) {
  auto [out, in] = weft::make_broadcast<std::string>(2);
  bool had_value = false;
  auto arm = in.on_recv([&](std::optional<std::string> v) { had_value = v.has_value(); });
  EXPECT_TRUE(out.send("a value"));
  EXPECT_TRUE(weft::select(arm).ok());
  EXPECT_TRUE(had_value);
  out.close();
  EXPECT_FALSE(weft::select(arm).ok());
  EXPECT_FALSE(had_value);
}
}  // namespace
