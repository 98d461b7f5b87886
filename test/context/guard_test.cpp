// ctest: timeout=300
#include "context/guard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "context/failing_memory.hpp"
#include "context/process.hpp"
#include "context/stack.hpp"

namespace {

using namespace weft::context;
using testing::HasSubstr;
using weft_test::failing_memory;
using weft_test::fault_probe;

constexpr std::size_t guard_size = 64 << 10;

class with_guard {
 public:
  explicit with_guard(const char* kind) { setenv("WEFT_GUARD", kind, 1); }
  ~with_guard() { unsetenv("WEFT_GUARD"); }
  with_guard(const with_guard&) = delete;
  with_guard& operator=(const with_guard&) = delete;
};

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// The whole guard traps, the stack above it does not.
void expect_guarded(fault_probe& probe, const stack& s) {
  EXPECT_TRUE(probe.faults(s.base - 1));
  EXPECT_TRUE(probe.faults(s.base - guard_size / 2));
  EXPECT_TRUE(probe.faults(s.base - guard_size));
  EXPECT_FALSE(probe.faults(s.base + canary_size));
  EXPECT_FALSE(probe.faults(s.base + s.size - 1));
}

class EveryGuard : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Guard, EveryGuard, testing::Values("madvise", "mprotect"),
                         [](const auto& each) { return std::string(each.param); });

// req: KC-10
TEST_P(EveryGuard, traps_below_every_stack_and_survives_reuse_and_trim) {
  with_guard kind(GetParam());
  stack_pool pool({.cache_bytes = 0});
  fault_probe probe;
  std::vector<stack*> held;
  for (int i = 0; i < 100; ++i) held.push_back(i % 3 == 0 ? pool.acquire(smallest_stack) : pool.acquire());
  for (stack* chain = pool.acquire_batch(100); chain != nullptr; chain = chain->next) held.push_back(chain);
  ASSERT_EQ(held.size(), 200u);
  for (stack* s : held) expect_guarded(probe, *s);
  for (std::size_t i = 1; i < held.size(); ++i) pool.release(held[i]);
  EXPECT_GT(pool.trim(), 0u);
  expect_guarded(probe, *held[0]);
  for (std::size_t i = 1; i < held.size(); ++i) held[i] = pool.acquire();
  for (stack* s : held) expect_guarded(probe, *s);
  for (stack* s : held) pool.release(s);
}

// req: W-2
TEST(Guard, a_million_live_stacks_are_guarded_without_a_mapping_each_NoAsan_NoTsan) {
  stack_pool pool({.canary = false});
  fault_probe probe;
  constexpr std::size_t count = 1'000'000, batch = 250;
  std::vector<stack*> held;
  held.reserve(count);
  const std::size_t mappings_before = weft_test::mappings();
  const std::size_t rss_before = weft_test::status_kib("VmRSS:");
  for (std::size_t i = 0; i < count; i += batch) {
    stack* chain = pool.acquire_batch(batch);
    for (; chain != nullptr; chain = chain->next) held.push_back(chain);
    ASSERT_EQ(held.size(), i + batch);
  }
  EXPECT_EQ(pool.in_use(), count);
  for (std::size_t i = 0; i < count; i += 100) *(static_cast<std::byte*>(held[i]->top()) - 1) = std::byte{1};
  EXPECT_LT(weft_test::mappings(), mappings_before + 1000);
  for (std::size_t i = 0; i < count; i += 997) {
    ASSERT_TRUE(probe.faults(held[i]->base - 1)) << i;
    ASSERT_TRUE(probe.faults(held[i]->base - guard_size)) << i;
  }
  std::printf("a million stacks: VmRSS +%zu KiB, VmPTE %zu KiB, %zu mappings\n",
              weft_test::status_kib("VmRSS:") - rss_before, weft_test::status_kib("VmPTE:"), weft_test::mappings());
  for (stack* s : held) pool.release(s);
  EXPECT_GT(pool.trim(), 0u);
  pool.verify();
  EXPECT_LT(weft_test::status_kib("VmPTE:"), 64u << 10) << "page tables go with the regions";
  EXPECT_LT(weft_test::status_kib("VmRSS:"), rss_before + (16u << 10) + count * sizeof(stack*) / 1024);
}

