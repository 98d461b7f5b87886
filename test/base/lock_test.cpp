#include "base/lock.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using weft::base::lock;
using weft::base::lock_guard;

// req: LS-O1
TEST(Lock, only_one_thread_is_inside_and_sees_what_the_one_before_wrote) {
  support::watchdog guard(60s, "threads at one lock");
  lock l;
  long plain = 0;  // not atomic: only the lock orders the additions
  const std::size_t each = support::scaled(100'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (std::size_t i = 0; i < each; ++i) {
        lock_guard hold(l);
        ++plain;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(plain, static_cast<long>(4 * each));
}

// req: LS-O1
TEST(Lock, a_sleeper_behind_a_long_holder_is_woken) {
  support::watchdog guard(60s, "a sleeper at a lock");
  lock l;
  weft::base::atomic<int> entered{0};
  l.acquire();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      lock_guard hold(l);
      entered.fetch_add(1);
    });
  std::this_thread::sleep_for(5ms);  // not needed for the result; lets them reach the futex
  EXPECT_EQ(entered.load(), 0);
  l.release();
  for (auto& t : threads) t.join();
  EXPECT_EQ(entered.load(), 3);
}

// req: LS-O1
TEST(Lock, try_acquire_succeeds_only_on_a_free_lock) {
  lock l;
  EXPECT_TRUE(l.try_acquire());
  EXPECT_FALSE(l.try_acquire());
  l.release();
  EXPECT_TRUE(l.try_acquire());
  l.release();
}

// req: CSP-6
TEST(Lock, may_be_released_by_another_thread_than_the_one_that_took_it) {
  lock l;
  l.acquire();
  std::thread([&] { l.release(); }).join();
  EXPECT_TRUE(l.try_acquire());
  l.release();
}

// req: LS-T2
TEST(Lock, may_be_destroyed_as_soon_as_the_last_holder_has_released_it) {
  support::watchdog guard(60s, "locks destroyed after release");
  const std::size_t rounds = support::scaled(3'000);
  for (std::size_t i = 0; i < rounds; ++i) {
    struct shared {
      lock l;
      bool done = false;
    };
    auto* s = new shared;
    s->l.acquire();
    std::thread other([s] {
      // Waits for its turn, then frees the lock the other one has just released.
      s->l.acquire();
      s->l.release();
      delete s;
    });
    s->l.release();
    other.join();
  }
}

// req: LS-S
TEST(Lock, checked_builds_count_the_locks_of_a_thread) {
  if (!weft::base::checked_build) GTEST_SKIP() << "counted in checked builds";
  lock a;
  lock b;
  EXPECT_EQ(weft::base::locks_held(), 0);
  a.acquire();
  EXPECT_TRUE(b.try_acquire());
  EXPECT_EQ(weft::base::locks_held(), 2);
  std::thread([] { EXPECT_EQ(weft::base::locks_held(), 0); }).join();
  std::thread waits([&a] {
    a.acquire();
    EXPECT_EQ(weft::base::locks_held(), 1) << "one that was waited for counts as well";
    a.release();
    EXPECT_EQ(weft::base::locks_held(), 0);
  });
  support::until([] { return support::others_sleep(); });
  a.release();
  waits.join();
  b.release();
  EXPECT_EQ(weft::base::locks_held(), 0);
}

}  // namespace
