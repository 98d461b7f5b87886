// A million parked fibers with a guarded stack each, and the memory afterwards.
// ctest: notsan noasan serial timeout=280
#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// req: W-2 KC-5 LS-M1
TEST(Million, fibers_park_are_released_and_their_memory_goes_back) {
  support::watchdog guard(270s, "a million parked fibers");
  constexpr std::size_t count = 1'000'000;
  // Checked builds touch a second page of each stack for its canary; page tables come on top.
  if (support::available_memory() < count * (weft::base::checked_build ? 10'500 : 6'500))
    GTEST_SKIP() << "not enough memory on this machine";
  constexpr std::size_t cache = std::size_t{16} << 20;
  support::watched_runtime rt({.workers = 2, .stack_cache_bytes = cache});
  std::vector<weft::join_handle<void>> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.emplace_back();  // its pages belong to the start
  rt->run([] {});
  const std::size_t start = support::rss();
  const std::size_t mappings_at_start = support::mappings();
  weft::base::atomic<bool> go{false};
  weft::base::atomic<std::size_t> parked{0};
  weft::base::atomic<std::size_t> ran{0};
  rt->run([&] {
    for (auto& h : all)
      h = weft::spawn([&] {
        parked.fetch_add(1, weft::base::relaxed);
        while (!go.load()) weft::park_if(go, false);
        ran.fetch_add(1, weft::base::relaxed);
      });
  });
  support::until([&] { return parked.load() == count; }, 200s);
  support::until([&] { return rt.core().idle().sleeping() == 2; });
  const std::size_t full = support::rss();
  std::printf("%zu parked: %.0f bytes of RSS each, VmPTE %zu KiB, %zu mappings more\n", count,
              static_cast<double>(full - start) / count, support::status("VmPTE"),
              support::mappings() - mappings_at_start);
  EXPECT_LT(support::mappings(), 30'000u) << "far below the default vm.max_map_count of 65530";
  go.store(true);
  rt->run([&] {
    for (auto& h : all) h.ref().unpark();
    for (auto& h : all) h.join();
  });
  EXPECT_EQ(ran.load(), count);
  // The idle trim gives the rest back.
  const std::size_t limit = start + start / 20 + cache;
  support::until([&] { return support::rss() <= limit; }, 60s);
}

}  // namespace
