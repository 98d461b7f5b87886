// Select: lists of arms, arms that are kept, what an arm holds, and the place of the call.
// ctest: channels
#include <array>

#include "chan/channels.hpp"
#include "sched/scheduler.hpp"

namespace {

using namespace chan_test;
using weft::alt;
using weft::prialt;

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
    if (t.waits_for.load() == nullptr || std::string_view(t.waits_for.load()->name) != "select") return;
    ++seen;
    EXPECT_NE(std::string_view(t.waits_at.load().file_name()).find("select_arms_test.cpp"), std::string_view::npos);
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

}  // namespace
