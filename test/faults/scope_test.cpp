// Scopes, task-locals and stop tokens when memory runs out, at every allocation they make.
// ctest: notsan timeout=300
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "faults/failing_new.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

void settle(weft::runtime& rt) {
  support::until([&] { return rt.statistics().finished == rt.statistics().spawned; });
}

// `life` in a task, once with each of its allocations failing. Afterwards the runtime is as good as new.
template <class Life>
void fails_cleanly_in_a_task(Life life) {
  support::watchdog guard(200s);
  weft::runtime rt({.workers = 2, .elastic = false});
  fails_cleanly_at_every([&] { rt.spawn([&] { life(); }).join(); }, [&] { settle(rt); });
  EXPECT_EQ(rt.run([] { return weft::with_scope([](weft::scope& s) { return s.spawn([] { return 1; }).join(); }); }),
            1);
}

const std::array<char, 1'000> large{};

// req: W-9
TEST(ScopeAllocation, a_scope_that_cannot_be_opened_or_spawned_into_throws_and_leaves_nothing_behind) {
  fails_cleanly_in_a_task([] {
    const int n = weft::with_scope([](weft::scope& s) {
      auto one = s.spawn([copy = large] { return copy[0] + 1; });
      s.spawn([copy = large] { return copy[0]; });
      auto two = s.ref().spawn([copy = large] { return copy[0] + 2; });
      return one.join() + two.join();
    });
    EXPECT_EQ(n, 3);
  });
}

// req: W-9
TEST(ScopeAllocation, a_child_that_cannot_be_spawned_cancels_those_that_were) {
  fails_cleanly_in_a_task([] {
    weft::with_scope([](weft::scope& s) {
      s.cancel_after(1h);
      for (int i = 0; i < 3; ++i)
        s.spawn([copy = large] {
          weft::sleep_for(1h);
          return copy[0];
        });
      s.spawn([&s, copy = large] {
        if (copy[0] == 0) s.cancel();
      });
    });
  });
}

// req: W-9
TEST(ScopeAllocation, a_scope_that_collects_has_room_for_what_its_children_and_its_body_throw) {
  support::watchdog guard(200s);
  weft::runtime rt({.workers = 2, .elastic = false});
  // What is thrown needs no memory, so every bad_alloc that comes out is the scope's own.
  fails_cleanly_at_every(
      [&] {
        rt.spawn([] {
            for (const int children : {0, 1, 5}) {
              std::size_t listed = 0;
              bool gave_up = false;
              try {
                weft::with_scope({.failures = weft::failures::collect}, [&](weft::scope& s) {
                  try {
                    for (int i = 0; i < children; ++i) s.spawn([] { throw 1; });
                  } catch (const std::bad_alloc&) {
                    gave_up = true;
                    throw;
                  }
                  throw 2;
                });
              } catch (const weft::scope_failures& all) {
                listed = all.all().size();
              }
              if (gave_up) throw std::bad_alloc();
              EXPECT_EQ(listed, static_cast<std::size_t>(children) + 1);
            }
          }).join();
      },
      [&] { settle(rt); });
}

// req: W-9 UX-5
TEST(ScopeAllocation, a_group_that_cannot_be_made_or_spawned_into_throws_and_leaves_nothing_behind) {
  fails_cleanly_in_a_task([] {
    std::array<int, 3> borrowed{};
    weft::task_group group;
    group.cancel_after(1h);
    auto one = group.spawn([&, copy = large] { borrowed[0] = copy[0] + 1; });
    group.spawn([&, copy = large] { group.spawn([&, copy] { borrowed[1] = copy[0] + 2; }); });
    one.join();
    group.join();
    group.spawn([&, copy = large] { borrowed[2] = copy[0] + 3; });
    group.join();
    EXPECT_EQ(borrowed[0] + borrowed[1] + borrowed[2], 6);
  });
}

// req: W-9 UX-5
TEST(ScopeAllocation, a_group_that_collects_has_room_for_what_its_children_throw_round_after_round) {
  support::watchdog guard(200s);
  weft::runtime rt({.workers = 2, .elastic = false});
  fails_cleanly_at_every(
      [&] {
        rt.spawn([] {
            weft::task_group group({.failures = weft::failures::collect});
            for (const std::size_t children : {1, 5, 2}) {
              std::size_t listed = 0;
              std::size_t spawned = 0;
              bool gave_up = false;
              try {
                for (; spawned < children; ++spawned) group.spawn([] { throw 1; });
              } catch (const std::bad_alloc&) {
                gave_up = true;
              }
              try {
                group.join();
              } catch (const weft::scope_failures& all) {
                listed = all.all().size();
              }
              EXPECT_EQ(listed, spawned);
              if (gave_up) throw std::bad_alloc();
            }
          }).join();
      },
      [&] { settle(rt); });
}

// req: W-9
TEST(ScopeAllocation, a_binding_that_cannot_be_made_binds_nothing) {
  static const weft::task_local<std::string> local("initial");
  fails_cleanly_in_a_task([] {
    try {
      local.with(std::string(100, 'a'), [] {
        local.with(std::string(100, 'b'), [] {
          weft::spawn([copy = large] { return local->size() + static_cast<std::size_t>(copy[0]); }).join();
        });
        EXPECT_EQ(local->at(0), 'a');
      });
    } catch (...) {
      EXPECT_EQ(*local, "initial");
      throw;
    }
    EXPECT_EQ(*local, "initial");
  });
}

// req: W-9
TEST(ScopeAllocation, stop_tokens_that_cannot_be_had_leave_nothing_behind) {
  fails_cleanly_in_a_task([] {
    const weft::stop_on_cancel first;
    weft::with_scope([](weft::scope& s) {
      const weft::stop_on_cancel second;
      std::stop_source source;
      (void)weft::with_scope({.stop = source.get_token()}, [&](weft::scope&) { return source.request_stop(); });
      s.cancel();
    });
  });
}

// req: W-9
TEST(ScopeAllocation, combinators_that_cannot_run_all_end_those_that_run) {
  fails_cleanly_in_a_task([] {
    const std::vector<std::function<int()>> some(3, [copy = large] {
      weft::yield();
      return copy[0] + 1;
    });
    EXPECT_EQ(weft::join_all(some).size(), 3u);
    EXPECT_EQ(weft::race(some), 1);
    EXPECT_TRUE(weft::with_timeout(1h, [&] { (void)weft::join_all(some[0], some[1]); }));
  });
}

// req: W-9 LS-M1
TEST(ScopeAllocation, a_scope_is_one_allocation_and_its_small_children_none) {
  weft::runtime rt({.workers = 1, .elastic = false});
  rt.run([] {
    const auto life = [](int children) {
      weft::with_scope([&](weft::scope& s) {
        for (int i = 0; i < children; ++i) s.spawn([i] { return i; }).join();
      });
    };
    life(1'000);
    const long before = made.load();
    life(1'000);
    EXPECT_EQ(made.load(), before + 1);
  });
}

// req: W-9 LS-M1 UX-5
TEST(ScopeAllocation, a_group_is_one_allocation_its_rounds_and_its_small_children_none) {
  weft::runtime rt({.workers = 1, .elastic = false});
  rt.run([] {
    const auto life = [] {
      weft::task_group group;
      for (int i = 0; i < 100; ++i) {
        for (int k = 0; k < 10; ++k) group.spawn([k] { return k; });
        group.join();
      }
    };
    life();
    const long before = made.load();
    life();
    EXPECT_EQ(made.load(), before + 1);
  });
}

}  // namespace
