// Select over channels, deaths and timers: which arm wins, that exactly one does, and that the others leave no trace.
// ctest: channels
#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <thread>

#include "chan/channels.hpp"
#include "sched/scheduler.hpp"

namespace {

using namespace chan_test;
using weft::alt;
using weft::prialt;

// ---- which arm wins ---------------------------------------------------------------------------------------------------

// req: CSP-4
TEST(Select, prialt_takes_the_first_ready_arm_in_order) {
  auto [a_out, a_in] = weft::make_channel<int>(4);
  auto [b_out, b_in] = weft::make_channel<int>(4);
  int v = 0;
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(a_out.send(i));
    EXPECT_TRUE(b_out.send(10 + i));
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(prialt(a_in >> v, b_in >> v).index(), 0u);
    EXPECT_EQ(v, i);
  }
  EXPECT_EQ(prialt(a_in >> v, b_in >> v).index(), 1u);
  EXPECT_EQ(v, 10);
  EXPECT_EQ(prialt(a_in >> v, a_out << 7, b_in >> v).index(), 1u);
  EXPECT_EQ(a_in.recv(), 7);
}

// Whoever sends to a and then to b: a is ready whenever b is, so b never wins first.
template <class T>
void prialt_is_strict(std::size_t workers, std::size_t capacity) {
  watched_runtime rt(workers);
  auto [a_out, a_in] = make<T>(capacity);
  auto [b_out, b_in] = make<T>(capacity);
  auto [ack_out, ack_in] = weft::make_channel<int>(1);
  const std::size_t rounds = scaled(20'000);
  auto sender = rt->spawn([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      ASSERT_TRUE(a_out.send(T(1)));
      ASSERT_TRUE(b_out.send(T(2)));
      ASSERT_TRUE(ack_in.recv());
    }
  });
  std::size_t wrong = 0;
  auto receiver = rt->spawn([&] {
    for (std::size_t i = 0; i < rounds; ++i) {
      T v(0);
      if (prialt(a_in >> v, b_in >> v).index() != 0) ++wrong;
      (void)prialt(a_in >> v, b_in >> v);
      ASSERT_TRUE(ack_out.send(1));
    }
  });
  sender.join();
  receiver.join();
  EXPECT_EQ(wrong, 0u);
}

// req: CSP-4
TEST(Select, prialt_is_strict_while_its_arms_become_ready) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    prialt_is_strict<int>(workers, 1);
    prialt_is_strict<int>(workers, 3);
    prialt_is_strict<std::string::size_type>(workers, 8);
    prialt_is_strict<std::vector<int>>(workers, 1);
  });
}

