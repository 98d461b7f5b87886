// Task-local values: a list of bindings, the innermost first. A binding does not change once it is made, so a child
// shares its parent's list by one reference.
#pragma once

#include <cstddef>

#include "base/atomic.hpp"
#include "task/task.hpp"

namespace weft::inline v1::detail {

struct local_binding {
  local_binding* outer;  // holds a reference
  const void* key;
  void (*destroy)(void* value) noexcept;
  std::size_t value_offset;
  std::size_t alignment;
  base::atomic<std::uint32_t> references{1};

  [[nodiscard]] void* value() noexcept { return reinterpret_cast<std::byte*>(this) + value_offset; }
};

}  // namespace weft::inline v1::detail

namespace weft::inline v1::task {

using detail::local_binding;

void share_locals(const record& from, record& to) noexcept;
// Destroys the bindings that no other task refers to. The user's destructors run here.
void release_locals(record& t) noexcept;
void drop_binding(local_binding* b) noexcept;

}  // namespace weft::inline v1::task
