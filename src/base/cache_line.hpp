#pragma once

#include <cstddef>

namespace weft::inline v1::base {

// Two words that different threads write must not lie in one block of this size. It is 64 on every x86-64 and most
// aarch64. It is a constant of ours, because std::hardware_destructive_interference_size varies with compiler flags and
// would leak into the layout.
inline constexpr std::size_t cache_line = 64;

// Prefetches so many lines from that address on, for writing.
inline void prefetch(const void* from, std::size_t lines) noexcept {
  for (std::size_t line = 0; line < lines; ++line)
    __builtin_prefetch(static_cast<const std::byte*>(from) + line * cache_line, 1);
}

}  // namespace weft::inline v1::base
