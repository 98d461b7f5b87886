// One step of the unwinder, from a frame to its caller.
#pragma once

#include "observe/cfa_program.hpp"
#include "observe/unwind.hpp"

namespace weft::inline v1::observe {

// Makes r the registers of the caller. False if there is none, or the rules lead out of the copy or backwards.
[[nodiscard]] bool step(const stack_copy& copy, const frame_rules& rules, registers& r) noexcept;

// The same by the frame pointer, for code without rules. What it finds is a guess: that code may use the register for
// something else.
[[nodiscard]] bool guess_step(const stack_copy& copy, registers& r) noexcept;

}  // namespace weft::inline v1::observe
