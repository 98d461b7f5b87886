#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "base/atomic.hpp"
#include "base/clock.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
namespace base = weft::base;

// req: BZ-5
TEST(Futex, does_not_sleep_when_the_word_has_changed) {
  support::watchdog guard(60s, "a futex whose word differs");
  base::atomic<std::uint32_t> word{1};
  base::futex_wait(word, 0);
}

// req: BZ-5
TEST(Futex, a_wake_ends_the_sleep) {
  support::watchdog guard(60s, "a futex that is woken");
  base::atomic<std::uint32_t> word{0};
  std::thread sleeper([&] {
    while (word.load() == 0) base::futex_wait(word, 0);
  });
  word.store(1);
  base::futex_wake(&word, 1);
  sleeper.join();
}

// req: BZ-11
TEST(Futex, the_deadline_ends_the_sleep_and_not_earlier) {
  support::watchdog guard(60s, "a futex with a deadline");
  base::atomic<std::uint32_t> word{0};
  const base::time_ns deadline = base::now() + 20'000'000;
  while (base::now() < deadline) base::futex_wait(word, 0, deadline);
  base::futex_wait(word, 0, base::now() - 1'000'000'000);
  base::futex_wait(word, 0, -5);
}

// req: W-1
TEST(Futex, leaves_errno_alone) {
  base::atomic<std::uint32_t> word{1};
  errno = 4711;
  base::futex_wait(word, 0);  // EAGAIN inside
  EXPECT_EQ(errno, 4711);
  base::futex_wait(word, 1, base::now() - 1);  // ETIMEDOUT inside
  EXPECT_EQ(errno, 4711);
  base::futex_wake(&word, 1);
  EXPECT_EQ(errno, 4711);
}

}  // namespace
