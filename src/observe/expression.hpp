// DWARF's expressions: a small stack machine in which compilers say what no offset can say. Frames that were realigned for
// vectors, the stubs of the procedure linkage table and the frames of signal handlers need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "observe/unwind.hpp"

namespace weft::inline v1::observe {

// `start` lies on the machine's stack at the beginning. False if the expression makes no sense, reads outside of the copy,
// uses an unknown register, or takes too long.
[[nodiscard]] bool evaluate(std::span<const std::byte> code, const registers& r, const stack_copy& copy,
                            std::uintptr_t start, std::uintptr_t& result) noexcept;

}  // namespace weft::inline v1::observe
