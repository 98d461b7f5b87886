// Admission and close: what is admitted is delivered or given back, whoever closes, and nobody is told twice.
#include <algorithm>
#include <thread>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;

// req: LS-C1
TEST(Close, a_send_on_a_closed_channel_fails_and_keeps_the_value) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<token>(capacity);
    out.close();
    token mine(3);
    EXPECT_EQ(out.send(std::move(mine)).status(), send_status::closed);
    EXPECT_EQ(out.try_send(std::move(mine)).status(), send_status::closed);
    EXPECT_EQ(out.send_for(std::move(mine), 1h).status(), send_status::closed);
    EXPECT_FALSE(weft::alt(out << std::move(mine)).ok());
    EXPECT_EQ(mine.value(), 3);
    EXPECT_EQ(in.statistics().sent, 0u);
    auto [small_out, small_in] = make<int>(capacity);
    small_out.close();
    EXPECT_EQ(small_out.send(1).status(), send_status::closed);
    EXPECT_EQ(small_out.try_send(1).status(), send_status::closed);
    EXPECT_EQ(small_in.recv(), std::nullopt);
  });
}

template <class T, class Make>
void says_closed_and_not_full(Make value) {
  for (const std::size_t capacity : {1, 2, 3, 8})
    for (const bool by_reader : {false, true}) {
      SCOPED_TRACE(testing::Message() << "capacity " << capacity << (by_reader ? ", closed by the reader" : ""));
      auto [out, in] = make<T>(capacity);
      for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(value()));
      EXPECT_EQ(out.try_send(value()).status(), send_status::full);
      if (by_reader)
        in.close();
      else
        out.close();
      EXPECT_EQ(out.try_send(value()).status(), send_status::closed);
      EXPECT_EQ(out.send_for(value(), 1h).status(), send_status::closed);
      T mine = value();
      const auto how = weft::select(out << std::move(mine), weft::otherwise);
      EXPECT_EQ(how.index(), 0u);
      EXPECT_FALSE(how.ok());
    }
}

// req: LS-C1
TEST(Close, a_full_channel_that_is_closed_says_closed_and_not_full) {
  says_closed_and_not_full<int>([] { return 1; });
  says_closed_and_not_full<token>([] { return token(1); });
}

// req: LS-C2 CSP-4
TEST(Close, an_empty_channel_that_is_closed_wins_a_select_that_only_polls) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    int v = 0;
    EXPECT_EQ(weft::select(in >> v, weft::otherwise).index(), 1u);
    out.close();
    EXPECT_EQ(weft::select(in >> v, weft::otherwise).index(), 0u);
  });
}

// req: LS-C2
TEST(Close, what_is_buffered_is_received_after_the_close_and_then_nothing) {
  for (const std::size_t capacity : {std::size_t{3}, std::size_t{4}, no_limit}) {
    auto [out, in] = make<int>(capacity);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(out.send(i));
    out.close();
    EXPECT_TRUE(in.is_closed());
    EXPECT_EQ(in.size(), 3u);
    EXPECT_EQ(in.recv(), 0);
    EXPECT_EQ(in.try_recv(), 1);
    EXPECT_EQ(in.recv_for(1h), 2);
    EXPECT_EQ(in.recv(), std::nullopt);
    EXPECT_EQ(in.recv_for(1h), std::nullopt);
    EXPECT_EQ(in.try_recv(), std::nullopt);
  }
}

// req: LS-C2 LS-C3
TEST(Close, a_sender_that_waited_before_the_close_is_still_received) {
  at_worker_counts([](std::size_t workers) {
    for (const std::size_t capacity : {0, 1, 3}) {
      watched_runtime rt(workers);
      auto [out, in] = make<int>(capacity);
      for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(static_cast<int>(i)));
      std::vector<weft::join_handle<bool>> senders;
      for (int i = 0; i < 4; ++i) {
        senders.push_back(
            rt->spawn([&out, n = static_cast<int>(capacity) + i] { return static_cast<bool>(out.send(n)); }));
        until_senders_wait(out, static_cast<std::size_t>(i) + 1);
      }
      out.close();
      EXPECT_EQ(out.statistics().waiting_senders, 4u);
      EXPECT_FALSE(out.try_send(99));
      for (int i = 0; i < static_cast<int>(capacity) + 4; ++i) EXPECT_EQ(in.recv(), i);
      EXPECT_EQ(in.recv(), std::nullopt);
      for (auto& s : senders) EXPECT_TRUE(s.join());
    }
  });
}

