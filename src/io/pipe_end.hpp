// An end of a pipe below the public classes.
#pragma once

#include <system_error>

#include "io/fd_record.hpp"
#include <weft/detail/fd_handle.hpp>

namespace weft::inline v1::io {

// A read that gets less than it asked for has emptied the pipe, and a write that was cut short has filled it.
inline constexpr fd_traits own_pipe{.kind = fd_kind::pipe, .short_is_all = true};

// Both are closed on exec, and blocking.
struct pipe_numbers {
  int reader = -1;
  int writer = -1;
};
[[nodiscard]] pipe_numbers open_pipe(const kernel_calls& calls, std::error_code& why) noexcept;

// Takes over an end and makes it non-blocking. If it sets `why`, the handle is empty and the end is still the caller's.
// Throws std::bad_alloc, and has closed the end then.
[[nodiscard]] fd_handle own_end(int fd, const kernel_calls& calls, std::error_code& why);

}  // namespace weft::inline v1::io