// The same without ever waiting: the select looks at the very moment at which the values come.
// req: CSP-4
TEST(Select, prialt_is_strict_when_it_polls) {
  support::watchdog guard(110s);
  auto [a_out, a_in] = weft::make_channel<int>(1);
  auto [b_out, b_in] = weft::make_channel<int>(1);
  const std::size_t rounds = scaled(30'000);
  base::atomic<std::size_t> taken{0};
  std::thread sender([&] {
    for (std::size_t i = 1; i <= rounds; ++i) {
      ASSERT_TRUE(a_out.try_send(1));
      ASSERT_TRUE(b_out.try_send(2));
      while (taken.load() != i) std::this_thread::yield();
    }
  });
  std::size_t wrong = 0;
  const auto poll = [&] {
    for (;;) {
      int v = 0;
      const auto s = prialt(a_in >> v, b_in >> v, weft::otherwise);
      if (s.index() != 2) return s.index();
    }
  };
  for (std::size_t i = 1; i <= rounds; ++i) {
    if (poll() != 0) ++wrong;
    (void)poll();
    taken = i;
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
}

// There is always a value in one of two channels or in both: it goes into the other one before it leaves. Who asks for
// either, and puts it back, never finds nothing.
// req: CSP-4
TEST(Select, nothing_ready_is_true_of_one_moment) {
  support::watchdog guard(60s);
  auto [a_out, a_in] = weft::make_channel<int>(2);
  auto [b_out, b_in] = weft::make_channel<int>(2);
  EXPECT_TRUE(a_out.send(1));
  base::atomic<bool> over{false};
  std::thread mover([&] {
    for (std::size_t i = 0; i < scaled(400'000); ++i) {
      EXPECT_TRUE(b_out.send(1));
      EXPECT_TRUE(a_in.recv());
      EXPECT_TRUE(a_out.send(1));
      EXPECT_TRUE(b_in.recv());
    }
    over = true;
  });
  std::size_t nothing = 0;
  while (!over.load()) {
    int v = 0;
    const auto s = prialt(a_in >> v, b_in >> v, weft::otherwise);
    if (s.index() == 2) ++nothing;
    if (s.index() != 2) {
      EXPECT_TRUE((s.index() == 0 ? a_out : b_out).send(1));
    }
  }
  mover.join();
  EXPECT_EQ(nothing, 0u);
}

// req: CSP-4
TEST(Select, otherwise_wins_when_nothing_is_ready_and_only_then) {
  const auto check = [] {
    auto [out, in] = weft::make_channel<int>(1);
    int v = 0;
    EXPECT_EQ(alt(in >> v, weft::otherwise).index(), 1u);
    EXPECT_EQ(prialt(weft::otherwise, in >> v).index(), 0u);
    EXPECT_EQ(prialt(weft::otherwise, out << 5).index(), 1u);
    EXPECT_EQ(alt(out << 6, weft::otherwise).index(), 1u);
    EXPECT_EQ(alt(in >> v, weft::otherwise).index(), 0u);
    EXPECT_EQ(v, 5);
    bool nothing = false;
    EXPECT_EQ(weft::select(in.on_recv([](int) { FAIL(); }), weft::on_nothing([&] { nothing = true; })).index(), 1u);
    EXPECT_TRUE(nothing);
    EXPECT_EQ(alt(weft::otherwise).index(), 0u);
    EXPECT_TRUE(nobody_waits(in));
  };
  check();
  weft::run({.workers = 2, .elastic = false}, check);
}

// req: CSP-4
TEST(Select, otherwise_works_in_a_run_time_list_and_behind_a_condition) {
  auto [out, in] = weft::make_channel<int>(1);
  int v = 0;
  auto receive = in >> v;
  std::vector<weft::select_arm*> arms = {&receive, &weft::otherwise};
  EXPECT_EQ(prialt(arms).index(), 1u);
  EXPECT_TRUE(out.send(3));
  EXPECT_EQ(prialt(arms).index(), 0u);
  EXPECT_EQ(v, 3);
  EXPECT_EQ(alt(in >> v, weft::when(true, weft::otherwise)).index(), 1u);
  auto soon = weft::after(1ms);
  EXPECT_EQ(alt(in >> v, soon, weft::when(false, weft::otherwise)).index(), 1u);
}

// req: CSP-4
TEST(Select, empty_handles_and_false_conditions_disable_arms) {
  auto [out, in] = weft::make_channel<int>(1);
  const weft::reader<int> no_reader;
  const weft::writer<int> no_writer;
  int v = 0;
  EXPECT_TRUE(out.send(1));
  EXPECT_EQ(
      prialt(no_reader >> v, no_writer << 1, ~no_reader, ~no_writer, weft::when(false, out << 9), in >> v).index(), 5u);
  EXPECT_EQ(v, 1);
  EXPECT_EQ(prialt(no_reader >> v, weft::otherwise).index(), 1u);
  EXPECT_EQ(prialt(weft::when(true, out << 2), weft::when(false, in >> v)).index(), 0u);
}

// req: CSP-4
TEST(Select, a_select_that_could_never_end_is_refused) {
  const auto check = [] {
    const weft::reader<int> none;
    int v = 0;
    EXPECT_THROW((void)alt(none >> v), weft::usage_error);
    EXPECT_THROW((void)prialt(none >> v, ~none), weft::usage_error);
    EXPECT_THROW((void)weft::select(none.on_recv([](int) {})), weft::usage_error);
    std::vector<weft::select_arm*> empty;
    EXPECT_THROW((void)alt(empty), weft::usage_error);
    std::vector<weft::receive_arm<int>> disabled;
    disabled.push_back(none >> v);
    EXPECT_THROW((void)prialt(disabled), weft::usage_error);
  };
  check();
  weft::run({.workers = 1, .elastic = false}, check);
}

// req: CSP-4
TEST(Select, an_arm_object_listed_twice_is_refused) {
  auto [out, in] = weft::make_channel<int>(1);
  int v = 0;
  auto receive = in >> v;
  auto limit = weft::after(1h);  // one that has expired would win before anything is compared
  std::vector<weft::select_arm*> twice = {&receive, &limit, &receive};
  EXPECT_THROW((void)alt(twice), weft::usage_error);
  EXPECT_THROW((void)alt(limit, limit), weft::usage_error);
  limit.restart(1ms);
  EXPECT_EQ(alt(receive, limit).index(), 1u);
  EXPECT_TRUE(nobody_waits(in));
}

// req: CSP-4
TEST(Select, arms_may_be_a_list_made_at_run_time) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      std::vector<weft::channel_ends<int>> channels;
      std::vector<int> values(20);
      std::vector<weft::receive_arm<int>> arms;
      for (int i = 0; i < 20; ++i) {
        channels.push_back(weft::make_channel<int>(0));
        arms.push_back(channels.back().in >> values[static_cast<std::size_t>(i)]);
      }
      for (std::size_t i = 0; i < 20; ++i) {
        auto sender = weft::spawn([&, i] { EXPECT_TRUE(channels[i].out.send(static_cast<int>(i) + 100)); });
        const auto s = i % 2 == 0 ? static_cast<weft::selected>(alt(arms)) : static_cast<weft::selected>(prialt(arms));
        EXPECT_EQ(s.index(), i);
        EXPECT_EQ(values[i], static_cast<int>(i) + 100);
        sender.join();
      }
      for (auto& c : channels) EXPECT_TRUE(nobody_waits(c.in));
    });
  });
}

