// The C++ half of our own switch: the frame that switch_<arch>.S leaves and finds.
#include "context/switch.hpp"

#if !defined(WEFT_BOOST_SWITCH)
#include <cstdint>
#include <cstring>

#include "base/check.hpp"

extern "C" void weft_v1_context_start() noexcept;  // in switch_<arch>.S; jump returns to it, nobody calls it

namespace weft::inline v1::context {
namespace {

#if defined(__x86_64__)

struct saved {
  std::uint32_t mxcsr;
  std::uint16_t x87;
  std::uint16_t unused;
  std::uintptr_t r15, r14, r13, r12, rbx, frame, pc;
  std::uintptr_t end[2];  // where a caller's return address and frame would be; 0 for walkers

  void start_with(entry e) noexcept { rbx = reinterpret_cast<std::uintptr_t>(e); }
};
// The values that the System V ABI prescribes and a new thread starts with: all exceptions masked, round to nearest,
// x87 extended precision.
constexpr std::uint32_t default_mxcsr = 0x1f80;
constexpr std::uint16_t default_x87 = 0x037f;
void default_control_words(saved& s) noexcept {
  s.mxcsr = default_mxcsr;
  s.x87 = default_x87;
}

#else  // aarch64

struct saved {
  std::uintptr_t frame, pc, x19, x20_to_x28[9];
  std::uint64_t d8_to_d15[8], fpcr, unused;

  void start_with(entry e) noexcept { x19 = reinterpret_cast<std::uintptr_t>(e); }
};
void default_control_words(saved&) noexcept {}  // FPCR 0

#endif

static_assert(sizeof(saved) % 16 == 0, "the entry is called with an aligned stack pointer");

}  // namespace

void* prepare(void* stack_top, entry e) noexcept {
  const auto top = reinterpret_cast<std::uintptr_t>(stack_top);
  base::require(top % 16 == 0, "context::prepare: the top of a stack is a multiple of 16");
  auto* frame = reinterpret_cast<saved*>(top - sizeof(saved));
  std::memset(static_cast<void*>(frame), 0, sizeof(saved));
  default_control_words(*frame);
  frame->start_with(e);
  frame->pc = reinterpret_cast<std::uintptr_t>(&weft_v1_context_start);
  return frame;
}

resume_point where(const void* sp) noexcept {
  const auto* frame = static_cast<const saved*>(sp);
  return {reinterpret_cast<const void*>(frame->pc), reinterpret_cast<const void*>(frame->frame)};
}

#if defined(__x86_64__)

void reset_control_words() noexcept {
  std::uint32_t mxcsr;
  std::uint16_t x87;
  asm volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(mxcsr), "=m"(x87));
  // The lower six bits are sticky exception flags, which do not matter. Only the load is expensive.
  if ((mxcsr & ~0x3fu) != default_mxcsr) asm volatile("ldmxcsr %0" ::"m"(default_mxcsr));
  if (x87 != default_x87) asm volatile("fldcw %0" ::"m"(default_x87));
}

#else

void reset_control_words() noexcept {
  std::uint64_t fpcr;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  if (fpcr != 0) asm volatile("msr fpcr, xzr");
}

#endif

}  // namespace weft::inline v1::context
#endif
