// Scopes: what the body returns, how long children live, who may spawn and until when.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"

namespace {

using namespace support::usual;

// Parks until it is cancelled.
// ---- what it returns -------------------------------------------------------------------------------------------------

// req: W-3
TEST(ScopeValue, a_scope_returns_what_its_body_returns) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_EQ(weft::with_scope([](weft::scope&) { return 7; }), 7);
    EXPECT_EQ(weft::with_scope([](weft::scope& s) { return s.spawn([] { return 3; }).join() + 1; }), 4);
    EXPECT_EQ(*weft::with_scope([](weft::scope&) { return std::make_unique<int>(5); }), 5);
    static_assert(std::is_void_v<decltype(weft::with_scope([](weft::scope&) {}))>);
    weft::with_scope([](weft::scope&) {});
    static_assert(std::is_same_v<decltype(weft::with_scope([](weft::scope&) -> const std::string { return "x"; })),
                                 const std::string>);
    EXPECT_EQ(weft::with_scope([](weft::scope&) -> const std::string { return "x"; }), "x");
  });
}

// req: W-3
TEST(ScopeValue, a_reference_that_the_body_returns_is_that_reference) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    int n = 1;
    int& same = weft::with_scope([&](weft::scope&) -> int& { return n; });
    EXPECT_EQ(&same, &n);
    const int& constant = weft::with_scope([&](weft::scope&) -> const int& { return n; });
    EXPECT_EQ(&constant, &n);
    int&& moved = weft::with_scope([&](weft::scope&) -> int&& { return std::move(n); });
    EXPECT_EQ(&moved, &n);
  });
}

// Counts those that live.
struct counted {
  inline static base::atomic<int> alive{0};
  counted() { ++alive; }
  counted(counted&&) noexcept { ++alive; }
  ~counted() { --alive; }
};

// req: W-3
TEST(ScopeValue, a_value_is_dropped_when_a_child_fails_after_the_body_returned) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    EXPECT_THROW((void)weft::with_scope([](weft::scope& s) {
                   s.spawn([] {
                     weft::yield();
                     throw std::runtime_error("late");
                   });
                   return counted();
                 }),
                 std::runtime_error);
    EXPECT_EQ(counted::alive.load(), 0);
  });
}

// req: W-3
TEST(ScopeValue, outside_of_a_task_there_is_no_scope) {
  EXPECT_THROW(weft::with_scope([](weft::scope&) { FAIL(); }), weft::usage_error);
  EXPECT_THROW((void)weft::with_timeout(1s, [] { FAIL(); }), weft::usage_error);
}

// ---- how long children live ------------------------------------------------------------------------------------------

// req: W-3 LS-N1
TEST(ScopeChildren, no_child_outlives_its_scope_and_all_may_borrow_what_is_around_it) {
  at_worker_counts_in_a_task([] {
    for (int round = 0; round < 50; ++round) {
      std::array<int, 20> borrowed{};
      weft::with_scope([&](weft::scope& s) {
        for (int& one : borrowed)
          s.spawn([&one] {
            weft::yield();
            weft::yield();
            one = 1;  // the handle is gone, the body has returned: the scope waits
          });
      });
      for (const int one : borrowed) ASSERT_EQ(one, 1);
    }
  });
}

// req: W-3
TEST(ScopeChildren, a_tree_of_scopes_ends_from_its_leaves_to_its_root) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    struct tree {
      base::atomic<int> alive{0};
      base::atomic<int> leaves{0};
      void grow(int depth) {
        ++alive;
        if (depth == 0) {
          weft::yield();
          ++leaves;
        } else {
          const int before = leaves.load();
          weft::with_scope([&](weft::scope& s) {
            for (int i = 0; i < 3; ++i) s.spawn([this, depth] { grow(depth - 1); });
          });
          EXPECT_GE(leaves.load(), before);
        }
        --alive;
      }
    } t;
    rt->run([&] {
      t.grow(5);
      EXPECT_EQ(t.alive.load(), 0);
      EXPECT_EQ(t.leaves.load(), 243);
    });
  });
}

