// The two ends of a channel: counted handles, what they tell, what an empty one says.
#include <algorithm>
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;

static_assert(!std::is_copy_constructible_v<token> && !weft::chan::is_small<token>);
struct two_words {
  std::uint64_t first;
  char second;
};
static_assert(weft::chan::is_small<int> && weft::chan::is_small<two_words>);
static_assert(!weft::channel_element<int&> && !weft::channel_element<const int> && !weft::channel_element<int[2]>);
static_assert(std::is_nothrow_move_constructible_v<weft::writer<int>> &&
              std::is_nothrow_move_assignable_v<weft::reader<int>>);

// req: CSP-2
TEST(Ends, a_new_channel_is_open_and_empty) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    EXPECT_FALSE(out.is_closed());
    EXPECT_FALSE(in.is_closed());
    EXPECT_EQ(in.size(), 0u);
    EXPECT_EQ(out.capacity(), capacity);
    EXPECT_EQ(in.try_recv(), std::nullopt);
    EXPECT_EQ(in.close_error(), nullptr);
    const weft::channel_statistics s = in.statistics();
    EXPECT_EQ(s.sent + s.received + s.size + s.waiting_senders + s.waiting_receivers, 0u);
  });
}

// req: CSP-2
TEST(Ends, the_death_of_the_last_writer_closes_and_not_an_earlier_one) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    weft::writer<int> second = out;
    {
      const weft::writer<int> third(second);
      out.reset();
      EXPECT_FALSE(in.is_closed());
    }
    weft::writer<int> last = std::move(second);
    EXPECT_FALSE(in.is_closed());
    last = weft::writer<int>();
    EXPECT_TRUE(in.is_closed());
    EXPECT_EQ(in.recv(), std::nullopt);
  });
}

// req: CSP-2
TEST(Ends, the_death_of_the_last_reader_fails_sends_and_not_an_earlier_one) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<token>(capacity);
    weft::reader<token> second = in;
    in.reset();
    EXPECT_FALSE(out.is_closed());
    second.reset();
    EXPECT_TRUE(out.is_closed());
    token mine(5);
    EXPECT_EQ(out.send(std::move(mine)).status(), send_status::closed);
    EXPECT_EQ(out.try_send(std::move(mine)).status(), send_status::closed);
    EXPECT_EQ(out.send_for(std::move(mine), 1h).status(), send_status::closed);
    EXPECT_EQ(mine.value(), 5);
  });
}

// req: CSP-2
TEST(Ends, what_a_channel_holds_goes_with_its_last_reader) {
  const auto before = token::alive.load();
  for (const std::size_t capacity : {std::size_t{3}, no_limit}) {
    auto [out, in] = make<token>(capacity);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(out.send(token(i)));
    EXPECT_EQ(token::alive.load(), before + 3);
    EXPECT_EQ(in.recv()->value(), 0);
    in.reset();
    EXPECT_EQ(token::alive.load(), before);
    EXPECT_EQ(out.size(), 0u);
  }
}

// req: CSP-2
TEST(Ends, a_channel_may_hold_its_own_ends) {
  struct pair {
    std::shared_ptr<int> mark;
    weft::writer<std::shared_ptr<pair>> out;
    weft::reader<std::shared_ptr<pair>> in;
  };
  std::weak_ptr<int> mark;
  {
    auto [out, in] = weft::make_channel<std::shared_ptr<pair>>(4);
    auto held = std::make_shared<pair>();
    mark = held->mark = std::make_shared<int>(1);
    held->out = out;
    EXPECT_TRUE(out.send(std::move(held)));
    out.reset();
  }  // the reader's death destroys the last writer, inside of the buffer
  EXPECT_TRUE(mark.expired());
}

// req: CSP-2
TEST(Ends, an_empty_handle_refuses_every_call_with_a_usage_error) {
  weft::writer<int> w;
  weft::reader<int> r;
  EXPECT_FALSE(w);
  EXPECT_FALSE(r);
  EXPECT_THROW((void)w.send(1), weft::usage_error);
  EXPECT_THROW((void)w.try_send(1), weft::usage_error);
  EXPECT_THROW((void)w.send_for(1, 1ms), weft::usage_error);
  EXPECT_THROW((void)w.send_until(1, std::chrono::steady_clock::now()), weft::usage_error);
  EXPECT_THROW(w.close(), weft::usage_error);
  EXPECT_THROW(w.close(error("x")), weft::usage_error);
  EXPECT_THROW((void)w.is_closed(), weft::usage_error);
  EXPECT_THROW((void)w.size(), weft::usage_error);
  EXPECT_THROW((void)w.capacity(), weft::usage_error);
  EXPECT_THROW((void)w.statistics(), weft::usage_error);
  EXPECT_THROW((void)w.close_error(), weft::usage_error);
  EXPECT_THROW((void)r.recv(), weft::usage_error);
  EXPECT_THROW((void)r.try_recv(), weft::usage_error);
  EXPECT_THROW((void)r.recv_for(1ms), weft::usage_error);
  EXPECT_THROW((void)r.recv_until(std::chrono::steady_clock::now()), weft::usage_error);
  EXPECT_THROW((void)r.is_drained(), weft::usage_error);
  EXPECT_THROW(r.close(), weft::usage_error);
  EXPECT_THROW((void)r.begin(), weft::usage_error);
}

