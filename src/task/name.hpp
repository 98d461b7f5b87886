#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "task/task.hpp"

namespace weft::inline v1::task {

// Keeps what fits. Dumps read names at any time, so the end is written first.
inline void set_name(record& t, std::string_view name) noexcept {
  const std::size_t n = std::min(name.size(), name_capacity - 1);
  t.name[n] = '\0';
  if (n != 0) std::memcpy(t.name, name.data(), n);
  t.named = n != 0;
}

[[nodiscard]] inline std::string_view name_of(const record& t) noexcept {
  return t.named ? t.name : std::string_view();
}

}  // namespace weft::inline v1::task
