// Spawn and join, ten million times: memory does not grow after the first hundred thousand.
// ctest: notsan timeout=280
#include <gtest/gtest.h>

#include <weft/weft.hpp>

#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

void spawn_and_join(std::size_t count) {
  constexpr std::size_t at_once = 100;
  weft::join_handle<std::size_t> handles[at_once];
  for (std::size_t i = 0; i < count; i += at_once) {
    for (std::size_t k = 0; k < at_once; ++k) handles[k] = weft::spawn([k] { return k; });
    for (std::size_t k = 0; k < at_once; ++k)
      if (handles[k].join() != k) ADD_FAILURE() << "somebody else's result";
  }
}

void no_growth(std::size_t workers, std::size_t count) {
  support::watchdog guard(270s, "spawn and join");
  support::watched_runtime rt(workers);
  rt->run([&] {
    spawn_and_join(100'000);
    const std::size_t before = support::rss();
    spawn_and_join(count);
    const std::size_t after = support::rss();
    // Noise of the process around it; one record or stack kept per thousand tasks would be 3 MB and more.
    EXPECT_LE(after, before + (2u << 20)) << workers << " workers, " << count << " tasks";
  });
}

// req: LS-M1 KC-5
TEST(SpawnJoin, ten_million_tasks_on_one_worker_do_not_grow_the_process) { no_growth(1, support::scaled(10'000'000)); }

// req: LS-M1 KC-5
TEST(SpawnJoin, millions_of_tasks_on_two_workers_do_not_grow_the_process) { no_growth(2, support::scaled(5'000'000)); }

}  // namespace
