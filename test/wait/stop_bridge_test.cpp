// std::stop_token in and out.
#include <gtest/gtest.h>

#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

// ---- out: stop_on_cancel ---------------------------------------------------------------------------------------------

// req: W-3
TEST(StopOnCancel, cancelling_the_task_stops_its_token_and_runs_the_callbacks_once) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> called{0};
    base::atomic<bool> ready{false}, seen{false};
    auto h = rt->spawn([&] {
      const weft::stop_on_cancel bridge;
      const std::stop_callback callback(bridge.token(), [&] { ++called; });
      EXPECT_FALSE(bridge.token().stop_requested());
      ready = true;
      // Code that knows nothing of Weft.
      support::hold_worker_until([&] { return bridge.token().stop_requested(); });
      seen = true;
      weft::this_task::check();
      ADD_FAILURE() << "not cancelled";
    });
    until([&] { return ready.load(); });
    h.cancel();
    h.cancel();
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_TRUE(seen.load());
    EXPECT_EQ(called.load(), 1);
  });
}

// req: W-3
TEST(StopOnCancel, one_that_is_made_after_the_cancellation_is_stopped_from_the_start) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    bool inner = false;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.cancel();
                   const weft::stop_on_cancel bridge;
                   inner = bridge.token().stop_requested();
                   weft::this_task::check();
                 }),
                 weft::scope_cancelled);
    EXPECT_TRUE(inner);
    const weft::stop_on_cancel after;
    EXPECT_FALSE(after.token().stop_requested());
  });
}

// req: W-3 BZ-9
TEST(StopOnCancel, a_shield_does_not_keep_the_token_from_being_stopped) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<bool> ready{false};
    auto h = rt->spawn([&] {
      const weft::this_task::shield held;
      const weft::stop_on_cancel bridge;
      ready = true;
      until([&] { return bridge.token().stop_requested(); });
      return 4;
    });
    until([&] { return ready.load(); });
    h.cancel();
    EXPECT_EQ(h.join(), 4);
  });
}

// req: W-3
TEST(StopOnCancel, several_of_one_task_are_all_stopped_and_those_of_others_are_not) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    constexpr int tasks = 100;  // more than there are buckets
    base::atomic<int> ready{0}, stopped{0}, not_stopped{0};
    base::atomic<bool> go{false};
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < tasks; ++i)
      all.push_back(rt->spawn([&] {
        const weft::stop_on_cancel first;
        const weft::stop_on_cancel second;
        { const weft::stop_on_cancel gone; }
        ++ready;
        const weft::this_task::shield held;
        while (!go.load()) weft::sleep_for(100us);
        ++(first.token().stop_requested() && second.token().stop_requested() ? stopped : not_stopped);
      }));
    until([&] { return ready.load() == tasks; });
    for (int i = 0; i < tasks; i += 2) all[static_cast<std::size_t>(i)].cancel();
    go = true;
    for (auto& h : all) h.join();
    EXPECT_EQ(stopped.load(), tasks / 2);
    EXPECT_EQ(not_stopped.load(), tasks / 2);
  });
}

// req: W-3
TEST(StopOnCancel, cancelling_a_scope_stops_the_tokens_of_body_and_children_running_or_parked) {
  at_worker_counts_in_a_task([] {
    for (std::size_t round = 0; round < scaled(500); ++round) {
      std::vector<std::stop_token> tokens(6);
      support::latch ready(5);
      EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                     for (std::size_t i = 0; i < 5; ++i)
                       s.spawn([&, i] {
                         const weft::stop_on_cancel bridge;
                         tokens[i] = bridge.token();
                         ready.count_down();
                         wait_for_ever();
                       });
                     const weft::stop_on_cancel bridge;
                     tokens[5] = bridge.token();
                     ready.wait();
                     s.spawn([&s] { s.cancel(); });
                     wait_for_ever();
                   }),
                   weft::scope_cancelled);
      for (const std::stop_token& t : tokens) ASSERT_TRUE(t.stop_requested());
    }
  });
}

