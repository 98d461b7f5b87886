// Where the switch and the kernel put the registers of what they interrupt.
#include <ucontext.h>

#include <iterator>

#include "context/switch.hpp"  // WEFT_BOOST_SWITCH where there is no switch of our own
#include "observe/unwind.hpp"

namespace weft::inline v1::observe {
namespace {

struct place {
  std::size_t number;  // DWARF's
  std::size_t word;    // of what was saved
};

#if defined(__x86_64__)
// `saved` in context/switch_own.cpp: control words, r15, r14, r13, r12, rbx, rbp, pc.
[[maybe_unused]] constexpr place by_switch[] = {{15, 1}, {14, 2}, {13, 3}, {12, 4}, {3, 5}, {6, 6}, {16, 7}};
[[maybe_unused]] constexpr std::size_t size_by_switch = 64;
constexpr place by_signal[] = {{0, REG_RAX},  {1, REG_RDX},  {2, REG_RCX},  {3, REG_RBX},  {4, REG_RSI},  {5, REG_RDI},
                               {6, REG_RBP},  {7, REG_RSP},  {8, REG_R8},   {9, REG_R9},   {10, REG_R10}, {11, REG_R11},
                               {12, REG_R12}, {13, REG_R13}, {14, REG_R14}, {15, REG_R15}, {16, REG_RIP}};
#elif defined(__aarch64__)
// x29, pc, x19…x28; then d8…d15 and fpcr.
[[maybe_unused]] constexpr place by_switch[] = {{29, 0}, {32, 1}, {19, 2}, {20, 3}, {21, 4},  {22, 5},
                                                {23, 6}, {24, 7}, {25, 8}, {26, 9}, {27, 10}, {28, 11}};
[[maybe_unused]] constexpr std::size_t size_by_switch = 176;
#endif

}  // namespace

registers saved_by_switch([[maybe_unused]] const stack_copy& copy) noexcept {
  registers r;
#if !defined(WEFT_BOOST_SWITCH)
  for (const place& p : by_switch) {
    std::uintptr_t value = 0;
    if (!copy.read(copy.address + p.word * sizeof value, value)) return {};
    r.set(p.number, value);
  }
  r.set(machine::stack_pointer, copy.address + size_by_switch);
#endif
  return r;
}

registers from_signal([[maybe_unused]] const void* ucontext) noexcept {
  registers r;
  [[maybe_unused]] const auto& context = static_cast<const ucontext_t*>(ucontext)->uc_mcontext;
#if defined(__x86_64__)
  for (const place& p : by_signal) r.set(p.number, static_cast<std::uintptr_t>(context.gregs[p.word]));
#elif defined(__aarch64__)
  for (std::size_t i = 0; i < std::size(context.regs); ++i) r.set(i, context.regs[i]);
  r.set(machine::stack_pointer, context.sp);
  r.set(machine::program_counter, context.pc);
#endif
  r.is_exact = true;
  return r;
}

}  // namespace weft::inline v1::observe