// req: LS-C2
TEST(Close, nobody_parks_on_a_closed_empty_channel) {
  watched_runtime rt(1);
  at_capacities([&](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    out.close();
    rt->run([&] {
      const auto parks = rt->statistics().parks;
      for (int i = 0; i < 10; ++i) EXPECT_EQ(in.recv(), std::nullopt);
      EXPECT_EQ(rt->statistics().parks, parks);
    });
  });
}

// req: LS-C3 CSP-3
TEST(Close, every_waiting_receiver_and_watcher_is_woken) {
  at_worker_counts([](std::size_t workers) {
    for (const bool by_death : {false, true})
      at_capacities([&](std::size_t capacity) {
        watched_runtime rt(workers);
        auto [out, in] = make<int>(capacity);
        base::atomic<int> ready{0};
        std::vector<weft::join_handle<void>> all;
        for (int i = 0; i < 5; ++i) {
          all.push_back(rt->spawn([&in] { EXPECT_EQ(in.recv(), std::nullopt); }));
          all.push_back(rt->spawn([&in] { EXPECT_EQ(in.recv_for(1h), std::nullopt); }));
          all.push_back(rt->spawn([&in, &ready] {
            ++ready;
            EXPECT_FALSE(weft::alt(~in).ok());
          }));
        }
        std::thread outside([&in] { EXPECT_EQ(in.recv(), std::nullopt); });
        until_receivers_wait(in, 11);
        until([&] { return ready.load() == 5; });
        if (by_death)
          out.reset();
        else
          out.close();
        for (auto& h : all) h.join();
        outside.join();
        EXPECT_TRUE(nobody_waits(in));
      });
  });
}

// req: LS-C3
TEST(Close, sixteen_waiters_and_many_closes_at_once_wake_each_waiter_once) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t round = 0; round < scaled(400); ++round) {
      auto [out, in] = make<int>(round % 3);
      base::atomic<int> woken{0};
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 16; ++i)
        all.push_back(rt->spawn([&in, &woken, i] {
          if (i % 4 == 0)
            (void)weft::prialt(~in);
          else if (i % 4 == 1)
            EXPECT_EQ(in.recv_for(1h), std::nullopt);
          else
            EXPECT_EQ(in.recv(), std::nullopt);
          ++woken;
        }));
      if (round % 2 == 0) until_receivers_wait(in, 12);
      for (int i = 0; i < 4; ++i)
        all.push_back(rt->spawn([&out] {
          for (int k = 0; k < 3; ++k) out.close();
        }));
      for (int k = 0; k < 3; ++k) out.close();
      for (auto& h : all) h.join();
      ASSERT_EQ(woken.load(), 16);
      ASSERT_TRUE(nobody_waits(in));
    }
    until([&] { return rt->statistics().spawned == rt->statistics().finished; });
  });
}

// req: LS-C3 LS-C1
TEST(Close, the_last_readers_death_gives_waiting_senders_their_values_back) {
  const auto before = token::alive.load();
  at_worker_counts([&](std::size_t workers) {
    for (const bool by_close : {false, true})
      for (const std::size_t capacity : {0, 1, 3}) {
        watched_runtime rt(workers);
        auto [out, in] = make<token>(capacity);
        for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(token(-1)));
        std::vector<weft::join_handle<void>> senders;
        for (int i = 0; i < 16; ++i)
          senders.push_back(rt->spawn([&out, i] {
            token mine(i);
            if (i % 2 == 0)
              EXPECT_EQ(out.send(std::move(mine)).status(), send_status::closed);
            else
              EXPECT_EQ(out.send_for(std::move(mine), 1h).status(), send_status::closed);
            EXPECT_EQ(mine.value(), i);
          }));
        until_senders_wait(out, 16);
        if (by_close)
          in.close();
        else
          in.reset();
        for (auto& s : senders) s.join();
        EXPECT_TRUE(nobody_waits(out));
        until([&] { return token::alive.load() == before; });
      }
  });
}

// req: CC-12
TEST(Close, an_error_given_by_the_writer_is_thrown_once_the_channel_is_drained) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(4);
    EXPECT_TRUE(out.send(1));
    out.close(error("disk full"));
    out.close(error("second"));
    out.close();
    EXPECT_EQ(in.recv(), 1);
    EXPECT_EQ(text_thrown_by([&] { (void)in.recv(); }), "disk full");
    EXPECT_EQ(text_thrown_by([&] { (void)in.recv_for(1h); }), "disk full");
    EXPECT_EQ(text_thrown_by([&] {
                for (int& v : in) (void)v;
              }),
              "disk full");
    EXPECT_EQ(in.try_recv(), std::nullopt);
    EXPECT_EQ(text_of(in.close_error()), "disk full");
    EXPECT_EQ(rt->run([&] { return text_thrown_by([&] { (void)in.recv(); }); }), "disk full");
  });
}

