// Names and source lines of program counters.
//
// They come from libbacktrace, which reads the debug information of the program, inlined calls included; where there is
// none, from the symbol table; where the program is stripped, from dladdr; and at last the name of the object and the
// offset in it, which addr2line understands. The first look-up reads the tables of the whole program and takes up to a
// tenth of a second, further ones a microsecond, so that groups of equal stacks are symbolized once, not every task.
//
// All of this allocates and takes a lock. It belongs to whoever prints, after everything has been read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "observe/unwind.hpp"

namespace weft::inline v1::observe {

struct symbol {
  std::string function;  // demangled; "module+0x1234" if nothing is known
  std::string file;  // "" if not known
  int line = 0;  // 0 if not known
  bool is_inlined = false;  // into the next symbol of the same pc
};

// The function that holds the pc, preceded by those inlined there, innermost first. Never empty.
[[nodiscard]] std::vector<symbol> symbols_of(std::uintptr_t pc, bool is_exact);
[[nodiscard]] inline std::vector<symbol> symbols_of(const frame& f) { return symbols_of(f.pc, f.is_exact); }

// A function of Weft itself: of its namespaces, or of its switch. Templates of Weft that run code of the user are Weft's,
// the user's functions that they call are not.
[[nodiscard]] bool is_weft_internal(const symbol& s);

// What the user wrote, of a stack from the innermost frame outwards: without the frames of Weft at both ends, the wait at
// the inner end, the start of the task at the outer one. Frames of Weft between two of the user's stay. If all are Weft's,
// all stay.
[[nodiscard]] std::span<const symbol> without_weft(std::span<const symbol> stack);

// The symbols of all frames, innermost first.
[[nodiscard]] std::vector<symbol> symbols_of(std::span<const frame> frames);

}  // namespace weft::inline v1::observe
