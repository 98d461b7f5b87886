// Scopes: what is thrown in them, and what comes out.
#include <string>

#include "scope/scopes.hpp"

namespace {

using namespace scope_test;

// req: W-3
TEST(ScopeFailure, the_first_child_to_fail_cancels_the_others_and_the_body_and_is_rethrown_at_the_end) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> unwound{0};
    const std::string what = what_it_throws([&] {
      weft::with_scope([&](weft::scope& s) {
        support::latch started(5);
        for (int i = 0; i < 5; ++i)
          s.spawn([&] {
            const tally t{unwound};
            started.count_down();
            wait_for_ever();
          });
        s.spawn([&] {
          started.wait();
          throw failure("first");
        });
        const tally t{unwound};
        wait_for_ever();
      });
    });
    EXPECT_EQ(what, "first");
    EXPECT_EQ(unwound.load(), 6);
    weft::yield();
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(ScopeFailure, a_body_that_fails_cancels_the_children_and_its_exception_comes_out_when_they_have_ended) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    const std::string what = what_it_throws([&] {
      weft::with_scope([&](weft::scope& s) {
        for (int i = 0; i < 5; ++i) s.spawn([&] { end_slowly(ended); });
        throw failure("body");
      });
    });
    EXPECT_EQ(what, "body");
    EXPECT_EQ(ended.load(), 5);
  });
}

// req: W-3
TEST(ScopeFailure, of_a_body_and_a_child_that_throw_at_the_same_time_one_comes_out_and_the_other_is_dropped) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    std::size_t by_body = 0, by_child = 0;
    const std::size_t rounds = scaled(2'000);
    rt->run([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        const std::string what = what_it_throws([&] {
          weft::with_scope([&](weft::scope& s) {
            s.spawn([] { throw failure("child"); });
            if (i % 2 != 0) weft::yield();
            throw failure("body");
          });
        });
        if (what == "body") ++by_body;
        if (what == "child") ++by_child;
        ASSERT_FALSE(weft::this_task::is_cancelled());
      }
    });
    EXPECT_EQ(by_body + by_child, rounds);
    EXPECT_GT(by_body, 0u);
  });
}

// req: W-3
TEST(ScopeFailure, a_child_that_fails_while_it_unwinds_does_not_replace_the_first_failure) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    const std::string what = what_it_throws([] {
      weft::with_scope([](weft::scope& s) {
        support::latch started(1);
        s.spawn([&] {
          started.count_down();
          try {
            wait_for_ever();
          } catch (const weft::cancelled&) {
            throw failure("second");
          }
        });
        started.wait();
        throw failure("first");
      });
    });
    EXPECT_EQ(what, "first");
  });
}

// req: W-3 BZ-8
TEST(ScopeFailure, who_joins_the_child_that_fails_gets_its_exception_too) {
  at_worker_counts_in_a_task([] {
    bool seen = false;
    EXPECT_EQ(what_it_throws([&] {
                weft::with_scope([&](weft::scope& s) {
                  auto c = s.spawn([] { throw failure("joined"); });
                  const weft::this_task::shield held;
                  try {
                    c.join();
                  } catch (const failure&) {
                    seen = true;
                  }
                });
              }),
              "joined");
    EXPECT_TRUE(seen);
  });
}

// A child that was cancelled alone is no failure. Whoever joins it is told.
TEST(ScopeFailure, a_child_that_is_cancelled_alone_disturbs_nobody) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    const int n = weft::with_scope([](weft::scope& s) {
      auto cancelled = s.spawn([] { wait_for_ever(); });
      auto other = s.spawn([] {
        weft::yield();
        return 1;
      });
      cancelled.cancel();
      EXPECT_THROW(cancelled.join(), weft::task_cancelled);
      return other.join();
    });
    EXPECT_EQ(n, 1);
  });
}

// req: W-3
TEST(ScopeFailure, a_body_that_lets_out_that_its_child_was_cancelled_alone_has_failed) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_THROW(weft::with_scope([](weft::scope& s) {
                   auto c = s.spawn([] { wait_for_ever(); });
                   c.cancel();
                   c.join();
                 }),
                 weft::task_cancelled);
  });
}

