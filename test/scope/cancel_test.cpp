// Scopes: cancelling them, what is cancelled with them, and that nothing of it is left over.
// ctest: channels
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

// req: W-3
TEST(ScopeCancel, a_body_that_is_cut_short_has_no_value_one_that_returns_has) {
  at_worker_counts_in_a_task([] {
    EXPECT_THROW((void)weft::with_scope([](weft::scope& s) {
                   s.cancel();
                   weft::yield();
                   return 1;
                 }),
                 weft::scope_cancelled);
    EXPECT_EQ(weft::with_scope([](weft::scope& s) {
                EXPECT_FALSE(s.is_cancelled());
                s.cancel();
                EXPECT_TRUE(s.is_cancelled());
                EXPECT_TRUE(weft::this_task::is_cancelled());
                s.cancel();
                return 2;
              }),
              2);
    EXPECT_FALSE(weft::this_task::is_cancelled());
    weft::yield();
  });
}

// req: W-3
TEST(ScopeCancel, a_child_spawned_into_a_cancelled_scope_is_cancelled_from_the_start) {
  at_worker_counts_in_a_task([] {
    bool started = false, was = false, stopped = true;
    weft::with_scope([&](weft::scope& s) {
      s.cancel();
      s.spawn([&] {
        started = true;
        was = weft::this_task::is_cancelled();
        weft::this_task::check();
        stopped = false;
      });
    });
    EXPECT_TRUE(started);
    EXPECT_TRUE(was);
    EXPECT_TRUE(stopped);
  });
}

// A tree whose tasks wait in every way there is.
// req: W-3 LS-P3
TEST(ScopeCancel, a_tree_that_is_parked_in_every_kind_of_wait_ends_at_once) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> unwound{0};
    struct tally {
      base::atomic<int>& count;
      ~tally() { ++count; }
    };
    constexpr int kinds = 10;
    constexpr int each = 10;
    auto [filled_out, filled_in] = weft::make_channel<int>(1);
    auto [out, in] = weft::make_channel<int>();
    auto [select_out, select_in] = weft::make_channel<int>();
    auto h = rt->spawn([&] {
      (void)filled_out.send(1);
      weft::with_scope([&](weft::scope& s) {
        for (int i = 0; i < each; ++i) {
          s.spawn([&] {
            const tally t{unwound};
            (void)in.recv();
          });
          s.spawn([&] {
            const tally t{unwound};
            (void)filled_out.send(2);
          });
          s.spawn([&] {
            const tally t{unwound};
            int v = 0;
            auto late = weft::after(1h);
            weft::select(select_in >> v, late);
          });
          s.spawn([&] {
            const tally t{unwound};
            weft::sleep_for(1h);
          });
          s.spawn([&] {
            const tally t{unwound};
            wait_for_ever();
          });
          s.spawn([&] {
            const tally t{unwound};
            weft::spawn([] {
              try {
                wait_for_ever();
              } catch (const weft::cancelled&) {}
            }).cancel();
            weft::child<void> target;
            weft::with_scope([&](weft::scope& inner) {
              target = inner.spawn([&] {
                const tally own{unwound};
                weft::sleep_for(1h);
              });
              inner.spawn([&] {
                const tally own{unwound};
                target.wait();
              });
              target.join();
            });
          });
          s.spawn([&] {
            const tally t{unwound};
            weft::with_scope([&](weft::scope& inner) {
              inner.spawn([&] {
                const tally own{unwound};
                weft::with_timeout(1h, [] { wait_for_ever(); });
              });
            });
          });
        }
      });
    });
    // Everybody but the tasks that were to be joined: they are cancelled before they park, or after.
    until([&] { return parked_tasks(rt.core()) == kinds * each + 1; });
    EXPECT_EQ(unwound.load(), 0);
    h.cancel();
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_EQ(unwound.load(), kinds * each);
    EXPECT_EQ(filled_in.recv(), 1);
    EXPECT_FALSE(filled_in.try_recv());  // no cancelled sender left its value behind
  });
}

// req: W-3
TEST(ScopeCancel, a_cancellation_that_the_body_swallows_comes_back_at_the_next_point) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    int met = 0;
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   s.cancel();
                   for (int i = 0; i < 3; ++i) try {
                       weft::sleep_for(1h);
                     } catch (...) {
                       ++met;
                     }
                   weft::this_task::check();
                 }),
                 weft::scope_cancelled);
    EXPECT_EQ(met, 3);
    // By a child as well.
    weft::with_scope([&](weft::scope& s) {
      auto c = s.spawn([&] {
        for (int i = 0; i < 3; ++i) try {
            weft::sleep_for(1h);
          } catch (...) {
            ++met;
          }
      });
      s.cancel();
    });
    EXPECT_EQ(met, 6);
  });
}

