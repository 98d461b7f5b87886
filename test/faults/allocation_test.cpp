// The runtime when memory runs out, at every allocation it makes.
// ctest: notsan timeout=300
#include <gtest/gtest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "faults/failing_new.hpp"
#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// A worker lets go of what a task had a moment after its joiner has gone on.
void settle(weft::runtime& rt) {
  support::until([&] { return rt.statistics().finished == rt.statistics().spawned; });
}

// req: W-9
TEST(Allocation, a_runtime_that_cannot_be_made_leaves_nothing_behind) {
  support::watchdog guard(200s);
  const std::size_t threads = support::threads();
  for (const std::size_t workers : {1, 4, 70})
    fails_cleanly_at_every(
        [&] {
          weft::runtime rt({.workers = workers, .on_unhandled_exception = [](std::string_view, std::exception_ptr) {}});
        },
        [] {});
  EXPECT_EQ(support::threads(), threads);
}

// req: W-9
TEST(Allocation, a_spawn_that_cannot_be_made_throws_and_the_runtime_goes_on) {
  support::watchdog guard(200s);
  weft::runtime rt({.workers = 2, .elastic = false});
  const std::array<char, 1'000> large{};
  fails_cleanly_at_every(
      [&] {
        for (int i = 0; i < 5; ++i) rt.spawn([large] { return large[0]; }).join();
        rt.run([&] {
          for (int i = 0; i < 5; ++i) weft::spawn([large] { return large[0]; }).join();
        });
      },
      [&] { settle(rt); });
  EXPECT_EQ(rt.run([] { return 1; }), 1);
  rt.shutdown();
  EXPECT_EQ(rt.statistics().spawned, rt.statistics().finished);
}

// req: W-9
TEST(Allocation, failures_inside_of_tasks_are_theirs_to_deliver) {
  support::watchdog guard(200s);
  weft::runtime rt({.workers = 2, .elastic = false});
  fails_cleanly_at_every(
      [&] {
        auto h = rt.spawn([] {
          std::vector<int> mine(100);
          auto inner = weft::spawn([] {
            weft::yield();
            return std::string(100, 'x');
          });
          mine.resize(1'000);
          return inner.join().size() + mine.size();
        });
        EXPECT_EQ(h.join(), 1'100u);
      },
      [&] { settle(rt); });
}

// req: W-9
TEST(Allocation, spawns_that_fail_give_their_records_back) {
  support::watchdog guard(60s);
  weft::runtime rt({.workers = 2, .elastic = false});
  const std::array<char, 1'000> large{};
  const auto fails = [&](auto spawn) {
    for (int i = 0; i < 10'000; ++i) {
      until_failure = 0;
      bool refused = false;
      try {
        (void)spawn([large] { return large[0]; });
      } catch (const std::bad_alloc&) {
        refused = true;
      }
      until_failure = -1;
      ASSERT_TRUE(refused);
    }
  };
  fails([&](auto f) { return rt.spawn(f); });
  rt.run([&] { fails([](auto f) { return weft::spawn(f); }); });
  EXPECT_LE(weft::sched::core_of(rt).records().slab_count(), 4u);
}

// req: W-9 LS-M1
TEST(Allocation, spawning_and_joining_a_small_closure_allocates_nothing) {
  weft::runtime rt({.workers = 1, .elastic = false});
  rt.run([] {
    for (int i = 0; i < 1'000; ++i) weft::spawn([i] { return i; }).join();
    const long before = made.load();
    for (int i = 0; i < 10'000; ++i) weft::spawn([i] { return i; }).join();
    EXPECT_EQ(made.load(), before);
  });
}

}  // namespace
