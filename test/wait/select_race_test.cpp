// Select: exactly one arm wins, whoever comes at the same time, and the others leave no trace.
// ctest: channels
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using weft::alt;
using weft::prialt;

// req: CC-11
TEST(Select, losers_leave_no_trace_whatever_woke_the_select) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (int how = 0; how < 5; ++how) {
      auto [a_out, a_in] = weft::make_channel<int>(0);
      auto [b_out, b_in] = weft::make_channel<int>(1);
      auto [c_out, c_in] = weft::make_channel<token>(0);
      EXPECT_TRUE(b_out.send(1));
      auto task = rt->spawn([&, how] {
        int v = 0;
        token mine(1);
        auto limit = weft::after(how == 3 ? 2ms : std::chrono::milliseconds(1h));
        const auto s = alt(a_in >> v, b_out << 2, c_out << std::move(mine), ~c_out, limit);
        EXPECT_EQ(mine.is_there(), s.index() != 2);
        return s.index();
      });
      if (how != 3)
        until([&] {
          return a_in.statistics().waiting_receivers + b_in.statistics().waiting_senders +
                     c_in.statistics().waiting_senders ==
                 3;
        });
      switch (how) {
        case 0: EXPECT_TRUE(a_out.send(1)); break;
        case 1: EXPECT_EQ(b_in.recv(), 1); break;
        case 2: EXPECT_TRUE(c_in.recv()); break;
        case 3: break;
        default: task.cancel();
      }
      if (how == 4) {
        EXPECT_THROW((void)task.join(), weft::task_cancelled);
      } else {
        EXPECT_EQ(task.join(), how == 3 ? 4u : static_cast<std::size_t>(how));
      }
      EXPECT_TRUE(nobody_waits(a_in));
      EXPECT_TRUE(nobody_waits(b_in));
      EXPECT_TRUE(nobody_waits(c_in));
      // The fast paths are open again.
      EXPECT_TRUE(b_in.recv());
      EXPECT_TRUE(b_out.try_send(3));
    }
  });
}

// req: CC-11 CSP-4
TEST(Select, a_thousand_arms_work_in_tasks_and_threads) {
  support::watchdog guard(60s);
  constexpr std::size_t n = 1'000;
  std::vector<weft::channel_ends<int>> channels;
  for (std::size_t i = 0; i < n; ++i) channels.push_back(weft::make_channel<int>(i % 3));
  const auto receive_all = [&] {
    std::vector<int> values(n);
    std::vector<weft::receive_arm<int>> arms;
    for (std::size_t i = 0; i < n; ++i) arms.push_back(channels[i].in >> values[i]);
    int sum = 0;
    for (std::size_t i = 0; i < 500; ++i) {
      const auto s = alt(arms);
      EXPECT_TRUE(s.ok());
      sum += values[s.index()];
    }
    return sum;
  };
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    auto receiver = rt->spawn(receive_all);
    int outside = 0;
    std::thread thread([&] { outside = receive_all(); });
    auto sender = rt->spawn([&] {
      for (int i = 0; i < 1'000; ++i) EXPECT_TRUE(channels[static_cast<std::size_t>(i * 7919) % n].out.send(i + 1));
    });
    sender.join();
    thread.join();
    EXPECT_EQ(receiver.join() + outside, 1'000 * 1'001 / 2);
  });
  for (auto& c : channels) EXPECT_TRUE(nobody_waits(c.in));
}

// req: CSP-5
TEST(Select, two_selects_that_list_the_same_channels_in_opposite_orders_do_not_block_each_other) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {0, 1}) {
      auto [a_out, a_in] = make<int>(capacity);
      auto [b_out, b_in] = make<int>(capacity);
      const std::size_t n = scaled(5'000);
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 2; ++i) {
        all.push_back(rt->spawn([&] {
          for (std::size_t k = 0; k < n; ++k) (void)alt(a_out << 1, b_out << 1);
        }));
        all.push_back(rt->spawn([&] {
          for (std::size_t k = 0; k < n; ++k) (void)prialt(b_out << 1, a_out << 1);
        }));
        all.push_back(rt->spawn([&] {
          int v = 0;
          for (std::size_t k = 0; k < n; ++k) (void)alt(a_in >> v, b_in >> v);
        }));
        all.push_back(rt->spawn([&] {
          int v = 0;
          for (std::size_t k = 0; k < n; ++k) (void)prialt(b_in >> v, a_in >> v);
        }));
      }
      for (auto& h : all) h.join();
      EXPECT_EQ(a_in.statistics().sent + b_in.statistics().sent, 4 * n);
      EXPECT_EQ(a_in.statistics().received + b_in.statistics().received, 4 * n);
      EXPECT_TRUE(nobody_waits(a_in) && nobody_waits(b_in));
    }
  });
}

