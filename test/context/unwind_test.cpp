// What unwinders make of a flow: exceptions, backtraces, the end at the entry frame.
#include <gtest/gtest.h>
#include <unwind.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "context/fiber.hpp"

#if !defined(WEFT_BOOST_SWITCH)
extern "C" void weft_v1_context_start() noexcept;  // switch_<arch>.S
#endif

namespace {

using namespace weft::context;
using weft_test::borrowed_stack;
using weft_test::fiber;

TEST(Unwind, an_exception_is_thrown_and_caught_inside_a_flow_and_runs_destructors) {
  stack_pool pool;
  borrowed_stack on(pool);
  std::string log;
  struct noted {
    std::string& log;
    ~noted() { log += "destroyed "; }
  };
  fiber f(*on, [&](fiber& self) {
    for (int i = 0; i < 3; ++i) {
      try {
        noted n{log};
        self.suspend();
        throw std::runtime_error("inside");
      } catch (const std::runtime_error& e) {
        log += e.what();
        log += ' ';
      }
      self.suspend();
    }
  });
  while (!f.done()) f.resume();
  EXPECT_EQ(log, "destroyed inside destroyed inside destroyed inside ");
}

struct walked {
  int frames = 0;
  std::uintptr_t last_pc = 0;
  std::uintptr_t last_cfa = 0;
};

walked walk() {
  walked w;
  const auto code = _Unwind_Backtrace(
      [](_Unwind_Context* c, void* to) {
        auto& seen = *static_cast<walked*>(to);
        if (_Unwind_GetIP(c) == 0) return _URC_NO_REASON;  // how libgcc announces the end
        seen.last_pc = _Unwind_GetIP(c);
        seen.last_cfa = _Unwind_GetCFA(c);
        return ++seen.frames < 100 ? _URC_NO_REASON : _URC_NORMAL_STOP;
      },
      &w);
  EXPECT_EQ(code, _URC_END_OF_STACK);
  return w;
}

__attribute__((noinline)) walked walk_from_depth(int depth) {
  if (depth == 0) return walk();
  walked w = walk_from_depth(depth - 1);
  asm volatile("" : "+m"(w));  // no tail call
  return w;
}

TEST(Unwind, a_backtrace_ends_at_the_entry_and_stays_on_its_stack) {
  stack_pool pool;
  borrowed_stack on(pool);
  walked shallow, deep;
  fiber f(*on, [&](fiber& self) {
    shallow = walk_from_depth(0);
    self.suspend();
    deep = walk_from_depth(10);
  });
  f.resume();
  f.resume();
  EXPECT_GE(shallow.frames, 2);
  EXPECT_LE(shallow.frames, 20);
  EXPECT_EQ(deep.frames, shallow.frames + 10);
  EXPECT_LE(deep.last_cfa, reinterpret_cast<std::uintptr_t>(on->base + on->size));
  EXPECT_GE(deep.last_cfa, reinterpret_cast<std::uintptr_t>(on->base));
#if !defined(WEFT_BOOST_SWITCH)
  EXPECT_LT(deep.last_pc - reinterpret_cast<std::uintptr_t>(&weft_v1_context_start), 16u) << "not the entry frame";
#endif
}

#if !defined(WEFT_BOOST_SWITCH)
void *here, *there, *callers_frame;

void note_callers_frame(void*) {
  callers_frame = *static_cast<void**>(__builtin_frame_address(0));
  jump(&there, here, nullptr);
}

TEST(Unwind, the_chain_of_frame_pointers_ends_at_the_entry_NoAsan_NoTsan) {
  stack_pool pool;
  borrowed_stack on(pool);
  there = prepare(on->top(), note_callers_frame);
  callers_frame = &here;
  jump(&here, there, nullptr);
  EXPECT_EQ(callers_frame, nullptr);
}
#endif

TEST(UnwindDeathTest, an_exception_that_leaves_the_entry_terminates_instead_of_wandering_off) {
  stack_pool pool;
  borrowed_stack on(pool);
  fiber f(*on, [&](fiber&) { throw std::runtime_error("nobody catches this"); });
  EXPECT_DEATH(f.resume(), "nobody catches this");
}

}  // namespace
