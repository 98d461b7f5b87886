// Watching a descriptor on behalf of the running task, and asking the kernel about it.
#pragma once

#include <ctime>
#include <system_error>

#include "base/clock.hpp"
#include "io/fd_record.hpp"

namespace weft::inline v1::io {

// Makes the runtime of the running task watch this direction, if it does not yet. A borrowed descriptor is looked at
// again each time. Called in a task, during a use.
[[nodiscard]] std::error_code watch_for_this_task(fd_record& r, side s) noexcept;

// What poll(2) says: 0 if the descriptor is ready, -EAGAIN if it is not, and -EBADF if whoever has lent it has closed it.
// The direction only says that a call is worth trying.
[[nodiscard]] int ask_kernel(fd_record& r, side s) noexcept;

// How long it is until then, for ppoll(2); zero if the time is up.
[[nodiscard]] timespec time_left(base::time_ns deadline) noexcept;

}  // namespace weft::inline v1::io
