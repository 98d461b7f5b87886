// join_all, join_settled, race, any.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"

namespace {

using namespace support::usual;

// Callables that wait until they are cancelled, and count that they have ended.
struct endless {
  base::atomic<int>* ended;
  int operator()() const {
    struct tally {
      base::atomic<int>& count;
      ~tally() {
        for (int i = 0; i < 3; ++i) weft::yield();  // takes its time
        ++count;
      }
    } const t{*ended};
    wait_for_ever();
    return 0;
  }
};

// ---- join_all --------------------------------------------------------------------------------------------------------

// req: W-3
TEST(JoinAll, gives_every_result_in_its_place) {
  at_worker_counts_in_a_task([] {
    int n = 5;
    auto [a, b, c, d] =
        weft::join_all([] { return 1; }, [] { return std::make_unique<int>(2); }, [] {}, [&]() -> int& { return n; });
    EXPECT_EQ(a, 1);
    EXPECT_EQ(*b, 2);
    static_assert(std::is_same_v<decltype(c), std::monostate>);
    EXPECT_EQ(&d, &n);
    EXPECT_EQ(weft::join_all(), std::tuple<>());
    std::vector<std::function<int()>> many;
    for (int i = 0; i < 50; ++i)
      many.emplace_back([i] {
        weft::yield();
        return i;
      });
    const std::vector<int> results = weft::join_all(many);
    ASSERT_EQ(results.size(), 50u);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(weft::join_all(many).size(), 50u) << "they were copied";
    EXPECT_TRUE(weft::join_all(std::vector<std::function<int()>>()).empty());
    base::atomic<int> ran{0};
    static_assert(std::is_void_v<decltype(weft::join_all(std::vector<std::function<void()>>()))>);
    weft::join_all(std::vector<std::function<void()>>(7, [&] { ++ran; }));
    EXPECT_EQ(ran.load(), 7);
    EXPECT_EQ(weft::join_all(std::views::iota(0, 3) | std::views::transform([](int i) { return [i] { return i; }; })),
              (std::vector{0, 1, 2}));
  });
}

struct move_only {
  std::unique_ptr<int> value;
  int operator()() const { return *value; }
};

// req: W-3
TEST(JoinAll, takes_what_a_temporary_range_owns) {
  at_worker_counts_in_a_task([] {
    const auto some = [] {
      std::vector<move_only> v;
      for (int i = 1; i <= 3; ++i) v.push_back({std::make_unique<int>(i)});
      return v;
    };
    EXPECT_EQ(weft::join_all(some()), (std::vector{1, 2, 3}));
    EXPECT_EQ(weft::join_settled(some()).size(), 3u);
    EXPECT_GT(weft::race(some()), 0);
    EXPECT_GT(weft::any(some()), 0);
    auto named = some();
    EXPECT_EQ(weft::join_all(std::move(named)), (std::vector{1, 2, 3}));
  });
}

// req: W-3
TEST(JoinAll, the_first_failure_cancels_the_rest_and_comes_out_when_they_have_ended) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    EXPECT_THROW(weft::join_all(endless{&ended}, []() -> int { throw failure("x"); }, endless{&ended}), failure);
    EXPECT_EQ(ended.load(), 2);
    std::vector<std::function<int()>> many(5, endless{&ended});
    many.emplace_back([]() -> int {
      weft::yield();
      throw failure("y");
    });
    EXPECT_THROW((void)weft::join_all(many), failure);
    EXPECT_EQ(ended.load(), 7);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// Whoever returns from join_all() relies on all of them.
// req: W-3
TEST(JoinAll, one_that_was_cancelled_alone_is_told_whatever_they_return) {
  at_worker_counts_in_a_task([] {
    const auto cancelled = [] {
      weft::this_task::ref().cancel();
      wait_for_ever();
    };
    EXPECT_THROW(weft::join_all(std::vector<std::function<void()>>{[] {}, cancelled}), weft::task_cancelled);
    const auto with_result = [=] {
      cancelled();
      return 1;
    };
    EXPECT_THROW((void)weft::join_all(std::vector<std::function<int()>>{[] { return 1; }, with_result}),
                 weft::task_cancelled);
    EXPECT_THROW((void)weft::join_all([] {}, cancelled), weft::task_cancelled);
  });
}

// req: W-3
TEST(JoinAll, cancelling_the_caller_of_any_of_them_cancels_what_they_run) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> ended{0}, started{0};
    const auto each = [&] {
      ++started;
      return endless{&ended}();
    };
    const auto cancelled_in = [&](auto call) {
      ended = 0;
      started = 0;
      auto h = rt->spawn(call);
      until([&] { return started.load() == 3; });
      h.cancel();
      EXPECT_THROW(h.join(), weft::task_cancelled);
      EXPECT_EQ(ended.load(), 3);
    };
    cancelled_in([&] { (void)weft::join_all(each, each, each); });
    cancelled_in([&] { (void)weft::join_settled(each, each, each); });
    cancelled_in([&] { (void)weft::race(each, each, each); });
    cancelled_in([&] { (void)weft::any(each, each, each); });
    cancelled_in([&] { (void)weft::join_all(std::vector(3, each)); });
    cancelled_in([&] { (void)weft::any(std::vector(3, each)); });
  });
}

