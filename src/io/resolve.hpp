// Look-ups of names, with the kernel's table as a parameter.
//
// A look-up is a call of getaddrinfo, which blocks and cannot be interrupted. So it runs in a task of its own, on a lane
// of the runtime with a few turns, and whoever asked waits for that task. If the asker leaves, because it is cancelled or
// its time is up, the task goes on alone: everything that getaddrinfo uses belongs to the task.
//
// io.N1. Nothing that a look-up uses belongs to its asker.
//     test io/a_cancelled_call_returns_while_the_look_up_runs, io/a_call_whose_time_is_up_returns_*
// io.N2. At most sched::scheduler_options::lookup_tasks look-ups of a runtime run at a time, and they take no turn of
//     the io dispatcher.
//     test io/a_thousand_look_ups_*
// io.N3. A look-up that nobody waits for any more when its turn comes is not begun.
//     test io/a_look_up_is_not_begun_*
//
// Rejected: a limit for the whole process. A runtime whose workers are all busy would keep turns that the tasks of
// another one wait for, and a forked child would inherit turns that nobody gives back. Rejected: weft::blocking in the
// asker itself, which is the least code, but a task that waits inside a system call cannot be cancelled.
#pragma once

#include <source_location>
#include <string_view>
#include <system_error>
#include <vector>

#include "io/kernel.hpp"
#include <weft/net/resolve.hpp>

namespace weft::inline v1::io {

// A cancellation point. Sets `error`, and throws only `cancelled` and std::bad_alloc.
[[nodiscard]] std::vector<net::endpoint> resolve(const kernel_calls& kernel, std::string_view host,
                                                 const net::service& s, const net::resolve_options& options,
                                                 std::error_code& error, std::source_location where);
// The same; throws std::system_error, which names the host.
[[nodiscard]] std::vector<net::endpoint> resolve(const kernel_calls& kernel, std::string_view host,
                                                 const net::service& s, const net::resolve_options& options,
                                                 std::source_location where);

// The error for a code of getaddrinfo. `number` is the value of errno after the call.
[[nodiscard]] std::error_code resolve_error(int code, int number) noexcept;

}  // namespace weft::inline v1::io
