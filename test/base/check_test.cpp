#include "base/check.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "base/static_init.hpp"
#include "support/process.hpp"

namespace {

namespace base = weft::base;

// req: LS-S
TEST(CheckDeathTest, a_mistake_of_the_caller_aborts_in_every_build_and_says_where) {
  base::require(true, "never said");
  EXPECT_DEATH(base::require(false, "what went wrong"), "weft: what went wrong\n.*check_test.cpp:");
}

// req: LS-S
TEST(CheckDeathTest, an_invariant_is_checked_in_checked_builds_only) {
  base::invariant(true, "never said");
  if (base::checked_build)
    EXPECT_DEATH(base::invariant(false, "broken"), "weft: broken\n.*check_test.cpp:");
  else
    base::invariant(false, "broken");
}

int initialized_while_counted() {
  static const int running = base::static_initializers_running();
  return running;
}

// req: LS-S
TEST(Check, initializers_of_function_local_statics_are_counted) {
  if (!base::checked_build || support::under_asan || support::under_tsan)
    GTEST_SKIP() << "counted in checked builds only";
  EXPECT_EQ(base::static_initializers_running(), 0);
  EXPECT_EQ(initialized_while_counted(), 1);
  EXPECT_EQ(base::static_initializers_running(), 0);
}

// req: KC-3
TEST(Random, reaches_every_victim_and_no_other) {
  for (const std::uint32_t limit : {1u, 2u, 3u, 8u, 130u}) {
    base::random r(7);
    std::vector<int> seen(limit, 0);
    for (std::uint32_t i = 0; i < 100 * limit; ++i) ++seen.at(r.below(limit));
    for (const int n : seen) EXPECT_GT(n, 20) << limit << " victims";
  }
}

// req: KC-3
TEST(Random, workers_with_different_seeds_look_at_different_victims) {
  base::random a(1);
  base::random b(2);
  int same = 0;
  for (int i = 0; i < 1000; ++i) same += a.below(1000) == b.below(1000);
  EXPECT_LT(same, 20);
}

}  // namespace
