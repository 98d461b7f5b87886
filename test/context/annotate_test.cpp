// The sanitizers must follow every switch; these tests say something in the asan and tsan builds, little in the others.
#include "context/annotate.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "context/fiber.hpp"
#include "context/process.hpp"

namespace {

using namespace weft::context;
using weft_test::borrowed_stack;
using weft_test::fiber;

#if !defined(WEFT_ASAN) && !defined(WEFT_TSAN)
static_assert(std::is_empty_v<flow>, "free in plain builds");
static_assert(stacks_may_be_shared);
#elif defined(WEFT_TSAN)
static_assert(!stacks_may_be_shared);
#endif

// ASan complains on stderr when a throw finds it on a stack it does not know.
TEST(Annotate, a_throw_in_a_flow_finds_the_sanitizer_on_the_right_stack) {
  stack_pool pool;
  borrowed_stack on(pool);
  int caught = 0;
  fiber f(*on, [&](fiber& self) {
    for (int i = 0; i < 10; ++i) {
      volatile char buffer[256];
      std::memset(const_cast<char*>(buffer), i, sizeof buffer);
      try {
        throw std::runtime_error("x");
      } catch (const std::runtime_error&) {
        ++caught;
      }
      self.suspend();
    }
  });
  testing::internal::CaptureStderr();
  while (!f.done()) {
    f.resume();
    try {
      throw 1;
    } catch (int) {}
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(caught, 10);
}

// A flow that ends by switching away leaves red zones in the shadow of its stack; the next one must not run into them.
TEST(Annotate, a_stack_is_as_new_for_the_next_flow) {
  stack_pool pool;
  borrowed_stack on(pool);
  constexpr std::size_t in_use = 16 << 10;  // of the second flow itself
  for (int round = 0; round < 50; ++round) {
    {
      fiber f(*on, [round](fiber& self) {
        [[maybe_unused]] volatile char large[40'000];
        large[round] = 1;
        self.suspend();
      });
      f.resume();  // left in the middle of its frame, never to return
    }
    fiber g(*on, [&](fiber&) { std::memset(on->base + 64, 0, on->size - 64 - in_use); });
    g.resume();
    EXPECT_TRUE(g.done());
  }
}

TEST(Annotate, flows_that_hand_data_to_each_other_and_to_other_threads_are_no_race) {
  stack_pool pool;
  std::vector<int> shared;  // guarded by nothing but the order of the switches
  borrowed_stack one(pool), two(pool);
  fiber second(*two, [&](fiber& self) {
    for (;;) {
      shared.push_back(2);
      self.suspend();
    }
  });
  fiber first(*one, [&](fiber& self) {
    for (;;) {
      shared.push_back(1);
      second.resume_from(self.on().annotations);
      self.suspend();
    }
  });
  for (int i = 0; i < 100; ++i) std::thread([&] { first.resume(); }).join();
  EXPECT_EQ(shared.size(), 200u);
}

TEST(Annotate, the_sanitizer_lets_go_of_flows_that_ended) {
  stack_pool pool;
  borrowed_stack on(pool);
  int ran = 0;
  flow thread;
  thread.adopt_thread();
  const auto run_many = [&](int flows) {
    for (int i = 0; i < flows; ++i) {
      fiber f(*on, [&](fiber&) { ++ran; });
      f.resume_from(thread);
    }
  };
  run_many(1'000);
  const std::size_t before = weft_test::status_kib("VmRSS:");
  run_many(20'000);
  EXPECT_EQ(ran, 21'000);
  EXPECT_LT(weft_test::status_kib("VmRSS:"), before + (20 << 10));  // TSan needs some 20 KiB for each that it knows
}

#if defined(WEFT_TSAN)
TEST(Annotate, tsan_knows_which_flow_runs) {
  stack_pool pool;
  borrowed_stack on(pool);
  void* const outside = __tsan_get_current_fiber();
  void* inside = nullptr;
  fiber f(*on, [&](fiber& self) {
    inside = __tsan_get_current_fiber();
    self.suspend();
    EXPECT_EQ(__tsan_get_current_fiber(), inside);
  });
  f.resume();
  EXPECT_NE(inside, outside);
  EXPECT_EQ(__tsan_get_current_fiber(), outside);
  f.resume();
}
#endif

#if defined(WEFT_ASAN)
TEST(AnnotateDeathTest, asan_still_finds_an_overrun_on_a_flows_stack) {
  stack_pool pool;
  borrowed_stack on(pool);
  fiber f(*on, [](fiber& self) {
    self.suspend();
    [[maybe_unused]] volatile char buffer[32] = {};
    volatile int at = 32;
    buffer[at] = 1;
  });
  f.resume();
  EXPECT_DEATH(f.resume(), "stack-buffer-overflow|out of bounds");
}
#endif

}  // namespace
