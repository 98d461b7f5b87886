// The sizes of stacks: 16 KiB, 24, 32, 48, 64, … 1 GiB. A request wastes at most a third, and stacks of one class can
// be reused.
#pragma once

#include <bit>
#include <cstddef>

#include "context/stack.hpp"

namespace weft::inline v1::context {

inline constexpr std::size_t class_count = 2 * (std::bit_width(largest_stack) - std::bit_width(smallest_stack)) + 1;

[[nodiscard]] constexpr std::size_t class_size(std::size_t index) noexcept {
  const std::size_t power = smallest_stack << (index / 2);
  return index % 2 == 0 ? power : power + power / 2;
}

// The smallest class that holds `size`, which is within the limits.
[[nodiscard]] constexpr std::size_t class_of(std::size_t size) noexcept {
  if (size <= smallest_stack) return 0;
  const auto width = static_cast<std::size_t>(std::bit_width(size - 1));  // 2^(width-1) < size <= 2^width
  const std::size_t upper = 2 * (width + 1 - static_cast<std::size_t>(std::bit_width(smallest_stack)));
  return class_size(upper - 1) >= size ? upper - 1 : upper;
}

static_assert(class_size(class_count - 1) == largest_stack);
static_assert(class_size(class_of(default_stack)) == default_stack);
static_assert(class_of(smallest_stack + 1) == 1 && class_of(class_size(1) + 1) == 2);

}  // namespace weft::inline v1::context
