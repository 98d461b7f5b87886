// A million parked children of one scope, cancelled, and the memory afterwards.
// ctest: notsan noasan serial timeout=280
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// req: W-3 W-2 LS-M1
TEST(ScopeMillion, parked_children_are_cancelled_all_end_and_their_memory_goes_back) {
  support::watchdog guard(270s, "a million cancelled children");
  constexpr std::size_t count = 1'000'000;
  if (support::available_memory() < count * (weft::base::checked_build ? 10'500 : 6'500))
    GTEST_SKIP() << "not enough memory on this machine";
  constexpr std::size_t cache = std::size_t{16} << 20;
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = cache});
  rt->run([] {});
  const std::size_t start = support::rss();
  weft::base::atomic<std::size_t> parked{0}, unwound{0};
  const weft::base::atomic<bool> never{false};
  std::chrono::steady_clock::time_point cancelled;
  rt->run([&] {
    EXPECT_THROW(weft::with_scope([&](weft::scope& s) {
                   for (std::size_t i = 0; i < count; ++i)
                     s.spawn([&] {
                       struct tally {
                         weft::base::atomic<std::size_t>& unwound;
                         ~tally() { unwound.fetch_add(1, weft::base::relaxed); }
                       } const t{unwound};
                       parked.fetch_add(1, weft::base::relaxed);
                       for (;;) weft::park_if(never, false);
                     });
                   support::until([&] { return parked.load() == count; }, 200s);
                   cancelled = std::chrono::steady_clock::now();
                   s.cancel();
                   weft::yield();
                 }),
                 weft::scope_cancelled);
    EXPECT_EQ(unwound.load(), count);
  });
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - cancelled;
  std::printf("%zu cancelled: %.0f ns each\n", count, took.count() / count);
  // The idle trim gives the rest back.
  const std::size_t limit = start + start / 20 + cache;
  support::until([&] { return support::rss() <= limit; }, 60s);
}

}  // namespace
