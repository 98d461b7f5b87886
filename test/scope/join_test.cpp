// scope::join: the body waits for its children before its own locals end.
#include <stdexcept>

#include "scope/scopes.hpp"

namespace {

using namespace scope_test;

// req: UX-5 W-3
TEST(ScopeJoin, waits_for_all_children_and_for_those_they_spawn_meanwhile_and_the_scope_goes_on) {
  at_worker_counts_in_a_task([] {
    for (std::size_t round = 0; round < scaled(100); ++round)
      weft::with_scope([](weft::scope& s) {
        for (int again = 0; again < 3; ++again) {
          base::atomic<int> ended{0};  // a local of the body
          for (int i = 0; i < 5; ++i)
            s.spawn([&] {
              weft::yield();
              s.spawn([&] {
                weft::yield();
                ++ended;
              });
              ++ended;
            });
          s.join();
          ASSERT_EQ(ended.load(), 10);
        }
      });
  });
}

// req: UX-5 W-3
TEST(ScopeJoin, a_failure_is_thrown_as_cancelled_when_all_have_ended_and_comes_out_of_with_scope) {
  at_worker_counts_in_a_task([] {
    int ended_when_join_threw = -1;
    try {
      weft::with_scope([&](weft::scope& s) {
        base::atomic<int> ended{0};
        for (int i = 0; i < 5; ++i) s.spawn([&] { end_slowly(ended); });
        s.spawn([] { throw std::runtime_error("first"); });
        try {
          s.join();
        } catch (const weft::cancelled&) {
          ended_when_join_threw = ended.load();
          throw;
        }
      });
      ADD_FAILURE();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "first");
    }
    EXPECT_EQ(ended_when_join_threw, 5);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: UX-5 W-3
TEST(ScopeJoin, cancelling_the_task_or_the_scope_throws_cancelled_when_all_have_ended) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (const bool whole_task : {true, false}) {
      base::atomic<int> ended_when_join_threw{-1};
      base::atomic<bool> joins{false};
      auto owner = rt->spawn([&] {
        weft::with_scope([&](weft::scope& s) {
          base::atomic<int> ended{0};
          for (int i = 0; i < 5; ++i) s.spawn([&] { end_slowly(ended); });
          if (!whole_task)
            s.spawn([&] {
              until([&] { return joins.load(); });
              s.cancel();
            });
          joins = true;
          try {
            s.join();
          } catch (const weft::cancelled&) {
            ended_when_join_threw = ended.load();
            throw;
          }
        });
      });
      if (whole_task) {
        until([&] { return joins.load(); });
        owner.cancel();
        EXPECT_THROW(owner.join(), weft::task_cancelled);
      } else {
        EXPECT_THROW(owner.join(), weft::scope_cancelled);
      }
      EXPECT_EQ(ended_when_join_threw.load(), 5);
    }
  });
}

// req: UX-5 W-3
TEST(ScopeJoin, a_scope_that_collects_returns_from_join_and_throws_what_failed_at_its_end) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    bool went_on = false;
    EXPECT_THROW(weft::with_scope({.failures = weft::failures::collect},
                                  [&](weft::scope& s) {
                                    s.spawn([] { throw std::runtime_error("collected"); });
                                    s.join();
                                    went_on = true;
                                  }),
                 weft::scope_failures);
    EXPECT_TRUE(went_on);
  });
}

// req: UX-5 W-3
TEST(ScopeJoin, a_scope_that_was_joined_closes_at_its_end_as_any) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    const auto ref = weft::with_scope([](weft::scope& s) {
      s.join();
      s.spawn([] {});
      s.join();
      return s.ref();
    });
    EXPECT_THROW(ref.spawn([] {}), weft::scope_closed);
  });
}

// req: UX-5 W-3
TEST(ScopeJoin, is_for_the_body_only) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::with_scope([](weft::scope& s) { s.spawn([&] { EXPECT_THROW(s.join(), weft::usage_error); }).join(); });
  });
}

}  // namespace
