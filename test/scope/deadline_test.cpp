// Scopes: deadlines and time-outs.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
using clock = std::chrono::steady_clock;

// req: W-3
TEST(ScopeDeadline, cancels_body_and_children_when_it_comes_and_not_before) {
  at_worker_counts_in_a_task([] {
    const auto start = clock::now();
    bool child_ended = false;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.cancel_after(5ms);
                   s.spawn([&] {
                     try {
                       wait_for_ever();
                     } catch (...) {
                       child_ended = true;
                       throw;
                     }
                   });
                   wait_for_ever();
                 }),
                 weft::scope_cancelled);
    EXPECT_GE(clock::now() - start, 5ms);
    EXPECT_TRUE(child_ended);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(ScopeDeadline, reaches_a_task_that_never_parks_while_others_sleep) {
  at_worker_counts_in_a_task([] {
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.cancel_at(clock::now() + 3ms);
                   for (;;) weft::yield();
                 }),
                 weft::scope_cancelled);
  });
}

// req: W-3
TEST(ScopeDeadline, a_later_call_replaces_it) {
  at_worker_counts_in_a_task([] {
    const auto start = clock::now();
      // Put off.
    EXPECT_EQ(weft::with_scope([&](weft::scope& s) {
                s.cancel_after(20ms);
                s.cancel_after(1h);
                weft::sleep_for(60ms);
                return 1;
              }),
              1);
      // Brought forward, by a child on whichever worker.
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.cancel_after(1h);
                   s.spawn([&s] { s.cancel_after(2h); }).join();  // before the next one, which is to be the last
                   s.spawn([&s] {
                     weft::sleep_for(1ms);
                     s.cancel_after(1ms);
                   });
                   wait_for_ever();
                 }),
                 weft::scope_cancelled);
    EXPECT_LT(clock::now() - start, 30min);
  });
}

// req: W-3
TEST(ScopeDeadline, one_in_the_past_cancels_at_once_however_long_ago_it_was) {
  at_worker_counts_in_a_task([] {
    for (const auto when : {clock::now(), clock::now() - 1s, clock::now() - 1'000'000h, clock::time_point(),
                            clock::time_point(-1s), clock::time_point::min()}) {
      bool at_once = false;
      EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                     s.cancel_at(when);
                     at_once = s.is_cancelled();
                     wait_for_ever();
                   }),
                   weft::scope_cancelled);
      EXPECT_TRUE(at_once);
    }
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.cancel_after(-1h);
                   wait_for_ever();
                 }),
                 weft::scope_cancelled);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(ScopeDeadline, one_for_ever_away_is_none) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_EQ(weft::with_scope([](weft::scope& s) {
                s.cancel_at(clock::time_point::max());
                s.cancel_after(std::chrono::hours::max());
                weft::sleep_for(1ms);
                return 1;
              }),
              1);
    EXPECT_EQ(weft::with_timeout(std::chrono::nanoseconds::max(), [] { return 2; }), 2);
  });
}

// req: W-3
TEST(ScopeDeadline, can_be_set_only_by_a_task_of_the_scopes_runtime) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::with_scope([](weft::scope& s) {
      std::thread outside([r = s.ref()] { EXPECT_THROW(r.cancel_after(1s), weft::usage_error); });
      outside.join();
    });
  });
}

// The alarm and the end of the scope, at the same time: nothing is left in a wheel, nothing rings later.
// req: W-3 BZ-11
TEST(ScopeDeadline, one_that_races_the_end_of_its_scope_harms_nobody) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(2'000);
    base::atomic<std::size_t> cut{0}, returned{0};
    rt->run([&] {
      weft::with_scope([&](weft::scope& all) {
        for (int t = 0; t < 4; ++t)
          all.spawn([&, t] {
            for (std::size_t i = 0; i < rounds; ++i) {
              try {
                weft::with_scope([&](weft::scope& s) {
                  const auto when =
                      clock::now() + std::chrono::microseconds((i * 7 + static_cast<std::size_t>(t)) % 150);
                  s.cancel_at(when);
                  if (i % 2 == 0) s.spawn([&s, i] { s.cancel_after(std::chrono::microseconds(i % 100)); });
                  weft::sleep_until(when - 30us);
                  if (i % 3 == 0) s.cancel_after(40us);
                });
                ++returned;
              } catch (const weft::scope_cancelled&) {
                ++cut;
              }
              ASSERT_FALSE(weft::this_task::is_cancelled());
            }
          });
      });
    });
    EXPECT_EQ(cut.load() + returned.load(), 4 * rounds);
  });
}

// ---- with_timeout ----------------------------------------------------------------------------------------------------

