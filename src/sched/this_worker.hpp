// The worker whose thread this is, or nullptr.
//
// A task may ask before and after a switch, and must not get the answer of the thread that it left. So neither the
// answer nor the address from which it came may be kept (docs/decisions/0002-migration-safety.md). On x86-64 one
// instruction reads the variable through the thread's segment register, so there is no address to keep. It is volatile
// and a barrier, so it is not moved across a call. Elsewhere a function that is never inlined reads it.
#pragma once

namespace weft::inline v1::sched {

class worker;

#if defined(__x86_64__) && !defined(WEFT_MODEL)
#define WEFT_READS_WORKER_INLINE 1
[[nodiscard, gnu::always_inline]] inline worker* this_worker() noexcept {
  worker* answer;
  // The variable is in worker_loop.cpp. In a shared library its offset is known only once the library is loaded. The
  // variable takes eight bytes of the room that the C library reserves for such variables, also of libraries that are
  // loaded later.
#if defined(__PIC__) && !defined(__PIE__)
  asm volatile("movq weft_v1_this_worker@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(answer) : : "memory");
#else
  asm volatile("movq %%fs:weft_v1_this_worker@tpoff, %0" : "=r"(answer) : : "memory");
#endif
  return answer;
}
#else
[[nodiscard]] worker* this_worker() noexcept;
#endif

}  // namespace weft::inline v1::sched
