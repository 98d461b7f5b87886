// What the tests of deadlocks share: programs that run in a child process.
#pragma once

#include <gmock/gmock.h>

#include "support/child_process.hpp"
#include "support/usual.hpp"

namespace deadlocks {

using namespace support::usual;
using support::ended;
using support::in_child;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

inline constexpr int deadlock_code = 124;

// TSan has a thread of its own.
inline weft::runtime_options usual_options(std::size_t workers = 2) {
  return {.workers = workers, .alone = support::under_tsan};
}

template <class F>
ended run_in_child(F f, std::size_t workers = 2) {
  return in_child([=] { (void)weft::run(usual_options(workers), f); });
}

// The bound of CC-15 is a second, on a machine that has nothing else to do.
#define EXPECT_DEADLOCK(e)                              \
  EXPECT_EQ((e).code, deadlock_code) << (e).said;       \
  EXPECT_THAT((e).said, HasSubstr("weft: DEADLOCK: ")); \
  EXPECT_LT((e).took, 9s)

#define EXPECT_NO_REPORT(e)           \
  EXPECT_EQ((e).code, 0) << (e).said; \
  EXPECT_EQ((e).said, "")

}  // namespace deadlocks