// req: CSP-4
TEST(Select, with_one_name_in_its_parentheses_is_a_call) {
  auto [out, in] = weft::make_channel<int>(3);
  for (int i = 1; i <= 3; ++i) EXPECT_TRUE(out.send(i));
  int v = 0;
  auto arm = in >> v;
  std::array list{in >> v};
  weft::select(arm);
  EXPECT_EQ(v, 1);
  weft::alt(list);
  EXPECT_EQ(v, 2);
  weft::prialt(arm);
  EXPECT_EQ(v, 3);
}

// req: CSP-4
TEST(Select, takes_up_to_sixteen_arms) {
  auto [out, in] = weft::make_channel<int>(1);
  EXPECT_TRUE(out.send(1));
  const weft::reader<int> no;
  int v = 0;
  EXPECT_EQ(weft::select(no >> v, no >> v, no >> v, no >> v, no >> v, no >> v, no >> v, no >> v, no >> v, no >> v,
                         no >> v, no >> v, no >> v, no >> v, no >> v, in >> v)
                .index(),
            15u);
}

// The task parks; `select` is called in the line below `line = __LINE__`.
template <class Select>
void expect_place(Select select) {
  watched_runtime rt(1);
  auto [out, in] = weft::make_channel<int>();
  std::uint32_t line = 0;
  auto task = rt->spawn([&] { select(in, line); });
  until_receivers_wait(in);
  std::size_t seen = 0;
  rt.core().records().walk([&](weft::task::record& t) {
    if (t.waits_for.load() == nullptr || std::string_view(t.waits_for.load()) != "select") return;
    ++seen;
    EXPECT_NE(std::string_view(t.waits_at.load().file_name()).find("select_test.cpp"), std::string_view::npos);
    EXPECT_EQ(t.waits_at.load().line(), line + 1);
  });
  EXPECT_EQ(seen, 1u);
  EXPECT_TRUE(out.send(1));
  task.join();
}