// req: CC-12
TEST(Close, waiting_receivers_get_the_error_each) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    std::vector<weft::join_handle<std::string>> all;
    for (int i = 0; i < 8; ++i) all.push_back(rt->spawn([&in] { return text_thrown_by([&] { (void)in.recv(); }); }));
    until_receivers_wait(in, 8);
    out.close(error("gone"));
    for (auto& h : all) EXPECT_EQ(h.join(), "gone");
  });
}

// req: CC-12
TEST(Close, senders_learn_why_the_reader_left) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    auto sender = rt->spawn([&out] {
      EXPECT_FALSE(out.send(1));
      return text_of(out.close_error());
    });
    until_senders_wait(out);
    in.close(error("not interested"));
    EXPECT_EQ(sender.join(), "not interested");
    EXPECT_FALSE(out.send(2));
    EXPECT_EQ(text_of(out.close_error()), "not interested");
    EXPECT_EQ(in.close_error(), nullptr);
    EXPECT_EQ(in.recv(), std::nullopt);
  });
}

// req: CC-12
TEST(Close, both_sides_may_give_an_error_and_each_sees_the_others) {
  auto [out, in] = weft::make_channel<int>(2);
  out.close(error("from the writer"));
  in.close(error("from the reader"));
  EXPECT_EQ(text_of(in.close_error()), "from the writer");
  EXPECT_EQ(text_of(out.close_error()), "from the reader");
}

// req: CC-12
TEST(Close, an_error_that_comes_after_the_end_changes_nothing) {
  auto [out, in] = weft::make_channel<int>(2);
  out.close();
  out.close(error("too late"));
  EXPECT_EQ(in.recv(), std::nullopt);
  EXPECT_EQ(in.close_error(), nullptr);
}

// Senders send until they are told that the channel is closed; what they were told was sent is received, and no more.
template <class T, class Value>
void a_close_loses_nothing(std::size_t workers, std::size_t capacity, std::size_t rounds, Value value_of) {
  watched_runtime rt(workers);
  for (std::size_t round = 0; round < rounds; ++round) {
    auto [out, in] = make<T>(capacity);
    base::atomic<std::int64_t> sent{0};
    base::atomic<std::int64_t> received{0};
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 3; ++i) {
      all.push_back(rt->spawn([&, i] {
        for (int n = 0; n < 500; ++n) {  // who closes may have to wait long for a processor
          if (!out.send(T(n * 4 + i))) break;
          sent.fetch_add(n * 4 + i);
        }
      }));
      all.push_back(rt->spawn([&] {
        while (auto v = in.recv()) received.fetch_add(value_of(*v));
      }));
    }
    for (std::size_t n = 0; n < round % 7; ++n) std::this_thread::yield();
    if (round % 2 == 0) until([&] { return received.load() > 0; });
    out.close();
    for (auto& h : all) h.join();
    ASSERT_EQ(sent.load(), received.load());
    ASSERT_TRUE(in.is_drained());
  }
}

// req: CC-9 LS-C2
TEST(Close, every_value_that_was_sent_is_received_whenever_the_close_comes) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    at_capacities([&](std::size_t capacity) {
      a_close_loses_nothing<int>(workers, capacity, scaled(70), [](int v) { return v; });
      a_close_loses_nothing<token>(workers, capacity, scaled(28), [](const token& v) { return v.value(); });
    });
  });
}

// A reader that goes while senders are at work: each value is received, dropped with the buffer, or given back.
// req: LS-C1 CSP-2
TEST(Close, every_value_has_one_owner_whenever_the_reader_goes) {
  support::watchdog guard(110s);
  const auto before = token::alive.load();
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    at_capacities([&](std::size_t capacity) {
      for (std::size_t round = 0; round < scaled(100); ++round) {
        auto [out, in] = make<token>(capacity);
        std::vector<weft::join_handle<void>> all;
        for (int i = 0; i < 3; ++i)
          all.push_back(rt->spawn([&, i] {
            for (int n = 0; n < 500; ++n) {
              token mine(i);
              const bool taken = static_cast<bool>(out.send(std::move(mine)));
              ASSERT_EQ(mine.is_there(), !taken);
              if (!taken) return;
            }
          }));
        for (std::size_t n = 0; n < round % 5; ++n) EXPECT_TRUE(in.recv());
        in.reset();
        for (auto& h : all) h.join();
        ASSERT_TRUE(nobody_waits(out));
      }
    });
    until([&] { return token::alive.load() == before; });
  });
}

