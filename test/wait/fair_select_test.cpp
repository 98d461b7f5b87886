// Fair selects: an arm that is ready has its share, whatever kind it is and whatever it takes to see it.
// ctest: channels
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using weft::alt;

// `other` is always ready, because again() makes it ready after each win, and so is a buffered channel. Each wins half
// of the rounds.
template <class Other>
void expect_half(Other&& other, const std::function<void()>& again = [] {}) {
  auto [out, in] = weft::make_channel<int>(1);
  constexpr int rounds = 4'000;
  for (const bool in_list : {false, true}) {
    SCOPED_TRACE(in_list ? "in a list" : "in a call");
    int wins = 0;
    for (int i = 0; i < rounds; ++i) {
      (void)out.try_send(1);
      int v = 0;
      auto receive = in >> v;
      const std::array<weft::select_arm*, 2> list{&receive, &other};
      if ((in_list ? alt(list).index() : alt(receive, other).index()) == 0) continue;
      ++wins;
      again();
    }
    EXPECT_NEAR(wins, rounds / 2, rounds / 20);
  }
}

// Outside of a task and in one.
void at_both_places(const std::function<void()>& check) {
  {
    SCOPED_TRACE("in a thread");
    check();
  }
  SCOPED_TRACE("in a task");
  weft::run({.workers = 1, .elastic = false}, check);
}

// req: CSP-4
TEST(FairSelect, of_five_arms_that_are_always_ready_each_wins_every_fifth_time) {
  const auto is_fair = [] {
    std::array<weft::channel_ends<int>, 5> all;
    for (auto& c : all) {
      c = weft::make_channel<int>(1);
      EXPECT_TRUE(c.out.send(1));
    }
    std::array<int, 5> wins{};
    const int rounds = 5'000;
    for (int i = 0; i < rounds; ++i) {
      int v = 0;
      const auto s = alt(all[0].in >> v, all[1].in >> v, all[2].in >> v, all[3].in >> v, all[4].in >> v);
      ++wins[s.index()];
      EXPECT_TRUE(all[s.index()].out.send(1));
    }
    for (const int w : wins) EXPECT_NEAR(w, rounds / 5, rounds / 20);
  };
  is_fair();
  weft::run({.workers = 1, .elastic = false}, is_fair);
}

// req: CSP-4
TEST(FairSelect, events_and_notifications_have_their_share) {
  at_both_places([] {
    weft::event stop;
    stop.set();
    expect_half(stop.on_set());
    weft::notify news;
    news.notify_one();
    expect_half(news.on_notify(), [&] { news.notify_one(); });
  });
}

// req: CSP-4
TEST(FairSelect, semaphores_have_their_share) {
  at_both_places([] {
    weft::semaphore permits(1);
    expect_half(permits.on_acquire(), [&] { permits.release(); });
  });
}

// req: CSP-4 CSP-3
TEST(FairSelect, closed_channels_and_deaths_have_their_share) {
  at_both_places([] {
    auto [out, in] = weft::make_channel<int>(1);
    out.close();
    int v = 0;
    expect_half(in >> v);
    expect_half(~in);
    in.reset();
    expect_half(~out);
    auto [teller, hearer] = weft::make_broadcast<int>(1);
    hearer.reset();
    expect_half(~teller);
  });
}

// req: CSP-4
TEST(FairSelect, timers_have_their_share) {
  at_both_places([] {
    auto past = weft::after(-1s);
    expect_half(past);
    expect_half(past.on_expire([] {}));
  });
}

// req: CSP-4
TEST(FairSelect, ended_tasks_have_their_share) {
  watched_runtime rt(1);
  auto ended = rt->spawn([] {});
  ended.wait();
  expect_half(~ended);
}

// req: CSP-4
TEST(FairSelect, broadcasts_and_watches_have_their_share) {
  at_both_places([] {
    auto [teller, hearer] = weft::make_broadcast<int>(1);
    EXPECT_TRUE(teller.send(1));
    int v = 0;
    expect_half(hearer >> v, [&] { EXPECT_TRUE(teller.send(1)); });
  });
}

// req: CSP-4
TEST(FairSelect, a_sender_that_waits_has_its_share) {
  watched_runtime rt(2);
  auto [out, in] = weft::make_channel<int>(0);
  auto sender = rt->spawn([w = out]() mutable {
    while (w.send(1)) {}
  });
  until_senders_wait(in);
  int v = 0;
  expect_half(in >> v, [&] { until_senders_wait(in); });
  in.reset();
  sender.join();
}

// An arm of one's own that cannot be tried alone.
class slow_arm final : public weft::select_arm {
 public:
  [[nodiscard]] weft::waits::arm prepare() override { return past_.prepare(); }
  [[nodiscard]] bool complete() override { return past_.complete(); }

 private:
  weft::timer past_ = weft::after(-1s);
};

// req: CSP-4
TEST(FairSelect, an_arm_that_can_only_be_seen_with_its_lock_has_its_share) {
  at_both_places([] { expect_half(slow_arm()); });
}

// ---- equal chances, whichever arms are ready -------------------------------------------------------------------------