// By the time a parked task goes on, its callbacks have run, whoever cancels.
// req: W-3
TEST(StopOnCancel, the_callbacks_of_a_parked_task_run_before_it_goes_on) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> called{0};
    const auto waits = [&] {
      const weft::stop_on_cancel bridge;
      const std::stop_callback callback(bridge.token(), [&] { ++called; });
      wait_for_ever();
    };
    for (std::size_t round = 0; round < 20; ++round) {
      called = 0;
      auto alone = rt->spawn(waits);
      std::optional<weft::scope_ref> ref;
      auto scoped = rt->spawn([&] {
        weft::with_scope([&](weft::scope& s) {
          ref = s.ref();
          for (int i = 0; i < 3; ++i) s.spawn(waits);
          waits();
        });
      });
      until([&] { return parked_tasks(rt.core()) == 5; });
      alone.cancel();
      EXPECT_THROW(alone.join(), weft::task_cancelled);
      EXPECT_EQ(called.load(), 1);
      ref->cancel();
      EXPECT_THROW(scoped.join(), weft::scope_cancelled);
      EXPECT_EQ(called.load(), 5);
    }
  });
}

// req: W-3
TEST(StopOnCancel, cancelling_an_inner_scope_does_not_stop_a_token_around_it) {
  at_worker_counts_in_a_task([] {
    const weft::stop_on_cancel outermost;
    EXPECT_FALSE(weft::with_timeout(1ms, [] { wait_for_ever(); }));
    EXPECT_FALSE(outermost.token().stop_requested());
    bool between_stopped = true;
    EXPECT_THROW(weft::with_scope([&](weft::scope& outer) {
                   const weft::stop_on_cancel between;
                   EXPECT_THROW(weft::with_scope([](weft::scope& inner) {
                                  const weft::stop_on_cancel inside;
                                  inner.spawn([&inner] { inner.cancel(); });
                                  until([&] { return inside.token().stop_requested(); });
                                  weft::this_task::check();
                                }),
                                weft::scope_cancelled);
                   between_stopped = between.token().stop_requested();
                   outer.cancel();
                   EXPECT_TRUE(between.token().stop_requested());
                   weft::this_task::check();
                 }),
                 weft::scope_cancelled);
    EXPECT_FALSE(between_stopped);
    EXPECT_FALSE(outermost.token().stop_requested());
  });
}

// A canceller that comes while the task ends: whoever sees the task end cancelled sees the token stopped.
// req: W-3
TEST(StopOnCancel, a_cancellation_that_races_the_end_of_the_bridge_is_never_half_done) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(3'000);
    std::size_t cancelled = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      std::stop_token token;
      base::atomic<bool> ready{false};
      base::atomic<int> called{0};
      auto h = rt->spawn([&] {
        const weft::stop_on_cancel bridge;
        token = bridge.token();
        const std::stop_callback callback(bridge.token(), [&] { ++called; });
        ready = true;
        if (i % 3 == 0) support::wait_for_ever();  // the cancellation surely wins
        if (i % 3 == 1) weft::sleep_for(10us);
        weft::yield();
      });
      until([&] { return ready.load(); });
      h.cancel();
      try {
        h.join();
      } catch (const weft::task_cancelled&) {
        ++cancelled;
        ASSERT_TRUE(token.stop_requested());
      }
      ASSERT_LE(called.load(), 1);
    }
    EXPECT_GE(cancelled, rounds / 3);
  });
}

// req: W-3
TEST(StopOnCancel, needs_a_task) { EXPECT_THROW(const weft::stop_on_cancel bridge, weft::usage_error); }

// A callback may cancel further tasks, whose bridges may be told at once.
// req: W-3
TEST(StopOnCancel, a_callback_may_cancel_other_tasks) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    support::latch ready(3);
    std::vector<weft::task_ref> refs(3);
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < 3; ++i)
      all.push_back(rt->spawn([&, i] {
        refs[i] = weft::this_task::ref();
        const weft::stop_on_cancel bridge;
        const std::stop_callback callback(bridge.token(), [&, i] {
          if (i + 1 < 3) refs[i + 1].cancel();
        });
        ready.count_down();
        wait_for_ever();
      }));
    ready.wait();
    all[0].cancel();
    for (auto& h : all) EXPECT_THROW(h.join(), weft::task_cancelled);
  });
}