// Shielded, so that it meets the sibling's end and not its own cancellation.
// req: W-3
TEST(ScopeFailure, a_child_that_finds_its_sibling_cancelled_because_the_scope_was_has_not_failed) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_THROW(weft::with_scope([](weft::scope& s) {
                   auto waits = s.spawn([] { wait_for_ever(); });
                   s.spawn([waits = std::move(waits)]() mutable {
                     const weft::this_task::shield shield;
                     waits.join();
                   });
                   s.cancel();
                   weft::this_task::check();
                 }),
                 weft::scope_cancelled);
  });
}

// req: W-3
TEST(ScopeFailure, a_body_that_finds_a_child_cancelled_because_the_scope_was_is_cut_short_and_has_no_value) {
  at_worker_counts_in_a_task([] {
    for (int i = 0; i < 50; ++i) {
      const auto join_what_was_cancelled = [](weft::scope& s) {
        auto c = s.spawn([] { wait_for_ever(); });
        s.cancel();
        const weft::this_task::shield held;
        c.join();  // task_cancelled
        return std::string(100, 'x');
      };
      EXPECT_THROW((void)weft::with_scope(join_what_was_cancelled), weft::scope_cancelled);
      EXPECT_THROW((void)weft::with_scope({.failures = weft::failures::collect}, join_what_was_cancelled),
                   weft::scope_cancelled);
      ASSERT_FALSE(weft::this_task::is_cancelled());
    }
      // The same without a shield, while the child that ends wakes the body before the cancellation does.
    for (std::size_t i = 0; i < scaled(2'000); ++i)
      EXPECT_THROW((void)weft::with_scope([](weft::scope& s) {
                     auto c = s.spawn([] { wait_for_ever(); });
                     s.spawn([&] { s.cancel(); });
                     c.join();
                     return std::string(100, 'x');
                   }),
                   weft::scope_cancelled);
  });
}

// req: W-3
TEST(ScopeFailure, a_failure_of_a_nested_scope_is_one_of_the_task_that_has_it_open) {
  at_worker_counts_in_a_task([] {
    bool other_cancelled = false;
    const std::string what = what_it_throws([&] {
      weft::with_scope([&](weft::scope& s) {
        s.spawn([&] {
          try {
            wait_for_ever();
          } catch (const weft::cancelled&) {
            other_cancelled = true;
            throw;
          }
        });
        s.spawn([] {
          weft::with_scope([](weft::scope& inner) {
            inner.spawn([] { weft::with_scope([](weft::scope& i) { i.spawn([] { throw failure("deep"); }); }); });
            wait_for_ever();
          });
        });
      });
    });
    EXPECT_EQ(what, "deep");
    EXPECT_TRUE(other_cancelled);
      // Caught on the way, it goes no further.
    weft::with_scope([](weft::scope& s) {
      auto c = s.spawn([] {
        return what_it_throws([] { weft::with_scope([](weft::scope& i) { i.spawn([] { throw failure("in"); }); }); });
      });
      EXPECT_EQ(c.join(), "in");
    });
  });
}

// req: W-3
TEST(ScopeFailure, a_failure_comes_before_the_cancellation_of_the_owner_which_comes_at_the_next_point) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  support::latch open(1);
  base::atomic<bool> failed{false}, again{false};
  auto h = rt->spawn([&] {
    try {
      weft::with_scope([&](weft::scope& s) {
        s.spawn([&] {
          open.count_down();
          try {
            wait_for_ever();
          } catch (const weft::cancelled&) {
            throw failure("while cancelled");
          }
        });
      });
    } catch (const failure&) {
      failed = true;
    }
    try {
      weft::this_task::check();
    } catch (const weft::cancelled&) {
      again = true;
      throw;
    }
  });
  open.wait();
  h.cancel();
  EXPECT_THROW(h.join(), weft::task_cancelled);
  EXPECT_TRUE(failed.load());
  EXPECT_TRUE(again.load());
}

}  // namespace
