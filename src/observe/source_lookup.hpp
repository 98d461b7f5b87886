// Asking libbacktrace, which knows the debug information of the program. symbols.cpp caches what this says.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/symbols.hpp"

namespace weft::inline v1::observe {

// The functions at an address, innermost first, names as in the tables (mangled). Empty if there is no debug information, or
// no libbacktrace. The caller holds the lock of symbols.cpp.
[[nodiscard]] std::vector<symbol> lines_at(std::uintptr_t address);
// The name of the symbol that holds the address, mangled; "" if there is none.
[[nodiscard]] std::string symbol_at(std::uintptr_t address);

}  // namespace weft::inline v1::observe
