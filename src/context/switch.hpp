// The switch between two stacks: the seam behind which our own assembly (x86-64, aarch64) or Boost.Context stands.
//
// A suspended flow of control is one pointer, the stack pointer it left; everything else lies on its stack. The four
// functions are implemented by exactly one of switch_own.cpp (+ switch_<arch>.S) and switch_fcontext.cpp; -DWEFT_BOOST_SWITCH=1
// asks for the second. Upper layers call annotate.hpp's switch_flow, which tells the sanitizers and then jumps.
//
//  I1. A flow finds its callee-saved registers and its floating-point control words as it left them.  test switch_*
//  I2. Unwinding (exceptions, gdb, dumps) ends at the entry frame.                                     test unwind_*
//
// Rejected: inline assembly with a clobber list (Photon), a little faster, because the compiler then keeps addresses of
// thread-locals in registers across the switch. An opaque call is what makes migration safe (W-1).
#pragma once

#if !defined(WEFT_BOOST_SWITCH) && !defined(__x86_64__) && !defined(__aarch64__)
#define WEFT_BOOST_SWITCH 1
#endif

namespace weft::inline v1::context {

// Saves the running flow in *from_sp and continues `to_sp`, handing it `arg`. Returns when somebody jumps back: what they
// handed over. *from_sp is valid as soon as `to_sp` runs, so it may be published only from there.
void* jump(void** from_sp, void* to_sp, void* arg) noexcept asm("weft_v1_context_jump");

// Never returns, never throws; gets the first jump's `arg`.
using entry = void (*)(void* arg);

// Lays an entry frame below `stack_top` (16-aligned) and returns what the first jump needs. The flow starts with the default
// control words, not with those of whoever happens to prepare it.
[[nodiscard]] void* prepare(void* stack_top, entry e) noexcept;

// Rounding mode and friends back to the default, for a stack that runs one task after another. Free when they are already.
void reset_control_words() noexcept;

// Where a suspended flow will go on, for dumps; nulls if this switch cannot tell.
struct resume_point {
  const void* pc;
  const void* frame;  // the frame pointer; leads on only in code built with frame pointers
};
[[nodiscard]] resume_point where(const void* sp) noexcept;

}  // namespace weft::inline v1::context
