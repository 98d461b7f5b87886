#include "context/overflow.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstdio>
#include <string>
#include <thread>

#include "context/failing_memory.hpp"
#include "context/fiber.hpp"

namespace {

using namespace weft::context;
using testing::HasSubstr;
using weft_test::borrowed_stack;
using weft_test::fiber;

std::size_t describe(const stack& s, char* buffer, std::size_t size) {
  const int n = std::snprintf(buffer, size, "\"%s\" (#17)", static_cast<const char*>(s.owner));
  return static_cast<std::size_t>(n);
}

std::size_t advise(const stack&, std::size_t wanted, char* buffer, std::size_t size) {
  return static_cast<std::size_t>(std::snprintf(buffer, size, "spawn(attributes{.stack_size = %zu}, ...)", wanted));
}

__attribute__((noinline)) int recurse(int depth) {
  volatile char frame[200];
  frame[0] = static_cast<char>(depth);
  const int below = depth == 0 ? 0 : recurse(depth - 1);
  return below + frame[0];
}

__attribute__((noinline)) int large_array(std::size_t at) {
  volatile char array[1 << 20];
  asm volatile("" ::"r"(&array[0]) : "memory");  // or the compiler keeps only the byte that is used
  array[at] = 1;  // only near the far end: without probes this lands beyond the guard
  return array[at];
}

// In the child of a death test: `body` on a stack of that size, on a thread of its own as a worker would.
void run_and_overflow(std::size_t size, int (*body)()) {
  install_overflow_reporter(describe, advise);
  std::thread([=] {
    alternate_signal_stack here;
    stack_pool pool;
    stack* s = pool.acquire(size);
    static char name[] = "fetch";
    s->owner = name;
    fiber f(*s, [=](fiber&) { std::_Exit(body()); });
    f.resume();
  }).join();
}

// req: KC-10
TEST(OverflowDeathTest, by_deep_recursion_names_task_size_place_and_remedy) {
  EXPECT_DEATH(run_and_overflow(default_stack, [] { return recurse(1'000'000'000); }),
               "weft: stack overflow in task \"fetch\" \\(#17\\): its stack of 192 KiB is used up at address 0x"
               "(.|\n)*at 0x[0-9a-f]+ .*overflow_test(.|\n)*stack_size = 393216");
}

// The last lines are those people read.
// req: KC-10
TEST(OverflowDeathTest, ends_its_report_with_the_remedy_and_shows_no_frame_beyond_the_first) {
  EXPECT_DEATH(run_and_overflow(smallest_stack, [] { return large_array(100); }),
               "called from 0x[0-9a-f]+ .*\n  give the task a larger stack: spawn.attributes.*off the stack\n$");
  EXPECT_DEATH(run_and_overflow(smallest_stack, [] { return large_array(100); }),
               testing::Not(HasSubstr("0xffffffff")));
}

// req: KC-10
TEST(OverflowDeathTest, by_a_large_local_array_is_caught_though_it_could_jump_the_guard) {
  EXPECT_DEATH(run_and_overflow(default_stack, [] { return large_array(100); }),
               "weft: stack overflow in task \"fetch\" \\(#17\\): its stack of 192 KiB");
}

// The handler looks for the stack among those of all pools: one that has gone is not among them.
// req: KC-10
TEST(OverflowDeathTest, is_reported_though_other_pools_have_come_and_gone) {
  const auto overflow_after_other_pools = [] {
    install_overflow_reporter(describe, advise);
    stack_pool pool;
    stack* s = pool.acquire();
    for (int i = 0; i < 10; ++i) {
      stack_pool other;
      other.release(other.acquire(i % 2 == 0 ? smallest_stack : default_stack));
    }
    std::thread([s] {
      alternate_signal_stack here;
      static char name[] = "late";
      s->owner = name;
      fiber f(*s, [](fiber&) { std::_Exit(recurse(1'000'000'000)); });
      f.resume();
    }).join();
  };
  EXPECT_DEATH(overflow_after_other_pools(), "weft: stack overflow in task \"late\"");
}

// req: KC-10
TEST(OverflowDeathTest, ends_by_abort) {
  EXPECT_EXIT(run_and_overflow(smallest_stack, [] { return recurse(1'000'000'000); }), testing::KilledBySignal(SIGABRT),
              "its stack of 16 KiB");
}

TEST(OverflowDeathTest, a_larger_stack_helps) {
  EXPECT_EXIT(run_and_overflow(std::size_t{4} << 20, [] { return large_array(100) == 1 ? 0 : 1; }),
              testing::ExitedWithCode(0), "");
}

// With the older way of guarding, too.
TEST(OverflowDeathTest, is_reported_for_mprotect_guards) {
  setenv("WEFT_GUARD", "mprotect", 1);
  EXPECT_DEATH(run_and_overflow(default_stack, [] { return recurse(1'000'000'000); }), "weft: stack overflow in task");
  unsetenv("WEFT_GUARD");
}

int* volatile nowhere = nullptr;
__attribute__((no_sanitize("undefined"))) void write_nowhere() { *nowhere = 1; }

TEST(OverflowDeathTest, another_fault_goes_to_the_handler_that_was_there) {
  EXPECT_EXIT(
      {
        struct sigaction earlier{};
        earlier.sa_sigaction = [](int, siginfo_t* info, void*) {
          static const char text[] = "the earlier handler\n";
          (void)!write(2, text, sizeof text - 1);
          _exit(info->si_addr == nullptr ? 3 : 4);
        };
        earlier.sa_flags = SA_SIGINFO;
        sigaction(SIGSEGV, &earlier, nullptr);
        install_overflow_reporter(describe);
        write_nowhere();
      },
      testing::ExitedWithCode(3), "the earlier handler");
}

TEST(OverflowDeathTest, another_fault_kills_as_ever_if_there_was_no_handler) {
  EXPECT_EXIT(
      {
        signal(SIGSEGV, SIG_DFL);
        install_overflow_reporter(describe);
        write_nowhere();
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(OverflowDeathTest, a_sent_signal_still_kills) {
  EXPECT_EXIT(
      {
        signal(SIGSEGV, SIG_DFL);
        install_overflow_reporter(describe);
        raise(SIGSEGV);
        std::exit(0);
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST(Overflow, an_alternate_stack_is_given_back_to_whoever_had_one) {
  stack_t before{};
  sigaltstack(nullptr, &before);
  {
    alternate_signal_stack outer;
    ASSERT_TRUE(outer.installed());
    stack_t first{};
    sigaltstack(nullptr, &first);
    EXPECT_NE(first.ss_sp, before.ss_sp);
    EXPECT_EQ(first.ss_flags, 0);
    {
      alternate_signal_stack inner;
      stack_t second{};
      sigaltstack(nullptr, &second);
      EXPECT_NE(second.ss_sp, first.ss_sp);
    }
    stack_t again{};
    sigaltstack(nullptr, &again);
    EXPECT_EQ(again.ss_sp, first.ss_sp);
  }
  stack_t after{};
  sigaltstack(nullptr, &after);
  EXPECT_EQ(after.ss_flags, before.ss_flags);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
}

// req: W-9
TEST(Overflow, an_alternate_stack_that_cannot_be_had_is_no_disaster) {
  weft_test::failing_memory memory;
  weft_test::failing_memory::fail_all_maps = true;
  alternate_signal_stack none;
  EXPECT_FALSE(none.installed());
}

}  // namespace
