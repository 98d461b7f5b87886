// First in, first out; hand-over before buffering; who runs next; and how fair that is to others.
#include <algorithm>
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;

// req: LS-C4
TEST(Order, one_sender_and_one_receiver_see_the_same_order) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      auto [out, in] = make<std::uint64_t>(capacity);
      const std::uint64_t n = scaled(20'000);
      auto sender = rt->spawn([&] {
        for (std::uint64_t i = 0; i < n; ++i) EXPECT_TRUE(out.send(i));
        out.close();
      });
      auto receiver = rt->spawn([&] {
        std::uint64_t expected = 0;
        while (auto v = in.recv()) ASSERT_EQ(*v, expected++);
        EXPECT_EQ(expected, n);
      });
      sender.join();
      receiver.join();
    });
  });
}

// req: LS-C4
TEST(Order, waiting_senders_are_received_in_the_order_of_their_coming) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {0, 1, 3, 8}) {
      auto [out, in] = make<int>(capacity);
      const int n = static_cast<int>(capacity) + 20;
      for (int i = 0; i < static_cast<int>(capacity); ++i) EXPECT_TRUE(out.send(i));
      std::vector<weft::join_handle<void>> all;
      for (int i = static_cast<int>(capacity); i < n; ++i) {
        all.push_back(rt->spawn([&out, i] { EXPECT_TRUE(out.send(i)); }));
        until_senders_wait(out, all.size());
      }
      for (int i = 0; i < n; ++i) EXPECT_EQ(in.recv(), i);
      for (auto& h : all) h.join();
    }
  });
}

// req: LS-C4
TEST(Order, waiting_receivers_are_served_in_the_order_of_their_coming) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      auto [out, in] = make<int>(capacity);
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 20; ++i) {
        all.push_back(rt->spawn([&in, i] { EXPECT_EQ(in.recv(), i); }));
        until_receivers_wait(in, all.size());
      }
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(out.try_send(i));
      for (auto& h : all) h.join();
    });
  });
}

// req: LS-C4
TEST(Order, a_send_goes_to_a_waiting_receiver_and_not_into_the_buffer) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      auto [out, in] = make<int>(capacity);
      auto receiver = rt->spawn([&] { return in.recv(); });
      until_receivers_wait(in);
      EXPECT_TRUE(out.send(1));
      EXPECT_EQ(in.size(), 0u);
      EXPECT_EQ(in.try_recv(), std::nullopt);
      EXPECT_EQ(receiver.join(), 1);
    });
  });
}

// A sender waits at a full channel; another one tries all the time and may come in only behind it.
// req: LS-C4
TEST(Order, a_later_sender_does_not_take_the_room_made_for_one_that_waits) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {1, 3})
      for (std::size_t round = 0; round < scaled(250); ++round) {
        auto [out, in] = make<int>(capacity);
        for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(0));
        auto waits = rt->spawn([&] { EXPECT_TRUE(out.send(1)); });
        until_senders_wait(out);
        base::atomic<bool> trying{false};
        auto later = rt->spawn([&] {
          while (!out.try_send(2)) {
            trying = true;
            weft::yield();
          }
        });
        until([&] { return trying.load(); });
        std::vector<int> got;
        while (got.size() < capacity + 2)
          if (auto v = in.recv()) got.push_back(*v);
        ASSERT_TRUE(std::is_sorted(got.begin(), got.end()));
        waits.join();
        later.join();
      }
  });
}

// Values carry their sender and a number; every receiver must see each sender's numbers rise.
template <class T, class Make, class Number>
void per_sender_order(std::size_t workers, std::size_t capacity, Make make_value, Number number_of) {
  constexpr int senders = 4;
  watched_runtime rt(workers);
  auto [out, in] = make<T>(capacity);
  const int n = static_cast<int>(scaled(3'000));
  base::atomic<std::int64_t> received{0};
  std::vector<weft::join_handle<void>> all;
  for (int s = 0; s < senders; ++s)
    all.push_back(rt->spawn([&, s, w = out]() mutable {
      for (int i = 0; i < n; ++i) ASSERT_TRUE(w.send(make_value(s, i)));
    }));
  for (int r = 0; r < 3; ++r)
    all.push_back(rt->spawn([&] {
      int last[senders] = {-1, -1, -1, -1};
      while (auto v = in.recv()) {
        const auto [s, i] = number_of(*v);
        ASSERT_LT(last[s], i);
        last[s] = i;
        received.fetch_add(1);
      }
    }));
  out.reset();
  for (auto& h : all) h.join();
  EXPECT_EQ(received.load(), std::int64_t{senders} * n);
}

// req: LS-C4 CC-7 CC-8
TEST(Order, a_hand_over_never_overtakes_what_is_buffered) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    at_capacities([&](std::size_t capacity) {
      per_sender_order<std::pair<int, int>>(
          workers, capacity, [](int s, int i) { return std::pair(s, i); }, [](const auto& v) { return v; });
      struct small {
        int sender, number;
      };
      per_sender_order<small>(
          workers, capacity, [](int s, int i) { return small{s, i}; },
          [](const small& v) { return std::pair(v.sender, v.number); });
    });
  });
}

