#pragma once

#include <cstddef>
#include <type_traits>

#include <weft/detail/task_core.hpp>

namespace weft::inline v1::detail {

// True for a null function pointer, and for an empty wrapper like std::function.
template <class F>
[[nodiscard]] bool is_null_callable(const F& f) noexcept {
  if constexpr (std::is_pointer_v<F> || (std::is_class_v<F> && std::is_constructible_v<F, std::nullptr_t> &&
                                         std::is_constructible_v<bool, const F&>))
    return !f;
  else
    return false;
}

// Throws usage_error if there is nothing to run.
template <class F>
void check_not_null(const F& f, const char* complaint = "spawn was given a null function: there is nothing to run") {
  if (is_null_callable(f)) throw_usage(complaint);
}

}  // namespace weft::inline v1::detail
