// The worker whose thread this is, or nullptr.
//
// A task may ask before and after a switch and must not get the answer of the thread it left, so neither the answer nor the address
// it came from may be kept (docs/decisions/0002-migration-safety.md). x86-64: one instruction reads the variable through the
// thread's segment register, with no address to be kept, and being volatile and a barrier it is not moved across a call. Elsewhere: a
// function that is never inlined.
#pragma once

namespace weft::inline v1::sched {

class worker;

#if defined(__x86_64__) && !defined(WEFT_MODEL)
#define WEFT_READS_WORKER_INLINE 1
[[nodiscard, gnu::always_inline]] inline worker* this_worker() noexcept {
  worker* answer;
  // The variable is in worker_loop.cpp. In a shared library its offset is known only when that is loaded; eight bytes of the room
  // that the C library keeps for such variables, also for libraries that are loaded later.
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