// req: W-3 BZ-9
TEST(ScopeCancel, a_destructor_that_blocks_while_its_task_is_cancelled_runs_to_its_end) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> done{0};
    support::latch open(2);
    auto [out, in] = weft::make_channel<int>();
    struct blocks {
      weft::writer<int>& to;
      base::atomic<int>& done;
      ~blocks() {
        weft::sleep_for(1ms);
        if (to.send(1)) ++done;
        weft::with_scope([](weft::scope& s) { s.spawn([] { weft::yield(); }); });
        ++done;
      }
    };
    auto h = rt->spawn([&] {
      weft::with_scope([&](weft::scope& s) {
        s.spawn([&] {
          const blocks b{out, done};
          open.count_down();
          wait_for_ever();
        });
        const blocks b{out, done};
        open.count_down();
        wait_for_ever();
      });
    });
    open.wait();
    h.cancel();
    h.cancel();
    EXPECT_EQ(in.recv(), 1);
    EXPECT_EQ(in.recv(), 1);
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_EQ(done.load(), 4);
  });
}

// req: BZ-9
TEST(ScopeCancel, a_shield_protects_the_scope_below_it_and_the_cancellation_takes_effect_when_it_goes) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    support::latch open(1);
    base::atomic<bool> let_go{false};
    base::atomic<int> finished{0};
    bool returned = false, went_on = false;
    auto h = rt->spawn([&] {
      weft::this_task::shielded([&] {
        returned = weft::with_scope([&](weft::scope& s) {
          s.spawn([&] {
            open.count_down();
            while (!let_go.load()) weft::yield();
            ++finished;
          });
          return true;
        });
      });
      weft::this_task::check();
      went_on = true;
    });
    open.wait();
    h.cancel();
    let_go = true;
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_TRUE(returned);
    EXPECT_FALSE(went_on);
    EXPECT_EQ(finished.load(), 1);
  });
}

// req: BZ-9
TEST(ScopeCancel, shielded_returns_what_its_function_returns) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    int n = 0;
    EXPECT_EQ(&weft::this_task::shielded([&]() -> int& { return n; }), &n);
    EXPECT_EQ(*weft::this_task::shielded([] { return std::make_unique<int>(3); }), 3);
    EXPECT_THROW(weft::this_task::shielded([] { throw std::runtime_error("x"); }), std::runtime_error);
    weft::with_scope([](weft::scope& s) {
      s.cancel();
      weft::this_task::shielded([] { weft::yield(); });
      EXPECT_TRUE(throws_cancelled([] { weft::yield(); }));
    });
  });
  EXPECT_THROW(weft::this_task::shielded([] {}), weft::usage_error);
}

// req: BZ-9
TEST(ScopeCancel, shields_nest_to_255_and_the_next_one_is_refused) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    struct nest {
      static int until_refused(int depth) {
        try {
          const weft::this_task::shield held;
          return depth > 1000 ? depth : until_refused(depth + 1);
        } catch (const weft::usage_error& e) {
          EXPECT_NE(std::string(e.what()).find("255"), std::string::npos) << e.what();
          return depth;
        }
      }
    };
    EXPECT_EQ(nest::until_refused(0), 255);
    EXPECT_EQ(nest::until_refused(0), 255) << "the refused one left no trace";
    weft::with_scope([](weft::scope& s) {
      s.cancel();
      EXPECT_TRUE(throws_cancelled([] { weft::yield(); }));
    });
  });
}

// A shield ends while the task is cancelled and while its child completes. The task meets the cancellation once the
// shield is gone, or the scope has ended before.
TEST(ScopeCancel, the_end_of_a_shield_may_race_cancellation_and_completion) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(3'000);
    std::size_t cut = 0, returned = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      base::atomic<int> children{0};
      base::atomic<bool> go{false};
      bool left = false;
      auto h = rt->spawn([&] {
        weft::with_scope([&](weft::scope& s) {
          s.spawn([&] {
            go = true;
            ++children;
          });
          {
            const weft::this_task::shield held;
            s.spawn([&] { ++children; }).join();
          }
          weft::yield();
        });
        left = true;
      });
      until([&] { return go.load(); });
      h.cancel();
      try {
        h.join();
        ++returned;
        ASSERT_TRUE(left);
      } catch (const weft::task_cancelled&) {
        ++cut;
        ASSERT_FALSE(left);
      }
      ASSERT_EQ(children.load(), 2);
    }
    EXPECT_EQ(cut + returned, rounds);
  });
}

}  // namespace