// req: CSP-2
TEST(Ends, handles_move_copy_and_compare_as_values) {
  auto [out, in] = weft::make_channel<int>(2);
  auto [other_out, other_in] = weft::make_channel<int>(2);
  weft::writer<int> copy = out;
  EXPECT_TRUE(copy == out);
  EXPECT_FALSE(copy == other_out);
  weft::writer<int>& alias = copy;
  copy = alias;
  EXPECT_TRUE(copy == out);
  weft::writer<int> moved = std::move(copy);
  EXPECT_FALSE(copy);
  EXPECT_TRUE(moved == out);
  std::swap(moved, other_out);
  EXPECT_TRUE(other_out.send(1));
  EXPECT_EQ(in.recv(), 1);
  EXPECT_EQ(other_in.try_recv(), std::nullopt);
}

// As with the arms of a select, an end itself does not change: a lambda that owns one need not be mutable.
TEST(Ends, move_into_the_tasks_that_use_them) {
  auto [out, in] = weft::make_channel<int>(1);
  const int sum = weft::run([&] {
    auto sender = weft::spawn([to = std::move(out)] {
      for (int i = 1; i <= 4; ++i) EXPECT_TRUE(to.send(i));
    });
    auto receiver = weft::spawn([from = std::move(in)] {
      int got = from.recv().value_or(0) + from.recv_for(1h).value_or(0);
      for (const int v : from) got += v;
      return got;
    });
    sender.join();
    return receiver.join();
  });
  EXPECT_EQ(sum, 10);
}

// req: CSP-2
TEST(Ends, an_absurd_capacity_is_refused) {
  EXPECT_THROW((void)weft::make_channel<int>((std::size_t{1} << 40) + 1), weft::usage_error);
  EXPECT_THROW((void)weft::make_channel<token>(SIZE_MAX), weft::usage_error);
}

// req: CSP-2
TEST(Ends, a_range_for_ends_with_the_close) {
  at_capacities([](std::size_t capacity) {
    watched_runtime rt(2);
    auto [out, in] = make<int>(capacity);
    auto sender = rt->spawn([w = std::move(out)]() mutable {
      for (int i = 0; i < 20; ++i) EXPECT_TRUE(w.send(i));
    });
    int expected = 0;
    for (int& v : in) EXPECT_EQ(v, expected++);
    EXPECT_EQ(expected, 20);
    sender.join();
  });
}

