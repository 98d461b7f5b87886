// Scopes: what is thrown in them, and what comes out.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "support/parked.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using support::at_worker_counts;
using support::scaled;
using support::until;
using support::wait_for_ever;
using support::watched_runtime;
namespace base = weft::base;

struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class F>
std::string what_it_throws(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  } catch (const weft::cancelled&) {
    return "cancelled";
  }
  return "";
}

// req: W-3
TEST(ScopeFailure, the_first_child_to_fail_cancels_the_others_and_the_body_and_is_rethrown_at_the_end) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      base::atomic<int> unwound{0};
      struct tally {
        base::atomic<int>& count;
        ~tally() { ++count; }
      };
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
  });
}

// req: W-3
TEST(ScopeFailure, a_body_that_fails_cancels_the_children_and_its_exception_comes_out_when_they_have_ended) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      base::atomic<int> ended{0};
      const std::string what = what_it_throws([&] {
        weft::with_scope([&](weft::scope& s) {
          for (int i = 0; i < 5; ++i)
            s.spawn([&] {
              try {
                wait_for_ever();
              } catch (const weft::cancelled&) {
                const weft::this_task::shield held;
                for (int k = 0; k < 5; ++k) weft::yield();  // takes its time to end
                ++ended;
                throw;
              }
            });
          throw failure("body");
        });
      });
      EXPECT_EQ(what, "body");
      EXPECT_EQ(ended.load(), 5);
    });
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
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
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
  });
}

// A child that was cancelled by itself is no failure; who joins it is told.
// req: W-3
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
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
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
  });
}

// req: W-3
TEST(ScopeFailure, a_failure_of_a_nested_scope_is_one_of_the_task_that_has_it_open) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
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

// ---- failures::collect -----------------------------------------------------------------------------------------------

// req: W-3
TEST(ScopeCollect, all_failures_come_out_together_and_none_disturbs_the_rest) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      base::atomic<int> went_on{0};
      try {
        weft::with_scope({.failures = weft::failures::collect}, [&](weft::scope& s) {
          for (int i = 0; i < 40; ++i)
            s.spawn([&, i] {
              if (i % 4 == 0) throw failure(std::to_string(i));
              for (int k = 0; k < 3; ++k) weft::yield();
              ++went_on;
            });
          throw failure("body");
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const weft::scope_failures& all) {
        EXPECT_EQ(all.all().size(), 11u);
        EXPECT_NE(std::string(all.what()).find("11 tasks"), std::string::npos) << all.what();
        std::string first;
        try {
          std::rethrow_exception(all.all().front());
        } catch (const failure& f) {
          first = f.what();
        }
        EXPECT_NE(std::string(all.what()).find("the first: " + first), std::string::npos) << all.what();
        const weft::scope_failures copy = all;
        EXPECT_EQ(copy.all().data(), all.all().data());
      }
      EXPECT_EQ(went_on.load(), 30);
      EXPECT_EQ(weft::with_scope({.failures = weft::failures::collect}, [](weft::scope&) { return 1; }), 1);
    });
  });
}

// req: W-3
TEST(ScopeCollect, one_failure_is_told_as_one_task) {
  weft::run({.workers = 1}, [] {
    try {
      weft::with_scope({.failures = weft::failures::collect},
                       [](weft::scope& s) { s.spawn([] { throw failure("alone"); }); });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const weft::scope_failures& all) {
      EXPECT_STREQ(all.what(), "weft: 1 task of a scope failed; the first: alone");
    }
    try {
      throw weft::scope_failures({std::make_exception_ptr(1)});
    } catch (const weft::scope_failures& all) {
      EXPECT_STREQ(all.what(), "weft: 1 task of a scope failed; the first: something that is no std::exception");
    }
  });
}

// req: W-3
TEST(ScopeCollect, an_exception_that_the_body_met_by_joining_a_child_is_listed_once) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    try {
      weft::with_scope({.failures = weft::failures::collect}, [](weft::scope& s) {
        s.spawn([] { throw failure("once"); }).join();
        ADD_FAILURE() << "join did not throw";
      });
    } catch (const weft::scope_failures& all) {
      EXPECT_EQ(all.all().size(), 1u) << all.what();
    }
  });
}

// req: W-3
TEST(ScopeCollect, an_exception_that_children_met_by_joining_their_sibling_is_listed_once) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      weft::child<void> fails;
      std::vector<std::string> listed;
      try {
        weft::with_scope({.failures = weft::failures::collect}, [&](weft::scope& s) {
          s.spawn([] { throw failure("before"); }).wait();
          fails = s.spawn([] { throw failure("joined"); });
          auto first = s.spawn([&] { fails.join(); });
          auto second = s.spawn([&] { first.join(); });
          second.wait();
          s.spawn([] { throw failure("after"); }).wait();
          second.join();
        });
      } catch (const weft::scope_failures& all) {
        for (const std::exception_ptr& e : all.all())
          listed.push_back(what_it_throws([&] { std::rethrow_exception(e); }));
      }
      EXPECT_EQ(listed, (std::vector<std::string>{"before", "joined", "after"}));
    });
  });
}

// req: W-3
TEST(ScopeCollect, cancelled_children_are_no_failures) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::child<void> one;
    EXPECT_EQ(weft::with_scope({.failures = weft::failures::collect},
                               [&](weft::scope& s) {
                                 for (int i = 0; i < 5; ++i) s.spawn([] { wait_for_ever(); });
                                 one = s.spawn([] { wait_for_ever(); });
                                 s.spawn([&one] { one.wait(); });
                                 s.cancel();
                                 return 3;
                               }),
              3);
  });
}

// Each child fails while others are spawned: there is always room for what it throws.
// req: W-3
TEST(ScopeCollect, many_failures_at_once_are_all_counted) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    static constexpr std::size_t count = 2'000;
    rt->run([] {
      std::size_t listed = 0;
      try {
        weft::with_scope({.failures = weft::failures::collect}, [](weft::scope& s) {
          for (int i = 0; i < 4; ++i)
            s.spawn([&s] {
              for (std::size_t k = 0; k < count / 4; ++k) s.spawn([] { throw failure("one of many"); });
            });
        });
      } catch (const weft::scope_failures& all) {
        listed = all.all().size();
      }
      EXPECT_EQ(listed, count);
    });
  });
}

}  // namespace