// req: W-3
TEST(Timeout, gives_the_result_or_nothing) {
  at_worker_counts_in_a_task([] {
    static_assert(std::is_same_v<decltype(weft::with_timeout(1s, [] { return 1; })), std::optional<int>>);
    static_assert(std::is_same_v<decltype(weft::with_timeout(1s, [] {})), bool>);
    EXPECT_EQ(weft::with_timeout(1h, [] { return 1; }), 1);
    EXPECT_EQ(weft::with_timeout(1h, [](weft::scope& s) { return s.spawn([] { return 2; }).join(); }), 2);
    EXPECT_EQ(**weft::with_timeout(1h, [] { return std::make_unique<int>(3); }), 3);
    EXPECT_TRUE(weft::with_timeout(1h, [] {}));
    EXPECT_EQ(weft::with_timeout(1ms,
                                 [] {
                                   wait_for_ever();
                                   return 1;
                                 }),
              std::nullopt);
    EXPECT_FALSE(weft::with_timeout(1ms, [] { wait_for_ever(); }));
    EXPECT_FALSE(weft::with_timeout(0s, [] { weft::yield(); }));
    EXPECT_FALSE(weft::with_timeout(-1s, [] { weft::yield(); }));
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(Timeout, also_waits_for_children_and_says_if_they_were_cut_short) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    EXPECT_EQ(weft::with_timeout(2ms,
                                 [&](weft::scope& s) {
                                   s.spawn([&] {
                                     try {
                                       wait_for_ever();
                                     } catch (...) {
                                       ++ended;
                                       throw;
                                     }
                                   });
                                   return 1;
                                 }),
              std::nullopt);
    EXPECT_EQ(ended.load(), 1);
    // Children that were spawned after the time was up as well.
    EXPECT_FALSE(weft::with_timeout(0s, [&](weft::scope& s) {
      until([&] { return s.is_cancelled(); });
      s.spawn([&] { wait_for_ever(); });
    }));
    EXPECT_TRUE(weft::with_timeout(1h, [&](weft::scope& s) { s.spawn([&] { ++ended; }); }));
    EXPECT_EQ(ended.load(), 2);
  });
}

// req: W-3
TEST(Timeout, a_body_that_returns_in_spite_of_it_and_has_no_children_was_not_cut_short) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    EXPECT_EQ(weft::with_timeout(0s,
                                 [](weft::scope& s) {
                                   EXPECT_TRUE(s.is_cancelled());
                                   return 1;
                                 }),
              1);
  });
}

// req: W-3
TEST(ScopeDeadline, one_that_is_set_after_the_end_leaves_no_timer_behind) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([&] {
    std::optional<weft::scope_ref> later;
    weft::with_scope([&](weft::scope& s) { later.emplace(s.ref()); });
    later->cancel_after(1h);
    EXPECT_EQ(weft::sched::this_worker()->timers().next_deadline(), base::never_ns);
  });
}

// req: W-3
TEST(Timeout, passes_failures_and_other_cancellations_on) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_THROW((void)weft::with_timeout(1h, [] { throw std::runtime_error("x"); }), std::runtime_error);
    EXPECT_THROW((void)weft::with_timeout(1h,
                                          [](weft::scope& s) {
                                            s.spawn([] { throw std::runtime_error("x"); });
                                            wait_for_ever();
                                            return 1;
                                          }),
                 std::runtime_error);
    // Not the time: the body cancelled its scope itself.
    EXPECT_THROW((void)weft::with_timeout(1h,
                                          [](weft::scope& s) {
                                            s.cancel();
                                            wait_for_ever();
                                            return 1;
                                          }),
                 weft::scope_cancelled);
    // The outer time is up while the inner scope waits. The outer one reports it; for the inner one it is no time-out.
    bool inner_returned = false;
    EXPECT_FALSE(weft::with_timeout(2ms, [&] {
      (void)weft::with_timeout(1h, [] { wait_for_ever(); });
      inner_returned = true;
    }));
    EXPECT_FALSE(inner_returned);
    // The inner one is up, the outer not.
    EXPECT_EQ(weft::with_timeout(1h, [&] { return weft::with_timeout(1ms, [] { wait_for_ever(); }); }), false);
  });
  auto h = rt->spawn([] { (void)weft::with_timeout(1h, [] { wait_for_ever(); }); });
  h.cancel();
  EXPECT_THROW(h.join(), weft::task_cancelled);
}

// req: W-3 BZ-11
TEST(Timeout, many_at_once_all_time_out) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t tasks = scaled(5'000);
    rt->run([&] {
      base::atomic<std::size_t> timed_out{0};
      weft::with_scope([&](weft::scope& s) {
        for (std::size_t i = 0; i < tasks; ++i)
          s.spawn([&, i] {
            if (!weft::with_timeout(std::chrono::microseconds(i % 5'000), [] { wait_for_ever(); })) ++timed_out;
          });
      });
      EXPECT_EQ(timed_out.load(), tasks);
    });
  });
}

}  // namespace