// req: LS-C3 CSP-2
TEST(Close, two_peers_that_both_say_goodbye_both_hear_it) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const std::size_t capacity : {1, 2})
      for (std::size_t round = 0; round < scaled(500); ++round) {
        auto [to_b, from_a] = make<int>(capacity);
        auto [to_a, from_b] = make<int>(capacity);
        const auto peer = [](weft::writer<int> out, weft::reader<int> in) {
          EXPECT_TRUE(out.send(1));
          out.close();
          int heard = 0;
          while (auto v = in.recv()) heard += *v;
          return heard;
        };
        auto a = rt->spawn([&, out = std::move(to_b), in = std::move(from_b)]() mutable {
          return peer(std::move(out), std::move(in));
        });
        auto b = rt->spawn([&, out = std::move(to_a), in = std::move(from_a)]() mutable {
          return peer(std::move(out), std::move(in));
        });
        ASSERT_EQ(a.join(), 1);
        ASSERT_EQ(b.join(), 1);
      }
  });
}

// On rendezvous channels a goodbye needs the other to listen: each offers and listens at once.
// req: CSP-4 CSP-5
TEST(Close, two_peers_that_offer_a_goodbye_and_listen_for_one_both_end) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t round = 0; round < scaled(500); ++round) {
      auto [to_b, from_a] = weft::make_channel<int>(0);
      auto [to_a, from_b] = weft::make_channel<int>(0);
      const auto peer = [](weft::writer<int>& out, weft::reader<int>& in) {
        bool said = false;
        bool heard = false;
        int v = 0;
        while (!said || !heard) {
          const auto s = weft::alt(weft::when(!said, out << 1), weft::when(!heard, in >> v));
          (s.index() == 0 ? said : heard) = true;
          ASSERT_TRUE(s.ok());
        }
        EXPECT_EQ(v, 1);
      };
      auto a = rt->spawn([&] { peer(to_b, from_b); });
      auto b = rt->spawn([&] { peer(to_a, from_a); });
      a.join();
      b.join();
    }
  });
}

// req: CSP-3
TEST(Close, the_writers_own_close_is_not_the_readers_death) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    out.close();
    EXPECT_EQ(weft::select(~out, weft::otherwise).index(), 1u);
    EXPECT_EQ(weft::select(~in, weft::otherwise).index(), 0u);
    in.close();
    EXPECT_EQ(weft::select(~out, weft::otherwise).index(), 0u);
  });
}

// A select that could not send looks at the channel once more when it leaves it.
// req: LS-C1 LS-C2
TEST(Close, what_a_reader_dropped_by_its_close_stays_dropped_whoever_comes_later) {
  for (const std::size_t capacity : {1, 2, 3}) {
    auto [out, in] = make<int>(capacity);
    auto other = in;
    auto [full_out, full_in] = make<int>(0);
    for (std::size_t i = 0; i < capacity; ++i) EXPECT_TRUE(out.send(1));
    in.close();
    EXPECT_FALSE(weft::select(out << 2, full_out << 2, weft::otherwise).ok());
    EXPECT_EQ(weft::prialt(full_out << 2, out << 2, weft::otherwise).index(), 1u);
    EXPECT_EQ(other.try_recv(), std::nullopt);
    EXPECT_EQ(other.recv(), std::nullopt);
  }
}

// req: CSP-4
TEST(Close, the_handler_of_a_send_that_finds_it_closed_is_not_called) {
  at_capacities([](std::size_t capacity) {
    auto [out, in] = make<int>(capacity);
    out.close();
    bool called = false;
    EXPECT_FALSE(weft::select(out.on_send(1, [&] { called = true; })).ok());
    EXPECT_FALSE(called);
  });
}

// req: CSP-4 LS-C2
TEST(Close, an_arm_that_is_used_again_is_told_of_the_close_and_not_of_the_last_value) {
  auto [out, in] = make<token>(1);
  bool had_value = false;
  auto arm = in.on_recv([&](std::optional<token> v) { had_value = v.has_value(); });
  EXPECT_TRUE(out.send(token(1)));
  EXPECT_TRUE(weft::select(arm).ok());
  EXPECT_TRUE(had_value);
  out.close();
  EXPECT_FALSE(weft::select(arm).ok());
  EXPECT_FALSE(had_value);
}
}  // namespace