// req: LS-W2
TEST(Select, the_place_of_the_call_is_known_while_it_waits) {
  support::watchdog guard(60s);
  expect_place([](auto& in, auto& line) {
    int v = 0;
    line = __LINE__;
    weft::select(in >> v);
  });
  expect_place([](auto& in, auto& line) {
    auto limit = weft::after(1h);
    int v = 0;
    line = __LINE__;
    weft::alt(in >> v, limit);
  });
  expect_place([](auto& in, auto& line) {
    int v = 0;
    std::array list{in >> v};
    line = __LINE__;
    weft::prialt(list);
  });
}

// ---- arms that are kept ----------------------------------------------------------------------------------------------

// req: CSP-4
TEST(Select, a_kept_arm_has_its_small_value) {
  auto [out, in] = weft::make_channel<int>(3);
  std::vector<weft::send_arm<int>> arms;
  for (int i = 1; i <= 3; ++i) arms.push_back(out << int(i));
  for (auto& a : arms) weft::select(a);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(in.recv(), i);
}

// req: CSP-4
TEST(Select, a_kept_arm_has_the_value_it_was_given_until_it_is_sent) {
  auto [out, in] = weft::make_channel<std::string>(1);
  const std::string long_text(100, 'x');
  auto copied = out << long_text;
  auto given = out.on_send(std::string(100, 'y'));
  EXPECT_EQ(weft::prialt(copied, given).index(), 0u);
  EXPECT_EQ(weft::prialt(given, weft::otherwise).index(), 1u);
  EXPECT_EQ(in.recv(), long_text);
  EXPECT_EQ(weft::prialt(given, weft::otherwise).index(), 0u);
  EXPECT_EQ(in.recv(), std::string(100, 'y'));
}

// req: CSP-4
TEST(Select, a_moved_value_is_as_it_was_unless_it_was_sent) {
  auto [out, in] = weft::make_channel<std::string>(1);
  EXPECT_TRUE(out.send("full"));
  std::string text(100, 'z');
  EXPECT_EQ(weft::select(out << std::move(text), weft::otherwise).index(), 1u);
  EXPECT_EQ(weft::select(weft::when(true, out << std::move(text)), weft::otherwise).index(), 1u);
  EXPECT_EQ(text, std::string(100, 'z'));
  EXPECT_EQ(in.recv(), "full");
  EXPECT_TRUE(weft::select(weft::when(true, out << std::move(text))).ok());
  EXPECT_EQ(in.recv(), std::string(100, 'z'));
  EXPECT_TRUE(text.empty());
}

// req: CSP-4
TEST(Select, pointers_to_arms_of_different_kinds_make_a_list) {
  auto [out, in] = weft::make_channel<int>(1);
  auto [text_out, text_in] = weft::make_channel<std::string>(1);
  int v = 0;
  std::string text;
  auto numbers = in >> v;
  auto texts = text_in >> text;
  auto limit = weft::after(1h);
  auto dead = ~in;
  const std::vector<weft::select_arm*> arms = {&numbers, &texts, &limit, &dead};
  EXPECT_TRUE(text_out.send("hello"));
  EXPECT_EQ(alt(arms).index(), 1u);
  EXPECT_EQ(text, "hello");
  EXPECT_TRUE(out.send(4));
  EXPECT_EQ(alt(arms).index(), 0u);
  EXPECT_EQ(v, 4);
  out.close();
  const auto s = prialt(arms);
  EXPECT_EQ(s.index(), 0u);
  EXPECT_FALSE(s.ok());
}

// ---- closed and dead arms -----------------------------------------------------------------------------------------------

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

// ---- the same channel more than once -------------------------------------------------------------------------------------

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

