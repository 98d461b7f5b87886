// Fair selects: an arm that is ready has its share, whatever kind it is and whatever it takes to see it.
// ctest: channels
#include <array>
#include <functional>

#include "chan/channels.hpp"

namespace {

using namespace chan_test;
using weft::alt;

// `other` is always ready, made so by again() after it has won, and so is a buffered channel: each wins half of the rounds.
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
      if ((in_list ? alt{list}.index() : alt(receive, other).index()) == 0) continue;
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

}  // namespace
