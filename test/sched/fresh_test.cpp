// Tasks that have not run yet, beside others that always have something to do: they wait some turns, not until all are idle.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// Spawns `fresh` tasks while others have their turns, `*turns` of them so far, and says how many came before each.
std::vector<std::size_t> turns_before(int fresh, const std::size_t& turns) {
  std::vector<std::size_t> waited;
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < fresh; ++i)
    all.push_back(weft::spawn([&waited, &turns, since = turns] { waited.push_back(turns - since); }));
  for (auto& t : all) t.join();
  return waited;
}

// What yields or is woken goes before what was never started, but only so often.
constexpr std::size_t most_turns_each = 40;

// req: BZ-1 CC-1
TEST(Fresh, ATaskStartsSoonBesideOthersThatYield) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "new tasks beside 50 that yield");
  support::watched_runtime rt(1);
  rt->run([] {
    bool over = false;
    std::size_t turns = 0;
    int started = 0;
    std::vector<weft::join_handle<void>> busy;
    for (int i = 0; i < 50; ++i)
      busy.push_back(weft::spawn([&] {
        ++started;
        while (!over) {
          ++turns;
          weft::yield();
        }
      }));
    while (started != 50) weft::yield();
    EXPECT_LE(turns, 50 * most_turns_each) << "until all 50 had started";
    for (const std::size_t waited : turns_before(1, turns)) EXPECT_LE(waited, most_turns_each);
    for (const std::size_t waited : turns_before(20, turns)) EXPECT_LE(waited, 20 * most_turns_each);
    over = true;
    for (auto& t : busy) t.join();
  });
}

// req: BZ-1 CC-1
TEST(Fresh, ATaskStartsSoonBesideAPairThatWakesEachOther) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "new tasks beside pairs over channels");
  for (const int pairs : {1, 2, 5}) {
    support::watched_runtime rt(1);
    rt->run([pairs] {
      bool over = false;
      std::size_t turns = 0;
      std::vector<weft::join_handle<void>> busy;
      for (int i = 0; i < pairs; ++i) {
        auto [to, from] = weft::make_channel<int>(0);
        auto [back_to, back_from] = weft::make_channel<int>(0);
        busy.push_back(weft::spawn([&over, &turns, out = std::move(to), in = std::move(back_from)]() mutable {
          while (!over) {
            (void)out.send(1);
            (void)in.recv();
            ++turns;
          }
        }));
        busy.push_back(weft::spawn([in = std::move(from), out = std::move(back_to)]() mutable {
          while (in.recv()) (void)out.send(1);
        }));
      }
      weft::yield();
      for (int round = 0; round < 10; ++round)
        for (const std::size_t waited : turns_before(1, turns)) EXPECT_LE(waited, most_turns_each) << pairs;
      over = true;
      for (auto& t : busy) t.join();
    });
  }
}

// Though new ones are spawned all the time.
// req: BZ-1 CC-1
TEST(Fresh, TheOldestIsNotForgotten) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "an old task behind new ones");
  support::watched_runtime rt(1);
  rt->run([] {
    for (int again = 0; again < 3; ++again) {
      bool old_ran = false;
      auto old = weft::spawn([&] { old_ran = true; });
      for (int turns = 0; !old_ran && turns < 300'000; ++turns) {
        bool new_ran = false;
        auto newer = weft::spawn([&] { new_ran = true; });
        while (!new_ran) weft::yield();
        newer.join();
      }
      EXPECT_TRUE(old_ran);
      old.join();
    }
  });
}

// Nor do fresh ones keep what comes from outside, or was put into the global queue, from being run: with tasks so long that a tick
// lasts a millisecond, when an old one may have its turn at each.
// req: BZ-6
TEST(Fresh, TasksThatNeverEndComingDoNotKeepTheInboxAndTheGlobalQueueWaiting) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks do not stay in a queue of this worker";
  support::watchdog guard(60s, "fresh tasks of 150 us, and others");
  support::watched_runtime rt(1);
  weft::base::atomic<bool> over{false};
  const auto take_a_while = [] {
    const auto until = std::chrono::steady_clock::now() + 150us;
    while (std::chrono::steady_clock::now() < until) weft::base::cpu_relax();
  };
  auto producer = rt->spawn([&] {
    while (!over.load()) {
      for (int i = 0; i < 3; ++i) weft::spawn(take_a_while).detach();
      take_a_while();
      weft::yield();
    }
  });
  for (int i = 0; i < 3; ++i) {
    support::until([&] { return rt.core().workers()[0]->queued() > 20; });
    rt->spawn([] {}).join();  // through the inbox; the overflow of its queues is in the global one
  }
  over.store(true);
  producer.join();
}

}  // namespace