// req: W-3
TEST(JoinAll, outside_of_a_task_all_of_them_say_so) {
  EXPECT_THROW((void)weft::join_all([] {}), weft::usage_error);
  EXPECT_THROW((void)weft::join_settled([] {}), weft::usage_error);
  EXPECT_THROW(weft::race([] {}), weft::usage_error);
  EXPECT_THROW(weft::any([] {}), weft::usage_error);
}

// ---- join_settled ----------------------------------------------------------------------------------------------------

// req: W-3
TEST(JoinSettled, tells_of_each_how_it_ended_and_lets_all_come_to_their_end) {
  at_worker_counts_in_a_task([] {
    int n = 1;
    base::atomic<int> late{0};
    auto [value, error, nothing, reference, slow] = weft::join_settled(
        [] { return std::string("v"); }, []() -> int { throw failure("e"); }, [] {}, [&]() -> int& { return n; },
        [&] {
          for (int i = 0; i < 5; ++i) weft::yield();
          ++late;
        });
    EXPECT_TRUE(value.has_value());
    EXPECT_TRUE(value);
    EXPECT_EQ(value.error(), nullptr);
    EXPECT_EQ(std::as_const(value).value(), "v");
    const std::string taken = std::move(value).value();
    EXPECT_EQ(taken, "v");
    EXPECT_FALSE(error.has_value());
    EXPECT_NE(error.error(), nullptr);
    EXPECT_THROW((void)error.value(), failure);
    EXPECT_THROW((void)std::move(error).value(), failure);
    static_assert(std::is_same_v<decltype(nothing)::value_type, std::monostate>);
    EXPECT_TRUE(nothing);
    EXPECT_EQ(&reference.value(), &n);
    EXPECT_TRUE(slow);
    EXPECT_EQ(late.load(), 1);

    std::vector<std::function<int()>> many;
    for (int i = 0; i < 20; ++i)
      many.emplace_back([i] {
        if (i % 3 == 0) throw failure("third");
        return i;
      });
    const auto all = weft::join_settled(many);
    ASSERT_EQ(all.size(), 20u);
    for (int i = 0; i < 20; ++i) {
      const auto& one = all[static_cast<std::size_t>(i)];
      ASSERT_EQ(one.has_value(), i % 3 != 0);
      if (one) {
        EXPECT_EQ(one.value(), i);
      }
    }
    EXPECT_TRUE(weft::join_settled(std::vector<std::function<int()>>()).empty());
  });
}

