// The end of a task as an arm of a select.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"

namespace {

using namespace support::usual;

// req: BZ-8 CC-6 LS-W1
TEST(JoinArm, the_end_of_a_task_wins_a_select_and_leaves_the_result) {
  at_worker_counts_in_a_task([] {
    auto slow = weft::spawn([] { wait_for_ever(); });
    auto quick = weft::spawn([] {
      weft::yield();
      return 5;
    });
    EXPECT_EQ(weft::select(~slow, ~quick).index(), 1u);
    EXPECT_TRUE(quick.joinable());
    EXPECT_EQ(weft::select(~slow, ~quick).index(), 1u) << "it is still at its end";
    EXPECT_EQ(quick.join(), 5);
    slow.cancel();
    EXPECT_EQ(weft::select(~slow).index(), 0u);
    EXPECT_THROW(slow.join(), weft::task_cancelled);
  });
}

// req: BZ-8
TEST(JoinArm, on_join_takes_the_result_or_throws_what_the_task_threw) {
  at_worker_counts_in_a_task([] {
    auto number = weft::spawn([] { return std::make_unique<int>(8); });
    int got = 0;
    weft::select(number.on_join([&](std::unique_ptr<int> n) { got = *n; }));
    EXPECT_EQ(got, 8);
    EXPECT_FALSE(number.joinable());
    bool told = false;
    auto nothing = weft::spawn([] {});
    weft::select(nothing.on_join([&] { told = true; }));
    EXPECT_TRUE(told);
    int n = 0;
    auto reference = weft::spawn([&]() -> int& { return n; });
    weft::select(reference.on_join([&](int& r) { EXPECT_EQ(&r, &n); }));
    auto failing = weft::spawn([] { throw failure("x"); });
    EXPECT_THROW(weft::select(failing.on_join([] { ADD_FAILURE(); })), failure);
    EXPECT_FALSE(failing.joinable());
    auto cancelled = weft::spawn([] { wait_for_ever(); });
    cancelled.cancel();
    EXPECT_THROW(weft::select(cancelled.on_join([] { ADD_FAILURE(); })), weft::task_cancelled);
  });
}

// req: BZ-8
TEST(JoinArm, a_child_of_a_scope_is_an_arm_like_any_task) {
  at_worker_counts_in_a_task([] {
    const int n = weft::with_scope([](weft::scope& s) {
      auto endless = s.spawn([] { wait_for_ever(); });
      auto quick = s.spawn([] { return 2; });
      EXPECT_EQ(weft::select(~endless, ~quick).index(), 1u);
      int got = 0;
      weft::select(endless.on_join([] { ADD_FAILURE(); }), quick.on_join([&](int v) { got = v; }));
      endless.cancel();
      return got;
    });
    EXPECT_EQ(n, 2);
  });
}

// req: CSP-4
TEST(JoinArm, that_of_an_empty_handle_is_disabled) {
  at_worker_counts_in_a_task([] {
    weft::join_handle<int> empty;
    weft::child<void> empty_child;
    EXPECT_EQ(weft::select(~empty, weft::otherwise).index(), 1u);
    EXPECT_EQ(weft::select(~empty_child, empty.on_join([](int) {}), weft::otherwise).index(), 2u);
    EXPECT_THROW(weft::select(~empty), weft::usage_error);
    EXPECT_THROW(weft::select(empty.on_join([](int) {})), weft::usage_error);
    auto running = weft::spawn([] { wait_for_ever(); });
    EXPECT_EQ(weft::select(~running, weft::otherwise).index(), 1u);
    EXPECT_EQ(weft::prialt(running.on_join([] {}), weft::otherwise).index(), 1u);
    running.cancel();
    EXPECT_EQ(weft::select(weft::when(false, ~running), ~running).index(), 1u);
    running.detach();
  });
}

// req: CSP-4
TEST(JoinArm, of_ready_arms_prialt_takes_the_first_whatever_they_are) {
  at_worker_counts_in_a_task([] {
    auto ended = weft::spawn([] { return 1; });
    ended.wait();
    auto [never_out, never_in] = weft::make_channel<int>();
    auto [out, in] = weft::make_channel<int>(4);
    auto sender = weft::spawn([to = out]() mutable {
      for (int i = 0; i < 4; ++i) (void)to.send(i);
    });
    sender.join();
    int v = 0;
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(weft::prialt(never_in >> v, ~ended, in >> v).index(), 1u);
      ASSERT_EQ(weft::prialt(never_in >> v, ~ended, weft::otherwise).index(), 1u);
      auto passed = weft::after(0s);
      ASSERT_EQ(weft::prialt(~ended, passed).index(), 0u);
    }
    // And a fair one takes each of them sometimes.
    int by_end = 0, by_timer = 0;
    for (int i = 0; i < 2'000; ++i) {
      auto passed = weft::after(0s);
      (weft::alt(~ended, passed).index() == 0 ? by_end : by_timer)++;
    }
    EXPECT_GT(by_end, 100);
    EXPECT_GT(by_timer, 100);
  });
}

