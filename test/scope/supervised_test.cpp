// Children that are started again when they fail.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"

namespace {

using namespace support::usual;
using clock = std::chrono::steady_clock;

// req: W-3
TEST(Supervised, a_child_that_fails_is_started_again_until_it_returns_and_the_scope_hears_nothing_of_it) {
  at_worker_counts_in_a_task([] {
    int runs = 0;
    std::vector<std::pair<std::string, std::size_t>> told;
    const int n = weft::with_scope([&](weft::scope& s) {
      return s
          .supervise({.pause = 1us,
                      .on_restart =
                          [&](std::exception_ptr e, std::size_t restart) {
                            try {
                              std::rethrow_exception(std::move(e));
                            } catch (const failure& f) {
                              told.emplace_back(f.what(), restart);
                            }
                          }},
                     [&runs, kept = std::make_unique<int>(3)] {
                       if (++runs <= *kept) throw failure(std::to_string(runs));
                       return runs;
                     })
          .join();
    });
    EXPECT_EQ(n, 4);
    EXPECT_EQ(told, (std::vector<std::pair<std::string, std::size_t>>{{"1", 1}, {"2", 2}, {"3", 3}}));
  });
}

// req: W-3
TEST(Supervised, after_so_many_restarts_its_failure_is_the_scopes) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    int runs = 0;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.most = 3, .pause = 0ns}, [&] {
                     ++runs;
                     throw failure("always");
                   });
                 }),
                 failure);
    EXPECT_EQ(runs, 4);
    runs = 0;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.most = 0}, [&] {
                     ++runs;
                     throw failure("once");
                   });
                 }),
                 failure);
    EXPECT_EQ(runs, 1);
  });
}

// req: W-3
TEST(Supervised, the_pauses_grow_up_to_the_longest) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    std::vector<clock::time_point> starts;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.most = 5, .pause = 2ms, .growth = 2, .longest_pause = 8ms}, [&] {
                     starts.push_back(clock::now());
                     throw failure("again");
                   });
                 }),
                 failure);
    ASSERT_EQ(starts.size(), 6u);
    const std::chrono::milliseconds least[] = {2ms, 4ms, 8ms, 8ms, 8ms};
    for (std::size_t i = 0; i < 5; ++i) EXPECT_GE(starts[i + 1] - starts[i], least[i]) << i;
    EXPECT_LT(starts[5] - starts[0], 30s);
  });
}

// req: W-3
TEST(Supervised, the_pauses_never_shrink) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    std::vector<clock::time_point> starts;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.most = 3, .pause = 3ms, .growth = 0}, [&] {
                     starts.push_back(clock::now());
                     throw failure("again");
                   });
                 }),
                 failure);
    ASSERT_EQ(starts.size(), 4u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(starts[i + 1] - starts[i], 3ms) << i;
  });
}

// A second pause of a quarter of an hour, if nothing limited it.
// req: W-3
TEST(Supervised, no_pause_is_longer_than_the_longest) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    int runs = 0;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.most = 4, .pause = 1ms, .growth = 1e6, .longest_pause = 2ms}, [&] {
                     ++runs;
                     throw failure("again");
                   });
                 }),
                 failure);
    EXPECT_EQ(runs, 5);
  });
}

// req: W-3
TEST(Supervised, a_run_that_was_long_enough_counts_as_a_recovery) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    int runs = 0;
    std::vector<std::size_t> restarts;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.most = 2,
                                .pause = 1us,
                                .stable_after = 20ms,
                                .on_restart = [&](std::exception_ptr, std::size_t n) { restarts.push_back(n); }},
                               [&] {
                                 if (++runs == 3) weft::sleep_for(25ms);
                                 throw failure("again");
                               });
                 }),
                 failure);
    EXPECT_EQ(runs, 5);
    EXPECT_EQ(restarts, (std::vector<std::size_t>{1, 2, 1, 2}));
  });
}

// The second pause would be a quarter of an hour; after a long run it is the first one again.
// req: W-3
TEST(Supervised, after_a_recovery_the_pauses_begin_anew) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    int runs = 0;
    weft::with_scope([&](weft::scope& s) {
      s.supervise({.pause = 1us, .growth = 1e9, .longest_pause = 1h, .stable_after = 20ms}, [&] {
        if (++runs == 3) return;
        if (runs == 2) weft::sleep_for(25ms);
        throw failure("again");
      });
    });
    EXPECT_EQ(runs, 3);
  });
}

// req: W-3
TEST(Supervised, cancellation_ends_it_while_it_runs_and_while_it_pauses) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> runs{0};
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.pause = 1h}, [&] {
                     ++runs;
                     throw failure("once");
                   });
                   s.supervise({.pause = 1ns}, [&] {
                     ++runs;
                     weft::sleep_for(1h);
                   });
                   until([&] { return runs.load() == 2; });
                   s.cancel();
                   weft::yield();
                 }),
                 weft::scope_cancelled);
    EXPECT_EQ(runs.load(), 2);
  });
}

// req: W-3
TEST(Supervised, what_on_restart_throws_ends_it) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    int runs = 0;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.supervise({.on_restart = [](std::exception_ptr, std::size_t) { throw 7; }}, [&] {
                     ++runs;
                     throw failure("x");
                   });
                 }),
                 int);
    EXPECT_EQ(runs, 1);
  });
}

}  // namespace