// req: W-3
TEST(JoinSettled, one_that_is_cancelled_has_not_settled) {
  at_worker_counts_in_a_task([] {
    EXPECT_THROW((void)weft::join_settled([] { return 1; },
                                          [] {
                                            weft::this_task::ref().cancel();
                                            weft::this_task::check();
                                            return 2;
                                          }),
                 weft::task_cancelled);
  });
}

// ---- race ------------------------------------------------------------------------------------------------------------

// req: W-3
TEST(Race, gives_the_first_result_and_the_others_have_ended_then) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    EXPECT_EQ(weft::race(endless{&ended}, [] { return 4; }, endless{&ended}), 4);
    EXPECT_EQ(ended.load(), 2);
    std::vector<std::function<int()>> many(5, endless{&ended});
    many.emplace_back([] { return 9; });
    EXPECT_EQ(weft::race(many), 9);
    EXPECT_EQ(ended.load(), 7);
    EXPECT_EQ(*weft::race([] { return std::make_unique<int>(3); }), 3);
    int n = 0;
    EXPECT_EQ(&weft::race([&]() -> int& { return n; }, [&]() -> int& { return n; }), &n);
    static_assert(std::is_void_v<decltype(weft::race([] {}, [] {}))>);
    weft::race([] {}, [] { wait_for_ever(); });
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(Race, a_failure_that_comes_first_is_what_it_throws) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    EXPECT_THROW((void)weft::race(endless{&ended}, []() -> int { throw failure("first"); }), failure);
    EXPECT_EQ(ended.load(), 1);
    EXPECT_THROW(weft::race([] { wait_for_ever(); }, [] { throw failure("of one without a result"); }), failure);
    EXPECT_THROW(weft::race(std::vector<std::function<void()>>()), weft::usage_error);
  });
}

// req: W-3
TEST(Race, what_a_loser_throws_while_it_is_cancelled_does_not_replace_the_result) {
  at_worker_counts_in_a_task([] {
    for (std::size_t i = 0; i < scaled(500); ++i) {
      base::atomic<bool> waiting{false};
      ASSERT_EQ(weft::race(
                    [&] {
                      until([&] { return waiting.load(); });
                      return 1;
                    },
                    [&]() -> int {
                      try {
                        waiting = true;
                        wait_for_ever();
                      } catch (const weft::cancelled&) {}
                      throw failure("sore loser");
                    }),
                1);
    }
  });
}

// ---- any -------------------------------------------------------------------------------------------------------------

// req: W-3
TEST(Any, gives_the_first_success_and_passes_over_failures) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    base::atomic<int> failed{0};
    const auto fails = [&]() -> int {
      ++failed;
      throw failure("no");
    };
    EXPECT_EQ(weft::any(fails, endless{&ended}, fails,
                        [&] {
                          until([&] { return failed.load() == 2; });
                          return 6;
                        }),
              6);
    EXPECT_EQ(ended.load(), 1);
    int n = 0;
    EXPECT_EQ(&weft::any([&]() -> int& { throw failure("no"); }, [&]() -> int& { return n; }), &n);
    static_assert(std::is_void_v<decltype(weft::any([] {}))>);
    weft::any([] { throw failure("no"); }, [] {});
    std::vector<std::function<std::unique_ptr<int>()>> many(4, []() -> std::unique_ptr<int> { throw failure("no"); });
    many.emplace_back([] { return std::make_unique<int>(2); });
    EXPECT_EQ(*weft::any(many), 2);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(Any, if_all_fail_all_failures_come_out) {
  at_worker_counts_in_a_task([] {
    std::size_t listed = 0;
    try {
      weft::any([] { throw failure("a"); }, [] { throw failure("b"); }, [] { throw 3; });
    } catch (const weft::scope_failures& all) {
      listed = all.all().size();
    }
    EXPECT_EQ(listed, 3u);
    EXPECT_THROW(weft::any(std::vector<std::function<void()>>(3, [] { throw failure("c"); })), weft::scope_failures);
    EXPECT_THROW(weft::any(std::vector<std::function<void()>>()), weft::usage_error);
  });
}

}  // namespace
