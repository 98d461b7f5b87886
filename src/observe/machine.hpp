// What the unwinder must know of the processor: how DWARF numbers its registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::inline v1::observe::machine {

#if defined(__x86_64__)
// rax rdx rcx rbx rsi rdi rbp rsp r8…r15, then the column of the return address, in which we keep the program counter.
inline constexpr std::size_t registers = 17;
inline constexpr std::size_t frame_pointer = 6, stack_pointer = 7, program_counter = 16;
// What a function may use below its stack pointer. Until it has returned, its rules may also refer to what it has just popped.
inline constexpr std::size_t red_zone = 128;
using mask = std::uint32_t;
#elif defined(__aarch64__)
// x0…x30, sp, pc. The column of the return address is x30; a frame's pc is kept apart from it.
inline constexpr std::size_t registers = 33;
inline constexpr std::size_t frame_pointer = 29, stack_pointer = 31, program_counter = 32;
inline constexpr std::size_t red_zone = 128;  // none by the ABI, but what was just popped, as above
using mask = std::uint64_t;
#else
// No unwinder: stacks are those of Boost's switch, which does not tell where registers are.
inline constexpr std::size_t registers = 3;
inline constexpr std::size_t frame_pointer = 0, stack_pointer = 1, program_counter = 2;
inline constexpr std::size_t red_zone = 0;
using mask = std::uint32_t;
#endif

}  // namespace weft::inline v1::observe::machine
