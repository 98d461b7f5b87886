// Scopes: the cancel bit of the task that has them open, one inside the other. Set by a scope, it goes with that scope.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

// req: W-3
TEST(ScopeNested, cancelling_the_inner_scope_leaves_the_outer_one_and_the_task_alone) {
  at_worker_counts_in_a_task([] {
    const int n = weft::with_scope([](weft::scope& outer) {
      auto sibling = outer.spawn([] {
        for (int i = 0; i < 5; ++i) weft::yield();
        return 1;
      });
      for (int i = 0; i < 20; ++i) {
        EXPECT_THROW(weft::with_scope([](weft::scope& inner) {
                       inner.spawn([&inner] { inner.cancel(); });
                       wait_for_ever();
                     }),
                     weft::scope_cancelled);
        EXPECT_FALSE(weft::this_task::is_cancelled());
        EXPECT_FALSE(outer.is_cancelled());
        weft::yield();
      }
      return sibling.join();
    });
    EXPECT_EQ(n, 1);
  });
}

// req: W-3
TEST(ScopeNested, cancelling_the_outer_scope_ends_the_inner_ones_and_stays_until_the_outer_is_left) {
  at_worker_counts_in_a_task([] {
    bool inner_ended = false, still = false;
    EXPECT_THROW(weft::with_scope([&](weft::scope& outer) {
                   EXPECT_TRUE(throws_cancelled([&] {
                     weft::with_scope([&](weft::scope& middle) {
                       weft::with_scope([&](weft::scope& inner) {
                         inner.spawn([&] {
                           try {
                             wait_for_ever();
                           } catch (const weft::cancelled&) {
                             inner_ended = true;
                             throw;
                           }
                         });
                         middle.spawn([&outer] { outer.cancel(); });
                       });
                     });
                   }));
                   still = weft::this_task::is_cancelled();
                   weft::yield();
                 }),
                 weft::scope_cancelled);
    EXPECT_TRUE(inner_ended);
    EXPECT_TRUE(still);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(ScopeNested, the_cancellation_of_the_task_itself_outlasts_every_scope) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    bool after = false;
    auto h = rt->spawn([&] {
      EXPECT_TRUE(throws_cancelled([] {
        weft::with_scope([](weft::scope& s) {
          s.spawn([&s, owner = weft::this_task::ref()] {
            owner.cancel();
            s.cancel();
          });
          wait_for_ever();
        });
      }));
      // A scope that is opened and cancelled afterwards takes nothing away.
      EXPECT_TRUE(throws_cancelled([] { weft::with_scope([](weft::scope& s) { s.cancel(); }); }));
      after = weft::this_task::is_cancelled();
      weft::yield();
      ADD_FAILURE() << "not cancelled any more";
    });
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_TRUE(after);
  });
}

// The inner scope ends by cancellation while others cancel the outer scope, or the task, at the same moment: the bit is neither
// lost nor left over.
// req: W-3
TEST(ScopeNested, both_cancelled_at_the_same_time_the_outer_cancellation_is_neither_lost_nor_left_over) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(3'000);
    rt->run([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        const bool cancel_outer = i % 3 != 0;
        bool inner_ran_on = false;
        bool outer_is_cancelled = false;
        bool cut_short = false;
        try {
          weft::with_scope([&](weft::scope& outer) {
            base::atomic<bool> asked{false};
            if (cancel_outer)
              outer.spawn([&] {
                outer.cancel();
                asked = true;
              });
            try {
              weft::with_scope([&](weft::scope& inner) {
                inner.spawn([&inner] { inner.cancel(); });
                wait_for_ever();
              });
              inner_ran_on = true;
            } catch (const weft::scope_cancelled&) {}
            const weft::this_task::shield held;
            if (cancel_outer) until([&] { return asked.load(); });
            outer_is_cancelled = weft::this_task::is_cancelled();
          });
        } catch (const weft::scope_cancelled&) {
          cut_short = true;
        }
        ASSERT_FALSE(inner_ran_on);
        ASSERT_TRUE(cut_short || outer_is_cancelled == cancel_outer);
        ASSERT_TRUE(!cut_short || cancel_outer);
        ASSERT_FALSE(weft::this_task::is_cancelled());
      }
      weft::yield();
    });
  });
}

// req: W-3
TEST(ScopeNested, a_child_may_cancel_the_scope_of_its_grandparent) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    EXPECT_THROW(weft::with_scope([&](weft::scope& top) {
                   for (int i = 0; i < 3; ++i)
                     top.spawn([&, i] {
                       weft::with_scope([&](weft::scope& below) {
                         for (int k = 0; k < 3; ++k)
                           below.spawn([&, i, k] {
                             if (i == 1 && k == 1) top.cancel();
                             try {
                               wait_for_ever();
                             } catch (...) {
                               ++ended;
                               throw;
                             }
                           });
                       });
                     });
                   wait_for_ever();
                 }),
                 weft::scope_cancelled);
    EXPECT_EQ(ended.load(), 9);
  });
}

// A scope that somebody cancels at the moment it ends.
// req: W-3
TEST(ScopeNested, a_cancel_that_races_the_end_leaves_the_owner_as_it_was) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(3'000);
    std::optional<weft::scope_ref> ref;
    base::atomic<std::size_t> published{0}, cancelled{0};
    std::thread outside([&] {
      for (std::size_t i = 1; i <= rounds; ++i) {
        until([&] { return published.load() == i; });
        ref->cancel();
        cancelled = i;
      }
    });
    rt->run([&] {
      for (std::size_t i = 1; i <= rounds; ++i) {
        int ended = 0;
        const int n = weft::with_scope([&](weft::scope& s) {
          ref = s.ref();
          s.spawn([&] { ++ended; });
          published = i;
          return 5;
        });
        ASSERT_EQ(n, 5);
        ASSERT_EQ(ended, 1);
        ASSERT_FALSE(weft::this_task::is_cancelled());
        until([&] { return cancelled.load() == i; });
        ASSERT_FALSE(weft::this_task::is_cancelled());
      }
    });
    outside.join();
  });
}

}  // namespace