// req: W-2
TEST(Guard, an_older_kernel_is_noticed_and_said_once) {
  failing_memory memory;
  failing_memory::no_guard_install = true;
  testing::internal::CaptureStderr();
  stack_pool pool, other;
  std::vector<stack*> held;
  for (int i = 0; i < 10; ++i) held.push_back(pool.acquire());
  stack* elsewhere = other.acquire();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("guarded by mprotect"));
  EXPECT_EQ(count_lines(said), 1u) << said;
  fault_probe probe;
  for (stack* s : held) expect_guarded(probe, *s);
  expect_guarded(probe, *elsewhere);
  for (stack* s : held) pool.release(s);
  other.release(elsewhere);
}

// req: W-2
TEST(Guard, mprotect_stops_below_max_map_count_and_says_that_only_a_canary_is_left) {
  with_guard kind("mprotect");
  std::size_t limit = 65530;
  if (std::FILE* f = std::fopen("/proc/sys/vm/max_map_count", "re")) {
    ASSERT_EQ(std::fscanf(f, "%zu", &limit), 1);
    std::fclose(f);
  }
  if (limit > 200'000) GTEST_SKIP() << "vm.max_map_count is too large to be reached here";
  testing::internal::CaptureStderr();
  std::size_t guarded = 0;
  {
    stack_pool pool({.canary = false});
    std::vector<stack*> held;
    for (std::size_t i = 0; i < limit / 3 + 1000; ++i) {
      held.push_back(pool.acquire(smallest_stack));
      ASSERT_NE(held.back(), nullptr);
      guarded += held.back()->guard == guard_kind::mprotect;
    }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("only a canary"));
    EXPECT_EQ(count_lines(said), 1u) << said;
    EXPECT_LE(weft_test::mappings(), limit * 2 / 3 + 1000) << "a third is for the rest of the process";
    EXPECT_TRUE(held.back()->canary) << "in every build";
    EXPECT_EQ(held.back()->guard, guard_kind::none);
    for (stack* s : held) pool.release(s);
  }
  EXPECT_EQ(guarded, limit / 3);
  stack_pool later;
  stack* s = later.acquire();
  EXPECT_EQ(s->guard, guard_kind::mprotect) << "a pool that ended gives its share back";
  later.release(s);
}

TEST(Guard, an_unknown_WEFT_GUARD_is_said_once_and_ignored) {
  stack_pool usual;
  usual.release(usual.acquire());  // an older kernel is noticed now
  with_guard kind("concrete");
  testing::internal::CaptureStderr();
  stack_pool pool, other;
  stack* s = pool.acquire();
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(pool.guards(), usual.guards());
  EXPECT_THAT(said, HasSubstr("WEFT_GUARD=concrete"));
  EXPECT_EQ(count_lines(said), 1u) << said;
  fault_probe probe;
  expect_guarded(probe, *s);
  pool.release(s);
}

// req: W-9
TEST(Guard, one_system_call_guards_a_batch) {
  failing_memory memory;
  stack_pool pool;
  stack* chain = pool.acquire_batch(32);
  EXPECT_EQ(failing_memory::guard_installs, 32);
  EXPECT_LE(failing_memory::calls, 10) << "map, map, NOHUGEPAGE, one for all guards";
  pool.release_batch(chain);
}

// req: KC-10
TEST(GuardDeathTest, a_damaged_canary_is_reported_on_release_with_the_size) {
  with_guard kind("none");
  stack_pool pool;
  stack* s = pool.acquire();
  ASSERT_NE(s, nullptr);
  EXPECT_EQ(s->guard, guard_kind::none);
  EXPECT_TRUE(s->canary);
  s->base[canary_size] = std::byte{1};  // the stack proper
  pool.release(s);
  s = pool.acquire();
  EXPECT_DEATH(
      {
        s->base[canary_size - 1] = std::byte{0};
        pool.release(s);
      },
      "stack overflow in task .*192 KiB");
  pool.release(s);
}

TEST(GuardDeathTest, a_canary_is_written_again_after_trim) {
  stack_pool pool({.cache_bytes = 0, .canary = true});
  stack *s = pool.acquire(), *pinned = pool.acquire();
  pool.release(s);
  EXPECT_EQ(pool.trim(), default_stack);
  s = pool.acquire();
  pool.release(s);  // dies if the canary is zeros
  pool.release(pinned);
}

}  // namespace
