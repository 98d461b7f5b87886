// Select: closed channels, deaths, handlers, and one channel in several arms.
// ctest: channels
#include <functional>
#include <set>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using weft::alt;
using weft::prialt;

// req: CSP-3 CSP-4
TEST(Select, a_closed_channel_wins_and_says_that_it_was_no_value) {
  auto [out, in] = weft::make_channel<int>(1);
  EXPECT_TRUE(out.send(1));
  out.close();
  std::optional<int> got = 9;
  EXPECT_TRUE(alt(in >> got).ok());
  EXPECT_EQ(got, 1);
  EXPECT_FALSE(alt(in >> got).ok());
  EXPECT_EQ(got, std::nullopt);
  int v = 5;
  EXPECT_FALSE(alt(in >> v).ok());
  EXPECT_EQ(v, 5);
  EXPECT_FALSE(alt(out << 3).ok());
}

// req: CSP-3
TEST(Select, the_death_of_either_side_can_be_waited_for) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      auto [out, in] = make<int>(capacity);
      base::atomic<int> seen{0};
      auto first = rt->spawn([&seen, w = out]() mutable {
        EXPECT_FALSE(alt(~w).ok());
        ++seen;
      });
      EXPECT_EQ(alt(~out, weft::otherwise).index(), 1u);
      EXPECT_EQ(alt(~in, weft::otherwise).index(), 1u);
      EXPECT_EQ(seen.load(), 0);
      in.reset();
      first.join();
      EXPECT_EQ(seen.load(), 1);
      EXPECT_EQ(alt(~out).index(), 0u);

      auto [out2, in2] = make<int>(capacity);
      auto second = rt->spawn([&seen, r = in2]() mutable { (void)weft::select(r.on_death([&] { ++seen; })); });
      out2.reset();
      second.join();
      EXPECT_EQ(seen.load(), 2);
    });
  });
}

// req: CSP-3
TEST(Select, a_handler_that_takes_an_optional_is_told_of_the_close_and_one_that_takes_a_value_is_not) {
  auto [out, in] = weft::make_channel<int>(2);
  EXPECT_TRUE(out.send(1));
  EXPECT_TRUE(out.send(2));
  out.close();
  std::vector<std::optional<int>> heard;
  const auto listen = [&](std::optional<int> v) { heard.push_back(v); };
  EXPECT_TRUE(weft::select(in.on_recv(listen)).ok());
  EXPECT_TRUE(weft::select(in.on_recv([&](auto v) { heard.push_back(v + 10); })).ok());
  EXPECT_FALSE(weft::select(in.on_recv([&](int) { heard.push_back(99); })).ok());
  EXPECT_FALSE(weft::select(in.on_recv(listen)).ok());
  EXPECT_FALSE(weft::select(in.on_recv(std::function<void(const std::optional<int>&)>(listen))).ok());
  EXPECT_EQ(heard, (std::vector<std::optional<int>>{1, 12, std::nullopt, std::nullopt}));
}

// req: CSP-4
TEST(Select, handlers_run_for_the_arm_that_won_only) {
  auto [out, in] = weft::make_channel<std::unique_ptr<int>>(1);
  std::string log;
  auto limit = weft::after(1h);
  const auto step = [&] {
    return weft::select(in.on_recv([&](std::unique_ptr<int> v) { log += "received " + std::to_string(*v) + ";"; }),
                        out.on_send(std::make_unique<int>(7), [&] { log += "sent;"; }),
                        limit.on_expire([&] { log += "expired;"; }), in.on_death([&] { log += "dead;"; }))
        .index();
  };
  EXPECT_EQ(step(), 1u);
  EXPECT_EQ(step(), 0u);
  EXPECT_EQ(log, "sent;received 7;");
  limit.restart(-1s);
  out.close();
  std::set<std::size_t> winners;
  until([&] {
    winners.insert(step());
    return winners.size() == 4;  // all of them are ready now, and select is fair
  });
}

// req: CSP-4
TEST(Select, empty_ends_of_oneshot_broadcast_and_watch_disable_their_arms) {
  const auto check = [](auto reader, auto writer) {
    auto [out, in] = weft::make_channel<int>(2);
    int v = 0;
    EXPECT_TRUE(out.send(1));
    EXPECT_EQ(prialt(reader >> v, ~writer, in >> v).index(), 2u);
    EXPECT_EQ(v, 1);
    EXPECT_TRUE(out.send(2));
    EXPECT_EQ(alt(in >> v, reader >> v).index(), 0u);
    EXPECT_THROW((void)prialt(reader >> v), weft::usage_error);
    EXPECT_THROW((void)alt(~writer, reader >> v), weft::usage_error);
  };
  check(weft::oneshot_reader<int>(), weft::oneshot_writer<int>());
  check(weft::broadcast_reader<int>(), weft::broadcast_writer<int>());
  check(weft::watch_reader<int>(), weft::watch_writer<int>());
}

// req: CSP-4
TEST(Select, one_channel_may_be_on_both_sides_of_a_select_and_does_not_meet_itself) {
  at_worker_counts([](std::size_t workers) {
    for (const bool send_first : {false, true}) {
      watched_runtime rt(workers);
      auto [out, in] = weft::make_channel<int>(0);
      int v = 0;
      EXPECT_EQ(alt(out << 1, in >> v, weft::otherwise).index(), 2u);
      auto task = rt->spawn([&] {
        int got = 0;
        const auto s = send_first ? static_cast<weft::selected>(prialt(out << 1, in >> got))
                                  : static_cast<weft::selected>(prialt(in >> got, out << 1));
        return std::pair(s.index() == (send_first ? 0u : 1u), got);
      });
      until([&] { return in.statistics().waiting_senders == 1 && in.statistics().waiting_receivers == 1; });
      if (send_first)
        EXPECT_EQ(in.recv(), 1);
      else
        EXPECT_TRUE(out.send(5));
      EXPECT_EQ(task.join(), send_first ? std::pair(true, 0) : std::pair(false, 5));
      EXPECT_TRUE(nobody_waits(in));
    }
  });
}

// req: CSP-4
TEST(Select, on_a_buffered_channel_both_sides_work_in_one_select) {
  for (const std::size_t capacity : {std::size_t{1}, std::size_t{3}, no_limit}) {
    auto [out, in] = make<int>(capacity);
    int sent = 0;
    int received = 0;
    int v = -1;
    for (int i = 0; i < 1'000; ++i) {
      if (alt(out << i, in >> v).index() == 0)
        ++sent;
      else
        ++received;
      EXPECT_EQ(in.size(), static_cast<std::size_t>(sent - received));
    }
    EXPECT_GT(received, 0);
  }
}

// req: CSP-4
TEST(Select, one_channel_may_be_in_a_select_twice_on_the_same_side) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      auto [out, in] = make<int>(capacity);
      std::set<std::size_t> winners;
      int sum = 0;
      const int n = 200;
      auto receiver = rt->spawn([&] {
        for (int i = 0; i < n; ++i) {
          int a = 0;
          int b = 0;
          winners.insert(alt(in >> a, in >> b).index());
          sum += a + b;
        }
      });
      for (int i = 0; i < n; ++i) EXPECT_TRUE(out.send(1));
      receiver.join();
      EXPECT_EQ(sum, n);
      EXPECT_TRUE(nobody_waits(in));
      // Ready before the select looks, each of the two wins now and then; woken, the first of them does.
      EXPECT_FALSE(winners.empty());
    });
  });
}

}  // namespace