// req: W-3
TEST(ScopeChildren, one_task_may_have_many_scopes_open_inside_of_each_other) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  struct levels {
    static int sum(int depth) {
      if (depth == 0) return 0;
      return weft::with_scope([&](weft::scope& s) {
        auto own = s.spawn([] { return 1; });
        return sum(depth - 1) + own.join();
      });
    }
  };
  EXPECT_EQ(rt->run([] { return levels::sum(60); }), 60);
}

// req: BZ-8 W-3
TEST(ScopeChildren, a_childs_result_can_be_taken_after_the_scope_has_ended) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::child<std::unique_ptr<int>> kept;
    EXPECT_FALSE(kept.joinable());
    weft::with_scope([&](weft::scope& s) { kept = s.spawn([] { return std::make_unique<int>(9); }); });
    ASSERT_TRUE(kept.is_finished());
    EXPECT_EQ(*kept.join(), 9);
  });
}

// req: LS-M1
TEST(ScopeChildren, a_childs_closure_and_unwanted_result_are_destroyed_when_it_ends_not_when_the_scope_does) {
  at_worker_counts_in_a_task([] {
    weft::with_scope([](weft::scope& s) {
      const auto small = std::make_shared<int>(0);
      const std::array<char, 1'000> large{};
      s.spawn([small] { return small; });
      s.spawn([small, large] { return std::pair(small, large); });
      until([&] { return small.use_count() == 1; });
    });
  });
}

// req: LS-M1
TEST(ScopeChildrenNoTsanNoAsan, a_scope_that_never_ends_does_not_grow) {
  support::watchdog guard(110s);
  watched_runtime rt(2);
  rt->run([] {
    weft::with_scope([](weft::scope& s) {
      const std::array<char, 500> large{};
      const auto some = [&](int count) {
        for (int i = 0; i < count; ++i) {
          s.spawn([i] { return i; }).join();
          s.spawn([large] { return large[0]; }).join();
        }
      };
      some(5'000);
      const std::size_t before = support::rss();
      some(100'000);
      EXPECT_LT(support::rss(), before + (std::size_t{4} << 20));
    });
  });
}

// req: LS-N1
TEST(ScopeChildren, the_scope_ends_with_the_last_of_its_children_wherever_that_was_spawned) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    weft::with_scope([&](weft::scope& s) {
      // Each is spawned by the one before, after the body has returned.
      struct link {
        static void spawn(weft::scope& in, base::atomic<int>& count, int left) {
          if (left != 0)
            in.spawn([&in, &count, left] {
              weft::yield();
              spawn(in, count, left - 1);
              ++count;
            });
        }
      };
      link::spawn(s, ended, 200);
    });
    EXPECT_EQ(ended.load(), 200);
  });
}

// req: W-3
TEST(ScopeChildren, attributes_are_those_of_the_child) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::with_scope([](weft::scope& s) {
      EXPECT_EQ(s.spawn({.name = "kid"}, [] { return std::string(weft::this_task::name()); }).join(), "kid");
      EXPECT_THROW(s.spawn(static_cast<void (*)()>(nullptr)), weft::usage_error);
      EXPECT_THROW(s.spawn({.stack_size = 1}, [] {}), std::invalid_argument);
    });
  });
}

// ---- who may spawn, and until when -----------------------------------------------------------------------------------

// req: W-3
TEST(ScopeRef, after_the_end_a_spawn_is_refused_and_the_callable_comes_to_nothing) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    std::optional<weft::scope_ref> kept;
    weft::with_scope([&](weft::scope& s) {
      kept = s.ref();
      EXPECT_EQ(kept->spawn([] { return 2; }).join(), 2);
    });
    const auto captured = std::make_shared<int>(0);
    bool ran = false;
    EXPECT_THROW(kept->spawn([captured, &ran] { ran = true; }), weft::scope_closed);
    EXPECT_EQ(captured.use_count(), 1);
    EXPECT_FALSE(ran);
    EXPECT_FALSE(kept->is_cancelled());
    kept->cancel();
    kept->cancel_after(1ms);
    EXPECT_FALSE(kept->is_cancelled());
    weft::yield();
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: W-3 W-7
TEST(ScopeRef, it_may_outlive_the_runtime) {
  support::watchdog guard(60s);
  std::optional<weft::scope_ref> kept;
  {
    watched_runtime rt(2);
    rt->run([&] { weft::with_scope([&](weft::scope& s) { kept = s.ref(); }); });
  }
  EXPECT_THROW(kept->spawn([] {}), weft::scope_closed);
  kept->cancel();
  EXPECT_FALSE(kept->is_cancelled());
  const weft::scope_ref copy = *kept;
  kept = copy;
  kept.reset();
  watched_runtime another(2);
  another->run([&] { EXPECT_THROW(copy.spawn([] {}), weft::scope_closed); });
}