// req: CSP-4
TEST(JoinArm, an_arm_may_be_used_again_after_its_handle_was_joined_or_has_another_task) {
  at_worker_counts_in_a_task([] {
    auto a = weft::spawn([] { return 1; });
    auto b = weft::spawn([] { return 2; });
    int sum = 0;
    auto on_a = a.on_join([&](int n) { sum += n; });
    auto on_b = b.on_join([&](int n) { sum += n; });
    weft::select(on_a, on_b);
    weft::select(on_a, on_b);
    EXPECT_EQ(sum, 3);
    EXPECT_THROW(weft::select(on_a, on_b), weft::usage_error) << "both are disabled now";
    a = weft::spawn([] {
      for (int i = 0; i < 5; ++i) weft::yield();
      return 10;
    });
    weft::select(on_a, on_b);
    EXPECT_EQ(sum, 13);
  });
}

// req: CSP-4
TEST(JoinArm, a_run_time_list_of_ends_is_a_select_too) {
  at_worker_counts_in_a_task([] {
    weft::with_scope([](weft::scope& s) {
      std::vector<weft::child<int>> all;
      for (int i = 0; i < 30; ++i)
        all.push_back(s.spawn([i] {
          for (int k = 0; k < i % 7; ++k) weft::yield();
          return i;
        }));
      int sum = 0;
      while (!all.empty()) {
        std::vector<decltype(~all.front())> ends;
        for (const auto& c : all) ends.push_back(~c);
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(weft::select(ends).index());
        sum += first->join();
        all.erase(first);
      }
      EXPECT_EQ(sum, 29 * 30 / 2);
    });
  });
}

// req: CC-6 W-7
TEST(JoinArm, an_outside_thread_selects_over_tasks_as_well) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t i = 0; i < scaled(500); ++i) {
      auto slow = rt->spawn([] { wait_for_ever(); });
      auto quick = rt->spawn([] { weft::yield(); });
      ASSERT_EQ(weft::select(~slow, ~quick).index(), 1u);
      quick.join();
      auto late = weft::after(1h);
      slow.cancel();
      ASSERT_EQ(weft::select(~slow, late).index(), 0u);
      EXPECT_THROW(weft::select(slow.on_join([] {})), weft::task_cancelled);
      auto failing = rt->spawn([] { throw failure("x"); });
      EXPECT_THROW(weft::select(failing.on_join([] {}), late), failure);
    }
  });
}

// Several selects over the same tasks, cancelled and not, while the tasks end: each ends once.
// req: CC-6 CC-11 BZ-8
TEST(JoinArm, many_selects_over_tasks_that_end_lose_no_wake) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<std::size_t> woken{0};
    const std::size_t rounds = scaled(1'000);
    rt->run([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        base::atomic<bool> go{false};
        weft::child<void> a, b;
        weft::with_scope([&](weft::scope& s) {
          a = s.spawn([&] {
            while (!go.load()) weft::yield();
          });
          b = s.spawn([] { wait_for_ever(); });
          for (int k = 0; k < 3; ++k)
            s.spawn([&] {
              weft::select(~a, ~b);
              ++woken;
            });
          auto victim = s.spawn([&] { weft::select(~b, ~a); });
          victim.cancel();
          go = true;
          a.wait();
          b.cancel();
        });
      }
    });
    EXPECT_EQ(woken.load(), 3 * rounds);
  });
}

// req: BZ-7
TEST(JoinArm, an_arm_keeps_its_task_known_after_the_handle_and_the_runtime_are_gone) {
  support::watchdog guard(60s);
  std::vector<decltype(~weft::join_handle<void>())> ends;
  {
    watched_runtime rt(2);
    auto h = rt->spawn([] {});
    ends.push_back(~h);
    h.join();
  }
  EXPECT_EQ(weft::select(ends).index(), 0u);
}

}  // namespace
