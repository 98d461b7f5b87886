// Reading a string in which each task left its letter.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

namespace support {

// The longest stretch of `order` without `other`.
[[nodiscard]] inline std::size_t longest_without(const std::string& order, char other) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char c : order) longest = std::max(longest, run = c == other ? 0 : run + 1);
  return longest;
}

}  // namespace support