// If bit i of `ready` is set, channel i has a value, and gets another one after each select of it. Each of these
// channels wins as often as any other: the number of wins is binomial, and exceeds seven standard deviations once in
// 10^11 times.
template <std::size_t Arms, class Select>
void expect_equal_shares(unsigned ready, Select select) {
  SCOPED_TRACE(testing::Message() << Arms << " arms, ready: " << ready);
  std::array<weft::channel_ends<int>, Arms> all;
  std::size_t ready_arms = 0;
  for (std::size_t i = 0; i < Arms; ++i) {
    all[i] = weft::make_channel<int>(1);
    if ((ready >> i & 1) == 0) continue;
    EXPECT_TRUE(all[i].out.send(1));
    ++ready_arms;
  }
  std::array<int, Arms> wins{};
  constexpr int rounds = 8'000;
  for (int i = 0; i < rounds; ++i) {
    const std::size_t won = select(all);
    ++wins[won];
    EXPECT_TRUE(all[won].out.send(1));
  }
  const double share = 1.0 / static_cast<double>(ready_arms);
  for (std::size_t i = 0; i < Arms; ++i) {
    const double expected = (ready >> i & 1) != 0 ? rounds * share : 0;
    EXPECT_NEAR(wins[i], expected, 7 * std::sqrt(expected * (1 - share))) << "arm " << i;
  }
}

// Stands for an arm, but can only be seen ready with its lock.
template <class Arm>
class locked_arm final : public weft::select_arm {
 public:
  explicit locked_arm(Arm a) : arm_(std::move(a)) {}
  [[nodiscard]] weft::waits::arm prepare() override { return arm_.prepare(); }
  [[nodiscard]] bool complete() override { return arm_.complete(); }

 private:
  Arm arm_;
};

// In a call with arms of one type, in one with arms of two types, with locks, and in a list.
template <std::size_t Arms>
void expect_equal_shares_everywhere(unsigned ready) {
  const auto with_all = [&]<std::size_t... I>(std::index_sequence<I...>) {
    int v = 0;
    {
      SCOPED_TRACE("arms of one type");
      expect_equal_shares<Arms>(ready, [&](auto& all) { return weft::select(all[I].in >> v...).index(); });
    }
    {
      SCOPED_TRACE("arms of two types");
      const auto arm = [&](auto index, auto& all) {
        if constexpr (index % 2 == 0)
          return all[index].in >> v;
        else
          return weft::when(true, all[index].in >> v);
      };
      expect_equal_shares<Arms>(ready, [&](auto& all) {
        return weft::select(arm(std::integral_constant<std::size_t, I>(), all)...).index();
      });
    }
    {
      SCOPED_TRACE("with locks");
      expect_equal_shares<Arms>(ready, [&](auto& all) { return weft::select(locked_arm(all[I].in >> v)...).index(); });
    }
    SCOPED_TRACE("one of two with its lock");
    const auto arm = [&](auto index, auto& all) {
      if constexpr (index % 2 == 0)
        return all[index].in >> v;
      else
        return locked_arm(all[index].in >> v);
    };
    expect_equal_shares<Arms>(
        ready, [&](auto& all) { return weft::select(arm(std::integral_constant<std::size_t, I>(), all)...).index(); });
  };
  with_all(std::make_index_sequence<Arms>());
}

template <std::size_t Arms>
void expect_equal_shares_in_a_list(unsigned ready) {
  expect_equal_shares<Arms>(ready, [](auto& all) {
    int v = 0;
    std::vector<weft::receive_arm<int>> arms;
    for (auto& c : all) arms.push_back(c.in >> v);
    return weft::select(arms).index();
  });
}

// req: CSP-4
TEST(FairSelect, of_two_to_four_arms_each_that_is_ready_has_the_same_chance) {
  at_both_places([] {
    for (unsigned ready = 1; ready < 4; ++ready) expect_equal_shares_everywhere<2>(ready);
    for (unsigned ready = 1; ready < 8; ++ready) expect_equal_shares_everywhere<3>(ready);
    for (unsigned ready = 1; ready < 16; ++ready) expect_equal_shares_everywhere<4>(ready);
  });
}

// req: CSP-4
TEST(FairSelect, of_many_arms_each_that_is_ready_has_the_same_chance_whatever_stands_between) {
  at_both_places([] {
    for (const unsigned ready : {0x03U, 0x81U, 0x18U, 0x11U, 0x92U, 0xe0U, 0xffU})
      expect_equal_shares_everywhere<8>(ready);
    for (const unsigned ready : {0x8001U, 0x0101U, 0xc010U, 0xffffU}) expect_equal_shares_everywhere<16>(ready);
  });
}

// req: CSP-4
TEST(FairSelect, in_a_list_of_any_length_each_that_is_ready_has_the_same_chance) {
  at_both_places([] {
    for (const unsigned ready : {0x3U, 0x5U, 0x9U, 0xbU, 0xfU}) expect_equal_shares_in_a_list<4>(ready);
    for (const unsigned ready : {0x8001U, 0x0103U, 0xffffU}) expect_equal_shares_in_a_list<16>(ready);
    for (const unsigned ready : {0x10001U, 0x18000U, 0x00103U, 0x1ffffU}) expect_equal_shares_in_a_list<17>(ready);
    for (const unsigned ready : {0x8001U, 0x80000000U | 0x100U, 0xff00ff00U}) expect_equal_shares_in_a_list<32>(ready);
  });
}

}  // namespace