// Two that only ever select with each other, each over sends and receives of both channels.
// req: CSP-4 CSP-5
TEST(Select, selects_on_both_sides_at_once_meet_and_agree) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [a_out, a_in] = weft::make_channel<int>(0);
    auto [b_out, b_in] = weft::make_channel<int>(0);
    const int n = static_cast<int>(scaled(5'000));
    base::atomic<std::int64_t> balance{0};
    std::vector<weft::join_handle<void>> all;
    for (int t = 0; t < 4; ++t)
      all.push_back(rt->spawn([&, t] {
        for (int i = 0; i < n; ++i) {
          int v = 0;
          const int mine = t * n + i;
          const auto s = t % 2 == 0 ? static_cast<weft::selected>(alt(a_out << mine, b_in >> v))
                                    : static_cast<weft::selected>(alt(b_out << mine, a_in >> v));
          balance += s.index() == 0 ? mine : -v;
          // Even ones offer a and take b, odd ones the other way round: sends and receives come in pairs.
        }
      }));
    // The numbers need not come out even: whoever is left over is cancelled.
    until([&] {
      std::size_t waiting = 0;
      for (auto& h : all) waiting += h.is_finished() ? 1 : 0;
      return waiting == 4 || (a_in.statistics().waiting_receivers + b_in.statistics().waiting_receivers + waiting == 4);
    });
    for (auto& h : all) h.cancel();
    for (auto& h : all) try {
        h.join();
      } catch (const weft::task_cancelled&) {}
    EXPECT_EQ(balance.load(), 0);
    EXPECT_EQ(a_in.statistics().sent, a_in.statistics().received);
    EXPECT_TRUE(nobody_waits(a_in) && nobody_waits(b_in));
  });
}

// req: CC-11
TEST(Select, fifty_selectors_and_fifty_senders_over_two_rendezvous_channels) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [a_out, a_in] = weft::make_channel<int>(0);
    auto [b_out, b_in] = weft::make_channel<int>(0);
    const int n = static_cast<int>(scaled(1'000));
    base::atomic<std::int64_t> received{0};
    std::vector<weft::join_handle<void>> all;
    for (int t = 0; t < 50; ++t) {
      all.push_back(rt->spawn([&, t] {
        for (int i = 1; i <= n; ++i) ASSERT_TRUE((t % 2 == 0 ? a_out : b_out).send(i));
      }));
      all.push_back(rt->spawn([&] {
        std::int64_t sum = 0;
        for (int i = 0; i < n; ++i) {
          int v = 0;
          ASSERT_TRUE(alt(a_in >> v, b_in >> v).ok());
          sum += v;
        }
        received += sum;
      }));
    }
    for (auto& h : all) h.join();
    EXPECT_EQ(received.load(), std::int64_t{50} * n * (n + 1) / 2);
    EXPECT_TRUE(nobody_waits(a_in) && nobody_waits(b_in));
  });
}

// req: CC-8 CC-11
TEST(Select, a_select_of_one_arm_never_misses_its_wake) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {0, 1}) {
      auto [there_out, there_in] = make<int>(capacity);
      auto [back_out, back_in] = make<int>(capacity);
      const int n = static_cast<int>(scaled(100'000));
      auto one = rt->spawn([&] {
        int v = 0;
        for (int i = 0; i < n; ++i) {
          ASSERT_TRUE(alt(there_out << i).ok());
          ASSERT_TRUE(prialt(back_in >> v).ok());
          ASSERT_EQ(v, i);
        }
      });
      auto two = rt->spawn([&] {
        int v = 0;
        for (int i = 0; i < n; ++i) {
          ASSERT_TRUE(prialt(there_in >> v).ok());
          ASSERT_TRUE(alt(back_out << v).ok());
        }
      });
      one.join();
      two.join();
    }
  });
}

// req: CC-11 CC-10
TEST(Select, closes_cancels_and_values_race_for_a_select_and_one_wins) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t round = 0; round < scaled(1'500); ++round) {
      auto [a_out, a_in] = make<int>(round % 2);
      auto [b_out, b_in] = weft::make_channel<int>(0);
      auto task = rt->spawn([&] {
        int v = 0;
        const auto s = alt(a_in >> v, b_in >> v);
        return s.ok() ? v : 0;
      });
      base::atomic<int> sent{0};
      auto send_a = rt->spawn([&] { sent += a_out.try_send(1) ? 1 : 0; });
      auto send_b = rt->spawn([&] { sent += b_out.try_send(2) ? 2 : 0; });
      auto close_b = rt->spawn([&] { b_out.close(); });
      if (round % 3 == 0) task.cancel();
      int got = 0;
      try {
        got = task.join();
      } catch (const weft::task_cancelled&) {}
      send_a.join();
      send_b.join();
      close_b.join();
      if (auto left = a_in.try_recv()) got += *left;
      ASSERT_EQ(got, sent.load());
      ASSERT_TRUE(nobody_waits(a_in) && nobody_waits(b_in));
    }
  });
}

}  // namespace
