#include "context/switch.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cfenv>
#include <csignal>
#include <cstdint>
#include <thread>
#include <vector>

#include "context/fiber.hpp"

namespace {

using namespace weft::context;
using weft_test::borrowed_stack;
using weft_test::fiber;

// req: CSP-1
TEST(Switch, hands_an_argument_over_in_both_directions_NoAsan_NoTsan) {  // a bare jump, unannounced
  stack_pool pool;
  borrowed_stack on(pool);
  static void *here, *there;
  there = prepare(on->top(), [](void* arg) {
    for (;;) arg = jump(&there, here, static_cast<char*>(arg) + 1);
  });
  char letters[3] = {};
  EXPECT_EQ(jump(&here, there, &letters[0]), &letters[1]);
  EXPECT_EQ(jump(&here, there, &letters[1]), &letters[2]);
}

// req: CSP-1
TEST(Switch, makes_no_system_call_NoAsan_NoTsan) {  // a sanitizer's own switch does
  stack_pool pool;
  borrowed_stack on(pool);
  fiber f(*on, [](fiber& self) {
    for (;;) self.suspend();
  });
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_SECCOMP, 1 /* strict: read, write and exit, anything else kills */);
    for (int i = 0; i < 1000; ++i) f.resume();
    syscall(SYS_exit, 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

// req: CSP-1
TEST(Switch, a_flow_goes_on_on_another_thread_and_sees_what_it_wrote) {
  stack_pool pool;
  borrowed_stack on(pool);
  std::vector<std::thread::id> seen;
  int local_sum = 0;
  fiber f(*on, [&](fiber& self) {
    int local = 0;
    for (int i = 1; i <= 4; ++i) {
      local += i;
      seen.push_back(std::this_thread::get_id());
      self.suspend();
    }
    local_sum = local;
  });
  for (int i = 0; i < 5; ++i) std::thread([&] { f.resume(); }).join();
  EXPECT_TRUE(f.done());
  EXPECT_EQ(local_sum, 10);
  for (std::size_t i = 1; i < seen.size(); ++i) EXPECT_NE(seen[i], std::this_thread::get_id());
}

#if defined(__x86_64__) && !defined(WEFT_BOOST_SWITCH)
// jump_with(from, to, values): fills the six callee-saved registers from values[0..5], jumps with arg = values, and on the way
// back writes what they hold to values[6..11].
asm(R"(
        .text
        .type test_jump_with, @function
test_jump_with:
        pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
        pushq %rdx
        movq 0(%rdx), %rbp; movq 8(%rdx), %rbx; movq 16(%rdx), %r12
        movq 24(%rdx), %r13; movq 32(%rdx), %r14; movq 40(%rdx), %r15
        callq weft_v1_context_jump
        popq %rdx
        movq %rbp, 48(%rdx); movq %rbx, 56(%rdx); movq %r12, 64(%rdx)
        movq %r13, 72(%rdx); movq %r14, 80(%rdx); movq %r15, 88(%rdx)
        popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
        ret
        .size test_jump_with, . - test_jump_with
)");
extern "C" void test_jump_with(void** from, void* to, std::uint64_t* values);

TEST(Switch, keeps_the_callee_saved_registers_of_both_flows_NoAsan_NoTsan) {
  stack_pool pool;
  borrowed_stack on(pool);
  static void *here, *there;
  static std::uint64_t mine[12] = {1, 2, 3, 4, 5, 6}, others[12] = {11, 12, 13, 14, 15, 16};
  there = prepare(on->top(), [](void*) {
    for (;;) test_jump_with(&there, here, others);
  });
  test_jump_with(&here, there, mine);  // starts it
  test_jump_with(&here, there, mine);  // comes back to it: others[6..11] are written
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(mine[6 + i], mine[i]) << i;
    EXPECT_EQ(others[6 + i], others[i]) << i;
  }
}

std::uint16_t x87_control_word() {
  std::uint16_t word;
  asm volatile("fnstcw %0" : "=m"(word));
  return word;
}
std::uint32_t mxcsr() {
  std::uint32_t word;
  asm volatile("stmxcsr %0" : "=m"(word));
  return word;
}

// req: W-1
TEST(Switch, control_words_belong_to_the_flow) {
  stack_pool pool;
  borrowed_stack on(pool);
  std::uint32_t inner_mxcsr = 0;
  std::uint16_t inner_x87 = 0;
  fiber f(*on, [&](fiber& self) {
    std::fesetround(FE_UPWARD);
    const std::uint32_t flush_to_zero = mxcsr() | 0x8000;
    asm volatile("ldmxcsr %0" ::"m"(flush_to_zero));
    self.suspend();
    inner_mxcsr = mxcsr();
    inner_x87 = x87_control_word();
  });
  std::fesetround(FE_DOWNWARD);
  const std::uint32_t outer_mxcsr = mxcsr();
  const std::uint16_t outer_x87 = x87_control_word();
  f.resume();
  EXPECT_EQ(mxcsr() & ~0x3fu, outer_mxcsr & ~0x3fu);
  EXPECT_EQ(x87_control_word(), outer_x87);
  f.resume();
  EXPECT_EQ(inner_mxcsr & 0xe000, 0x8000u | 0x4000u);  // flush to zero, round up
  EXPECT_EQ(inner_x87 & 0x0c00, 0x0800);  // round up
  std::fesetround(FE_TONEAREST);
}

// req: W-1
TEST(Switch, a_new_flow_starts_with_the_control_words_of_a_new_thread) {
  stack_pool pool;
  borrowed_stack on(pool);
  std::uint32_t its_mxcsr = 0;
  std::uint16_t its_x87 = 0;
  fiber f(*on, [&](fiber&) {
    its_mxcsr = mxcsr();
    its_x87 = x87_control_word();
  });
  f.resume();
  EXPECT_EQ(its_mxcsr & ~0x3fu, 0x1f80u);  // without the flags of what happened
  EXPECT_EQ(its_x87, 0x037f);
}
#endif

// req: W-1
TEST(Switch, a_fresh_flow_rounds_to_nearest_whoever_starts_it) {
  stack_pool pool;
  borrowed_stack on(pool);
  int inner = -1;
  std::fesetround(FE_UPWARD);
  fiber f(*on, [&](fiber&) { inner = std::fegetround(); });
  f.resume();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  EXPECT_EQ(inner, FE_TONEAREST);
  reset_control_words();
  EXPECT_EQ(std::fegetround(), FE_TONEAREST);
}

TEST(Switch, an_entry_starts_with_an_aligned_stack_near_its_top_NoAsan_NoTsan) {
  stack_pool pool;
  borrowed_stack on(pool);
  std::uintptr_t frame = 0;
  fiber f(*on, [&](fiber&) {
    alignas(16) volatile char aligned[16] = {};
    frame = reinterpret_cast<std::uintptr_t>(&aligned[0]);
  });
  f.resume();
  EXPECT_EQ(frame % 16, 0u);
  static std::uintptr_t entry_frame;
  static void *here, *there;
  borrowed_stack other(pool);
  there = prepare(other->top(), [](void*) {
    entry_frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    jump(&there, here, nullptr);
  });
  jump(&here, there, nullptr);
  EXPECT_EQ(entry_frame % 16,
            0u);  // the ABI: 16-aligned before the call, so again after return address and frame pointer
  EXPECT_LT(reinterpret_cast<std::uintptr_t>(other->top()) - entry_frame, 256u);
}

TEST(Switch, tells_where_a_suspended_flow_will_go_on) {
  stack_pool pool;
  borrowed_stack on(pool);
  fiber f(*on, [&](fiber& self) { self.suspend(); });
  f.resume();
  const resume_point p = where(f.sp());
#if defined(WEFT_BOOST_SWITCH)
  EXPECT_EQ(p.pc, nullptr);
#else
  Dl_info found{};
  EXPECT_NE(dladdr(p.pc, &found), 0) << "the pc is in no module";
#endif
  f.resume();
  EXPECT_TRUE(f.done());
}

TEST(Switch, a_thousand_flows_take_turns_and_keep_their_locals) {
  stack_pool pool;
  constexpr int flows = 1000, rounds = 10;
  std::vector<stack*> stacks;
  std::vector<std::unique_ptr<fiber>> fibers;
  std::vector<int> sums(flows, 0);
  for (int i = 0; i < flows; ++i) {
    stacks.push_back(pool.acquire());
    ASSERT_NE(stacks.back(), nullptr);
    fibers.push_back(std::make_unique<fiber>(*stacks.back(), [&sums, i](fiber& self) {
      volatile int values[rounds];
      for (int r = 0; r < rounds; ++r) {
        values[r] = i + r;
        self.suspend();
      }
      for (int r = 0; r < rounds; ++r) sums[static_cast<std::size_t>(i)] += values[r];
    }));
  }
  for (int r = 0; r <= rounds; ++r)
    for (auto& f : fibers) f->resume();
  for (int i = 0; i < flows; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], rounds * i + rounds * (rounds - 1) / 2);
  fibers.clear();
  for (stack* s : stacks) pool.release(s);
}

}  // namespace