// ---- one winner, no trace ---------------------------------------------------------------------------------------------------

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

// req: CSP-4
TEST(Select, a_select_is_always_a_cancellation_point) {
  watched_runtime rt(2);
  auto task = rt->spawn([] {
    auto [out, in] = weft::make_channel<int>(1);
    until([] { return weft::this_task::is_cancelled(); });
    EXPECT_THROW((void)alt(out << 1), weft::cancelled);
    EXPECT_THROW((void)prialt(out << 1, weft::otherwise), weft::cancelled);
    EXPECT_EQ(in.size(), 0u);
    const weft::this_task::shield s;
    EXPECT_TRUE(alt(out << 1).ok());
  });
  task.cancel();
  EXPECT_NO_THROW(task.join());
}

// Cancelled while it waits: shielded, or in a destructor that runs because an exception is on its way.
// req: CC-10 LS-P3
TEST(Select, one_that_waits_shielded_or_while_its_task_unwinds_is_not_cancelled) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto [out, in] = weft::make_channel<int>(0);
    auto [other_out, other_in] = weft::make_channel<int>(0);
    base::atomic<int> sum{0};
    struct selects_at_its_end {
      weft::reader<int>&in, &other;
      base::atomic<int>& sum;
      ~selects_at_its_end() {
        int v = 0;
        EXPECT_TRUE(alt(in >> v, other >> v).ok());
        sum += v;
      }
    };
    auto shielded = rt->spawn([&, &from = in, &other = other_in] {
      const weft::this_task::shield shield;
      const selects_at_its_end now{from, other, sum};
    });
    auto unwinds = rt->spawn([&, &from = in, &other = other_in] {
      try {
        const selects_at_its_end now{from, other, sum};
        throw 1;
      } catch (int) {}
    });
    until_receivers_wait(in, 2);
    shielded.cancel();
    unwinds.cancel();
    EXPECT_TRUE(out.send(1));
    EXPECT_TRUE(other_out.send(2));
    shielded.join();
    unwinds.join();
    EXPECT_EQ(sum.load(), 3);
  });
}

// req: CSP-4 BZ-6
TEST(Select, one_that_is_always_ready_still_gives_way) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    weft::event e;
    e.set();
    for (const bool in_order : {false, true}) {
      base::atomic<bool> ran{false};
      auto other = weft::spawn([&] { ran = true; });
      while (!ran.load()) EXPECT_TRUE(in_order ? prialt(e.on_set()).ok() : alt(e.on_set()).ok());
      other.join();
    }
  });
}

// An element whose move suspends: the select goes on wherever that has taken it.
struct moves_slowly {
  explicit moves_slowly(int n) : number(n) {}
  moves_slowly(moves_slowly&& from) : number(from.number) {
    if (!weft::this_task::running()) return;
    const weft::this_task::shield stay;
    weft::sleep_for(std::chrono::microseconds(100));
  }
  int number;
  char large[40] = {};
};

// req: W-1 CSP-7
TEST(Select, goes_on_where_the_move_of_an_element_has_taken_it) {
  support::watchdog guard(100s);
  weft::runtime rt({.workers = 4, .elastic = false});
  rt.run([] {
    constexpr int rounds = 300;
    auto [out, in] = weft::make_channel<moves_slowly>();
    auto sender = weft::spawn([to = std::move(out)]() mutable {
      for (int i = 0; i < rounds; ++i) (void)to.send(moves_slowly(i));
    });
    for (int i = 0; i < rounds; ++i) {
      while (in.statistics().waiting_senders == 0) weft::sleep_for(std::chrono::microseconds(50));
      auto now = weft::after(std::chrono::seconds(0));
      for (int spent = 0; spent < 127; ++spent) (void)prialt(now);  // the budget, without parking
      std::optional<moves_slowly> got;
      EXPECT_TRUE(prialt(in >> got));
      EXPECT_EQ(got->number, i);
    }
    sender.join();
  });
}

}  // namespace
