// The frames of a stack, from a copy of it.
//
// Whoever observes only reads, and what it reads may change meanwhile. So the stack of a parked task is copied first, and
// the ticket in the task's word, read before and after, tells whether the copy is exact. The unwinder then works on the
// copy: the rules of .eh_frame say where each frame has left the registers of its caller. Frame pointers do not suffice,
// because optimized code has none.
//
// observe.U1. Every read of the stack is bounded to the copy; a frame whose registers lie elsewhere is the last one. The
//     tables of the program are read in place, within their segment.                     test observe/unwind_fuzz_*
// observe.U2. Every step moves towards the end of the stack, and there are at most `most_frames`, so that a walk over
//     garbage ends.                                                                      test observe/unwind_fuzz_*
// observe.U3. Nothing here allocates, and nothing waits: malloc or the dynamic linker may be locked in a process that
//     hangs. Objects are found with _dl_find_object, which takes no lock; who finds the cache of rules locked does
//     without it.                                        test observe/unwinding_does_not_allocate
// observe.U4. The frames are those that libgcc's unwinder finds, pc by pc.                    test observe/unwind_oracle_*
//
// This is not for signal handlers: a handler copies registers and stack, and somebody else unwinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "observe/machine.hpp"

namespace weft::inline v1::observe {

// The bytes of [address, address + bytes.size()), copied.
struct stack_copy {
  std::uintptr_t address = 0;
  std::span<const std::byte> bytes;

  // Returns false if the word is not in the copy.
  [[nodiscard]] bool read(std::uintptr_t from, std::uintptr_t& word) const noexcept;
};

// The registers of a frame, by DWARF's numbers (machine.hpp).
struct registers {
  std::uintptr_t value[machine::registers] = {};
  machine::mask known = 0;  // bit i: value[i] is known
  bool is_exact = false;  // the pc is where the frame was interrupted, not where a call returns to

  [[nodiscard]] std::uintptr_t pc() const noexcept { return value[machine::program_counter]; }
  [[nodiscard]] std::uintptr_t sp() const noexcept { return value[machine::stack_pointer]; }
  [[nodiscard]] bool knows(std::size_t i) const noexcept { return (known >> i & 1) != 0; }
  void set(std::size_t i, std::uintptr_t to) noexcept {
    value[i] = to;
    known |= machine::mask{1} << i;
  }
  void forget(std::size_t i) noexcept { known &= ~(machine::mask{1} << i); }
};

// Where a suspended fiber continues. copy.address is the fiber's saved stack pointer. With Boost's switch, or if the copy is
// too short, no register is known.
[[nodiscard]] registers saved_by_switch(const stack_copy& copy) noexcept;
// Of an interrupted thread, from the third argument of a signal handler. The copy of its stack must begin machine::red_zone
// bytes below its stack pointer: a function that is about to return has popped registers that its rules still find there.
[[nodiscard]] registers from_signal(const void* ucontext) noexcept;

struct frame {
  std::uintptr_t pc = 0;
  bool is_guess = false;  // found by a frame pointer, because the code of its callee says nothing about its frames
  bool is_exact = false;  // the pc is that of an interrupted instruction: look it up as it is, every other as pc - 1
};

inline constexpr std::size_t most_frames = 128;

// Writes the frames from the innermost outwards, returns how many. The outermost is weft_v1_context_start, the entry of a
// fiber (or of a thread: what has no caller). There are no frames if the pc is not known.
[[nodiscard]] std::size_t unwind(const stack_copy& copy, registers start, std::span<frame> out) noexcept;

}  // namespace weft::inline v1::observe