// Callbacks run without the lock under which the bridges of a task are found: this one takes it again.
// req: W-3
TEST(StopOnCancel, a_callback_may_make_a_bridge_of_its_own) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  bool stopped = false;
  rt->spawn([&] {
      const weft::stop_on_cancel bridge;
      const std::stop_callback callback(bridge.token(), [&] {
        const weft::stop_on_cancel another;
        stopped = another.token().stop_requested();
      });
      weft::this_task::ref().cancel();
    }).join();
  EXPECT_TRUE(stopped);
}

// Likewise without the lock of the scope.
// req: W-3
TEST(StopOnCancel, a_callback_may_use_the_scope_that_is_being_cancelled) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  int called = 0;
  rt->run([&] {
    const auto body = [&](weft::scope& s) {
      const weft::stop_on_cancel bridge;
      const std::stop_callback callback(bridge.token(), [&] {
        s.cancel();
        ++called;
      });
      s.cancel();
      weft::this_task::check();
    };
    EXPECT_THROW(weft::with_scope(body), weft::scope_cancelled);
  });
  EXPECT_EQ(called, 1);
}

// ---- in: scope_options::stop -----------------------------------------------------------------------------------------

// req: W-3
TEST(ScopeStop, stopping_the_token_cancels_the_scope_from_any_thread) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    std::stop_source source;
    base::atomic<int> waiting{0}, ended{0};
    auto h = rt->spawn([&] {
      EXPECT_THROW(weft::with_scope({.stop = source.get_token()},
                                    [&](weft::scope& s) {
                                      s.spawn([&] {
                                        ++waiting;
                                        try {
                                          wait_for_ever();
                                        } catch (...) {
                                          ++ended;
                                          throw;
                                        }
                                      });
                                      ++waiting;
                                      wait_for_ever();
                                    }),
                   weft::scope_cancelled);
      EXPECT_FALSE(weft::this_task::is_cancelled());
    });
    until([&] { return waiting.load() == 2; });
    source.request_stop();
    h.join();
    EXPECT_EQ(ended.load(), 1);
  });
}

// req: W-3
TEST(ScopeStop, one_that_was_stopped_before_cancels_the_scope_from_the_start) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    std::stop_source source;
    source.request_stop();
    bool was = false;
    EXPECT_THROW(weft::with_scope({.stop = source.get_token()},
                                  [&](weft::scope& s) {
                                    was = s.is_cancelled();
                                    weft::yield();
                                  }),
                 weft::scope_cancelled);
    EXPECT_TRUE(was);
    EXPECT_EQ(weft::with_scope({.stop = source.get_token()}, [](weft::scope&) { return 1; }), 1);
    EXPECT_EQ(weft::with_scope({.stop = std::stop_token()}, [](weft::scope&) { return 2; }), 2);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3
TEST(ScopeStop, from_a_token_to_a_token_through_nested_scopes) {
  at_worker_counts_in_a_task([] {
    std::stop_source source;
    base::atomic<bool> ready{false}, stopped{false};
    EXPECT_THROW(weft::with_scope({.stop = source.get_token()},
                                  [&](weft::scope& s) {
                                    s.spawn([&] {
                                      weft::with_scope([&](weft::scope& inner) {
                                        inner.spawn([&] {
                                          const weft::stop_on_cancel bridge;
                                          const std::stop_callback callback(bridge.token(), [&] { stopped = true; });
                                          ready = true;
                                          wait_for_ever();
                                        });
                                      });
                                    });
                                    until([&] { return ready.load(); });
                                    source.request_stop();
                                    weft::yield();
                                  }),
                 weft::scope_cancelled);
    EXPECT_TRUE(stopped.load());
  });
}

// req: W-3
TEST(ScopeStop, a_stop_that_races_the_end_of_the_scope_leaves_nothing_behind) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(2'000);
    std::vector<std::stop_source> sources(rounds);
    base::atomic<std::size_t> at{0};
    std::thread stopper([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        until([&] { return at.load() > i; });
        sources[i].request_stop();
      }
    });
    rt->run([&] {
      for (std::size_t i = 0; i < rounds; ++i) {
        try {
          weft::with_scope({.stop = sources[i].get_token()}, [&](weft::scope& s) {
            s.spawn([] { weft::yield(); });
            at = i + 1;
          });
        } catch (const weft::scope_cancelled&) {}
        ASSERT_FALSE(weft::this_task::is_cancelled());
      }
    });
    stopper.join();
  });
}

}  // namespace