// req: CSP-2
TEST(Ends, a_range_for_hands_out_move_only_elements) {
  auto [out, in] = weft::make_channel<std::unique_ptr<int>>(4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(out.send(std::make_unique<int>(i)));
  out.close();
  std::vector<std::unique_ptr<int>> all;
  for (std::unique_ptr<int>& v : in) all.push_back(std::move(v));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(*all[3], 3);
}

// req: CSP-2
TEST(Ends, statistics_count_what_went_through_and_who_waits) {
  watched_runtime rt(2);
  auto [out, in] = weft::make_channel<int>(2);
  EXPECT_TRUE(out.send(1));
  EXPECT_TRUE(out.try_send(2));
  EXPECT_EQ(out.try_send(3).status(), send_status::full);
  EXPECT_EQ(in.statistics().sent, 2u);
  EXPECT_EQ(in.statistics().size, 2u);
  auto sender = rt->spawn([&] { EXPECT_TRUE(out.send(3)); });
  until_senders_wait(in);
  EXPECT_EQ(in.statistics().sent, 2u);
  EXPECT_EQ(in.recv(), 1);
  sender.join();
  EXPECT_EQ(in.statistics().sent, 3u);
  EXPECT_EQ(in.statistics().received, 1u);
  EXPECT_EQ(in.recv(), 2);
  EXPECT_EQ(in.recv(), 3);
  auto receiver = rt->spawn([&] { EXPECT_EQ(in.recv(), 4); });
  until_receivers_wait(out);
  EXPECT_TRUE(out.send(4));
  receiver.join();
  EXPECT_EQ(out.statistics().sent, 4u);
  EXPECT_EQ(out.statistics().received, 4u);
  EXPECT_TRUE(nobody_waits(out));
}

// req: CSP-2
TEST(Ends, what_statistics_tell_under_load_is_possible) {
  support::watchdog guard(100s);
  for (const std::size_t capacity : {std::size_t{1}, std::size_t{3}, std::size_t{8}}) {
    watched_runtime rt(4);
    auto [out, in] = weft::make_channel<std::uint64_t>(capacity);
    base::atomic<bool> over{false};
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 2; ++i) {
      all.push_back(rt->spawn([&out] {
        for (std::uint64_t n = 0; n < scaled(200'000); ++n) (void)out.send(n);
      }));
      all.push_back(rt->spawn([&in] {
        while (in.recv()) {}
      }));
    }
    std::size_t largest = 0;
    std::size_t impossible = 0;
    std::thread watcher([&] {
      while (!over.load()) {
        const weft::channel_statistics s = in.statistics();
        largest = std::max({largest, s.size, in.size()});
        if (s.received > s.sent) ++impossible;
      }
    });
    all[0].join();
    all[2].join();
    out.close();
    all[1].join();
    all[3].join();
    over = true;
    watcher.join();
    EXPECT_LE(largest, capacity);
    EXPECT_EQ(impossible, 0u);
    EXPECT_EQ(in.statistics().sent, 2 * scaled(200'000));
    EXPECT_EQ(in.statistics().received, 2 * scaled(200'000));
  }
}

// req: CSP-2 CC-9
TEST(Ends, drained_means_that_nothing_will_ever_come) {
  watched_runtime rt(2);
  at_capacities([&](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    EXPECT_FALSE(in.is_drained());
    auto sender = rt->spawn([&] { EXPECT_TRUE(out.send(1)); });
    until([&] { return out.size() + out.statistics().waiting_senders == 1; });
    out.close();
    EXPECT_FALSE(in.is_drained());
    EXPECT_EQ(in.try_recv(), 1);
    EXPECT_TRUE(in.is_drained());
    sender.join();
  });
}

// req: LS-C5
TEST(Ends, a_channel_outlives_the_runtime_whose_tasks_used_it) {
  auto [out, in] = weft::make_channel<int>(3);
  for (int round = 0; round < 3; ++round) {
    watched_runtime rt(2);
    rt->run([&] { EXPECT_TRUE(out.send(round)); });
  }
  weft::run([&] {
    for (int round = 0; round < 3; ++round) EXPECT_EQ(in.recv(), round);
  });
}

// req: LS-C5
TEST(Ends, cancelling_its_users_does_not_close_a_channel) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    auto receiver = rt->spawn([&] { (void)in.recv(); });
    until_receivers_wait(out);
    receiver.cancel();
    EXPECT_THROW(receiver.join(), weft::task_cancelled);
    EXPECT_FALSE(out.is_closed());
    auto second = rt->spawn([&] { return in.recv(); });
    EXPECT_TRUE(out.send(7));
    EXPECT_EQ(second.join(), 7);
  });
}

// req: CSP-2
TEST(Ends, tasks_of_two_runtimes_and_a_thread_share_a_channel) {
  support::watchdog guard(60s);
  at_capacities([](std::size_t capacity) {
    watched_runtime one(2);
    watched_runtime two(2);
    auto [out, in] = make<int>(capacity);
    base::atomic<int> sum{0};
    const std::size_t n = scaled(2'000);
    std::vector<weft::join_handle<void>> all;
    for (watched_runtime* rt : {&one, &two}) {
      all.push_back((*rt)->spawn([&out, last = static_cast<int>(n)] {
        for (int i = 1; i <= last; ++i) EXPECT_TRUE(out.send(i));
      }));
      all.push_back((*rt)->spawn([&in, &sum] {
        while (auto v = in.recv()) sum.fetch_add(*v);
      }));
    }
    std::thread outside([&out, last = static_cast<int>(n)] {
      for (int i = 1; i <= last; ++i) EXPECT_TRUE(out.send(i));
    });
    outside.join();
    all[0].join();
    all[2].join();
    out.close();
    all[1].join();
    all[3].join();
    EXPECT_EQ(sum.load(), static_cast<int>(3 * n * (n + 1) / 2));
  });
}

// Ends are dropped on both sides at once, many times; the last one deletes the core, once (seen by ASan).
// req: CSP-2
TEST(Ends, both_sides_may_go_at_the_same_time) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t round = 0; round < scaled(2'000); ++round) {
      auto ends = weft::make_channel<token>(round % 3);
      auto w = rt->spawn([out = std::move(ends.out)]() mutable { (void)out.try_send(token(1)); });
      auto r = rt->spawn([in = std::move(ends.in)]() mutable { (void)in.try_recv(); });
      w.join();
      r.join();
    }
    until([] { return token::alive.load() == 0; });
  });
}

TEST(Ends, every_kind_of_writer_has_an_arm_with_a_handler_for_the_time_when_nobody_reads) {
  int told = 0;
  const auto tells = [&](auto ends) {
    ends.in.reset();
    EXPECT_FALSE(weft::prialt(ends.out.on_death([&] { ++told; })).ok());
  };
  tells(weft::make_channel<int>(1));
  tells(weft::make_oneshot<int>());
  tells(weft::make_broadcast<int>(1));
  tells(weft::make_watch(0));
  EXPECT_EQ(told, 4);
}

}  // namespace