// Never more than two elements are under way, so a try_send into a ring of a thousand is never told "full".
// req: LS-C1 KC-11
TEST(Order, a_channel_that_is_nearly_empty_is_never_called_full) {
  support::watchdog guard(60s);
  for (const std::size_t capacity : {std::size_t{64}, std::size_t{100}}) {
    auto [out, in] = weft::make_channel<int>(capacity);
    base::atomic<std::size_t> full{0};
    base::atomic<bool> over{false};
    std::vector<std::thread> senders;
    base::atomic<int> under_way{0};
    for (int s = 0; s < 2; ++s)
      senders.emplace_back([&] {
        for (std::size_t i = 0; i < scaled(200'000); ++i) {
          while (under_way.load() > 2)  // or a receiver that waits for a processor would hold them all up
            if (in.try_recv()) --under_way;
          ++under_way;
          if (!out.try_send(1)) ++full, --under_way;
        }
      });
    std::thread receiver([&] {
      while (!over.load()) {
        while (in.try_recv()) --under_way;
        std::this_thread::yield();  // both senders may be waiting for a processor
      }
    });
    for (auto& t : senders) t.join();
    over = true;
    receiver.join();
    EXPECT_EQ(full.load(), 0u);
  }
}

// req: CSP-15
TEST(Order, on_one_worker_the_woken_peer_runs_next) {
  if (weft::sched::force_migration) GTEST_SKIP() << "a woken task goes to an inbox in this build";
  watched_runtime rt(1);
  rt->run([] {
    auto [out, in] = weft::make_channel<int>(0);
    std::vector<int> log;
    auto receiver = weft::spawn([&] {
      while (auto v = in.recv()) log.push_back(*v);
    });
    until_receivers_wait(in);
    std::vector<weft::join_handle<void>> others;
    int begun = 0;
    bool go = false;
    for (int i = 0; i < 10; ++i)
      others.push_back(weft::spawn([&] {
        ++begun;
        while (!go) weft::yield();
        log.push_back(-1);
      }));
    until([&] { return begun == 10; });
    go = true;  // all of them are runnable, and have run before, as the receiver has
    EXPECT_TRUE(out.send(1));  // the receiver is next when this task parks
    EXPECT_TRUE(out.send(2));
    EXPECT_TRUE(out.send(3));
    // The send of 3 met nobody before the receiver had taken 2.
    const auto first_other = std::find(log.begin(), log.end(), -1);
    const auto first_value = std::find(log.begin(), log.end(), 1);
    EXPECT_LT(first_value, first_other);
    out.close();
    receiver.join();
    for (auto& h : others) h.join();
    EXPECT_EQ(std::count(log.begin(), log.end(), -1), 10);
    EXPECT_EQ(log.size(), 13u);
  });
}

// req: CSP-15
TEST(Order, a_pair_that_never_stops_talking_starves_nobody) {
  support::watchdog guard(60s);
  for (const std::size_t capacity : {0, 1, 8}) {
    watched_runtime rt(1);
    rt->run([capacity] {
      auto [there_out, there_in] = make<int>(capacity);
      auto [back_out, back_in] = make<int>(capacity);
      bool over = false;
      auto ping = weft::spawn([&, out = std::move(there_out), in = std::move(back_in)]() mutable {
        while (!over) {
          EXPECT_TRUE(out.send(1));
          EXPECT_TRUE(in.recv());
        }
      });
      auto pong = weft::spawn([&, out = std::move(back_out), in = std::move(there_in)]() mutable {
        while (auto v = in.recv()) EXPECT_TRUE(out.send(*v));
      });
      int turns = 0;
      auto other = weft::spawn([&] {
        for (; turns < 100; ++turns) weft::yield();
        over = true;
      });
      other.join();
      ping.join();
      pong.join();
      EXPECT_EQ(turns, 100);
    });
  }
}

// One that can always send (the channel never fills up) must let others run too.
// req: CSP-15
TEST(Order, a_task_whose_operations_never_wait_still_gives_way) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    auto [out, in] = weft::make_channel<int>(4);
    bool over = false;
    auto other = weft::spawn([&] { over = true; });
    while (!over) {
      EXPECT_TRUE(out.send(1));
      EXPECT_EQ(in.recv(), 1);
    }
    other.join();
  });
}

// req: LS-C2 CC-8 CC-9
TEST(Order, a_pipeline_of_four_stages_does_not_lose_its_tail) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t round = 0; round < scaled(500); ++round) {
      const int n = 17 + static_cast<int>(round % 40);
      std::vector<weft::join_handle<void>> stages;
      auto first = weft::make_channel<int>(8);
      weft::reader<int> from = std::move(first.in);
      stages.push_back(rt->spawn([n, out = std::move(first.out)]() mutable {
        for (int i = 0; i < n; ++i) EXPECT_TRUE(out.send(i));
      }));
      for (int stage = 0; stage < 3; ++stage) {
        auto next = weft::make_channel<int>(8);
        stages.push_back(rt->spawn([in = std::move(from), out = std::move(next.out)]() mutable {
          while (auto v = in.recv()) EXPECT_TRUE(out.send(*v + 1));
        }));
        from = std::move(next.in);
      }
      int got = 0;
      for (int& v : from) ASSERT_EQ(v, 3 + got++);
      ASSERT_EQ(got, n);
      for (auto& s : stages) s.join();
    }
  });
}

}  // namespace
