// Where a task must not suspend; checked builds say so instead of hanging some day.
#include <gtest/gtest.h>

#include <weft/weft.hpp>

#include "base/check.hpp"
#include "base/lock.hpp"
#include "base/static_init.hpp"
#include "support/death_test.hpp"
#include "wait/semaphore.hpp"

namespace {

using namespace std::chrono_literals;
namespace base = weft::base;

class SuspensionDeathTest : public support::threadsafe_death_test {
 protected:
  void SetUp() override {
    threadsafe_death_test::SetUp();
    if (!base::checked_build) GTEST_SKIP() << "only checked builds look";
  }
};
using SuspensionNoTsanNoAsanDeathTest = SuspensionDeathTest;  // sanitizers have __cxa_guard_acquire to themselves

int slow_to_make() {
  weft::sleep_for(1ms);
  return 1;
}

// req: W-1
TEST_F(SuspensionNoTsanNoAsanDeathTest, suspending_in_the_initializer_of_a_local_static_is_reported) {
  EXPECT_DEATH(weft::run({.workers = 1},
                         [] {
                           static const int made = slow_to_make();
                           (void)made;
                         }),
               "suspends inside the initializer of a function-local static(.|\n)*Initialize it before(.|\n)*"
               "suspension_test.cpp");
}

// req: W-1
TEST_F(SuspensionNoTsanNoAsanDeathTest, yielding_in_the_initializer_of_a_local_static_is_reported) {
  EXPECT_DEATH(weft::run({.workers = 1},
                         [] {
                           static const int made = (weft::yield(), 1);
                           (void)made;
                         }),
               "suspends inside the initializer of a function-local static");
}

// req: W-1
TEST(Suspension, an_initializer_that_does_not_suspend_or_that_threw_is_fine) {
  weft::run({.workers = 2}, [] {
    static const int made = [] { return 3; }();
    EXPECT_EQ(made, 3);
    struct throws {
      throws() { throw 1; }
    };
    try {
      static const throws never;
    } catch (int) {}
    EXPECT_EQ(base::static_initializers_running(), 0);
    weft::yield();
    weft::sleep_for(1ms);
  });
}

// req: W-1
TEST_F(SuspensionDeathTest, parking_with_an_internal_lock_held_is_reported) {
  EXPECT_DEATH(weft::run({.workers = 1},
                         [] {
                           base::lock l;
                           base::lock_guard hold(l);
                           weft::sleep_for(1ms);
                         }),
               "suspends while it holds one of Weft's internal locks(.|\n)*suspension_test.cpp");
}

// req: W-1
TEST_F(SuspensionDeathTest, yielding_joining_and_park_if_with_an_internal_lock_held_are_reported) {
  const auto with_lock = [](auto suspend) {
    weft::run({.workers = 1}, [suspend] {
      base::lock l;
      base::lock_guard hold(l);
      suspend();
    });
  };
  EXPECT_DEATH(with_lock([] { weft::yield(); }), "internal locks(.|\n)*suspension_test.cpp");
  EXPECT_DEATH(with_lock([] { weft::spawn([] {}).join(); }), "internal locks");
  EXPECT_DEATH(with_lock([] {
                 base::atomic<bool> closed{true};
                 weft::park_if(closed, true);
               }),
               "internal locks");
}

// req: W-1
TEST(Suspension, the_lock_of_the_object_waited_for_travels_with_the_switch_and_is_not_counted_against_anybody) {
  weft::run({.workers = 2}, [] {
    weft_test::semaphore s;
    auto h = weft::spawn([&] {
      for (int i = 0; i < 1000; ++i) {
        s.post();
        weft::yield();
      }
    });
    for (int i = 0; i < 1000; ++i) {
      EXPECT_EQ(s.take(), weft::waits::outcome::completed);
      EXPECT_EQ(base::locks_held(), 0);
    }
    h.join();
  });
}

}  // namespace
