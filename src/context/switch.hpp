// The switch between two stacks: the seam behind which our own assembly (x86-64, aarch64) or Boost.Context stands.
//
// A suspended flow of control is one pointer: the stack pointer at which it left. Everything else lies on its stack.
// Exactly one of switch_own.cpp (+ switch_<arch>.S) and switch_fcontext.cpp implements the four functions;
// -DWEFT_BOOST_SWITCH=1 selects the second. Upper layers call switch_flow of annotate.hpp, which tells the sanitizers
// and then jumps.
//
// context.I1. A flow finds its callee-saved registers and its floating-point control words as it left them. A fresh
//     flow starts with the default control words. A switch makes no system call.                  test context/switch_*
// context.I2. Unwinding (exceptions, gdb, dumps) ends at the entry frame.                         test context/unwind_*
//
// Rejected: inline assembly with a clobber list (Photon), a little faster, because the compiler then keeps addresses of
// thread-locals in registers across the switch. An opaque call is what makes migration safe (requirement W-1).
#pragma once

#if !defined(WEFT_BOOST_SWITCH) && !defined(__x86_64__) && !defined(__aarch64__)
#define WEFT_BOOST_SWITCH 1
#endif

namespace weft::inline v1::context {

// Saves the running flow in *from_sp and continues `to_sp`, which receives `arg`. Returns when somebody jumps back, and
// returns the `arg` of that jump. *from_sp is valid as soon as `to_sp` runs, so it may be published only from there.
void* jump(void** from_sp, void* to_sp, void* arg) noexcept asm("weft_v1_context_jump");

// An entry function never returns and never throws. It gets the `arg` of the first jump.
using entry = void (*)(void* arg);

// Builds an entry frame below `stack_top` (16-aligned) and returns what the first jump needs. The flow starts with the
// default control words, not with those of the flow that happens to prepare it.
[[nodiscard]] void* prepare(void* stack_top, entry e) noexcept;

// Sets the rounding mode and the other control words back to the default, for a stack that runs one task after another.
// It costs nothing if they are the default already.
void reset_control_words() noexcept;

// Where a suspended flow will continue, for dumps; null if this switch cannot tell.
struct resume_point {
  const void* pc;
  const void* frame;  // the frame pointer; useful only in code built with frame pointers
};
[[nodiscard]] resume_point where(const void* sp) noexcept;

}  // namespace weft::inline v1::context