// req: W-3 W-7
TEST(ScopeRef, outside_threads_and_tasks_of_another_runtime_spawn_into_a_scope_and_cancel_it) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    watched_runtime other(1);
    base::atomic<int> ran{0};
    const bool cut_short = rt->run([&] {
      try {
        weft::with_scope([&](weft::scope& s) {
          support::latch spawned(1);
          std::thread outside([r = s.ref(), &ran, &spawned] {
            for (int i = 0; i < 20; ++i) r.spawn([&] { ++ran; });
            EXPECT_EQ(r.spawn([] { return 4; }).join(), 4);
            spawned.count_down();
          });
          auto foreign = other->spawn([r = s.ref(), &ran] {
            for (int i = 0; i < 20; ++i) r.spawn([&] { ++ran; });
            EXPECT_THROW(r.cancel_after(1s), weft::usage_error);
          });
          until([&] { return foreign.is_finished(); });
          foreign.join();
          spawned.wait();  // its join needs a worker
          outside.join();
          std::thread canceller([r = s.ref()] { r.cancel(); });
          canceller.join();
          wait_for_ever();
        });
      } catch (const weft::scope_cancelled&) {
        return true;
      }
      return false;
    });
    EXPECT_TRUE(cut_short);
    EXPECT_EQ(ran.load(), 40);
  });
}

// Spawners that know the scope only by a reference, while it ends: every spawn is run before the end, or refused.
// req: W-3 LS-N1
TEST(ScopeRef, a_spawn_that_races_the_end_is_accepted_or_refused_and_never_lost) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    const std::size_t rounds = scaled(60);
    std::size_t early = 0;
    for (std::size_t round = 0; round < rounds; ++round) {
      base::atomic<int> accepted{0}, ran{0}, refused{0};
      int ran_at_the_end = -1;
      std::optional<weft::scope_ref> ref;
      base::atomic<bool> known{false}, over{false};
      std::vector<weft::join_handle<void>> spawners;
      const auto spawn_until_refused = [&] {
        until([&] { return known.load(); });
        const weft::scope_ref r = *ref;
        const auto try_one = [&] {
          try {
            r.spawn([&] {
              EXPECT_FALSE(over.load());
              ++ran;
            });
            ++accepted;
            return true;
          } catch (const weft::scope_closed&) {
            ++refused;
            return false;
          }
        };
        // Not for ever: spawned faster than they end, children would keep the scope open.
        for (int i = 0; i < 30 && try_one(); ++i) weft::yield();
        until([&] { return over.load(); });
        EXPECT_FALSE(try_one());
      };
      for (int i = 0; i < 2; ++i) spawners.push_back(rt->spawn(spawn_until_refused));
      std::thread outside(spawn_until_refused);
      rt->run([&] {
        weft::with_scope([&](weft::scope& s) {
          ref = s.ref();
          known = true;
          if (round % 2 == 0) until([&] { return accepted.load() > 3; });
        });
        over = true;
        ran_at_the_end = ran.load();
      });
      outside.join();
      for (auto& h : spawners) h.join();
      ASSERT_GE(refused.load(), 3);
      ASSERT_EQ(ran.load(), accepted.load());
      ASSERT_EQ(ran.load(), ran_at_the_end);
      early += refused.load() > 3 ? 1 : 0;
    }
    std::printf("%zu workers: refused before the spawner had done in %zu of %zu rounds\n", workers, early, rounds);
  });
}

}  // namespace
