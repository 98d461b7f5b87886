// Scopes that collect: all failures come out together.
#include <exception>
#include <string>
#include <vector>

#include "scope/scopes.hpp"

namespace {

using namespace scope_test;

// req: W-3
TEST(ScopeCollect, all_failures_come_out_together_and_none_disturbs_the_rest) {
  at_worker_counts_in_a_task([] {
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
  at_worker_counts_in_a_task([] {
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
