// A child process that somebody may wait for: its pidfd, and its status once that is known.
//
// A pidfd means one process for ever. So neither a signal nor a wait can concern a stranger who was given the same number
// after the child had ended.
//
// io.CH1. The status is taken from the kernel once, and kept. Whoever waits gets the same one.
//     test io/several_tasks_wait_*, io/a_child_that_somebody_else_*
// io.CH2. A child has ended only when the kernel says so of waitid(WEXITED): one that was stopped has not.
//     test io/a_stopped_child_*
// io.CH3. Every child is reaped: by a wait, by the destructor of its process, or after detach() by a later sweep.
//     test io/no_zombie_*, io/a_detached_*
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "base/lock.hpp"
#include "io/fd_record.hpp"
#include "io/transfer.hpp"
#include <weft/detail/fd_handle.hpp>
#include <weft/exit_status.hpp>

namespace weft::inline v1::io {

class child {
 public:
  // Takes over the pidfd. For a child whose end is known already, that is any descriptor that is readable.
  child(pid_t id, fd_handle pidfd, std::optional<exit_status> ended) noexcept
      : id_(id),
        pidfd_(std::move(pidfd)),
        ended_(ended) {}

  [[nodiscard]] pid_t id() const noexcept { return id_; }
  [[nodiscard]] fd_record& record() const { return pidfd_.record(); }

  // Returns nothing if it sets `why`: errc::timed_out, or an error of the kernel's. A cancellation point.
  [[nodiscard]] std::optional<exit_status> wait(const limit& l, std::error_code& why);
  // The status, if the child has ended.
  [[nodiscard]] std::optional<exit_status> look();
  // Returns false if the child is known to have ended.
  [[nodiscard]] bool send(int signal_number, std::error_code& why);
  // Kills it if it has not ended, and reaps it. Never a cancellation point.
  void end() noexcept;
  // Leaves it to sweep_detached().
  void detach() noexcept;

 private:
  // The child of a fork has a copy of this, which is none of its business.
  [[nodiscard]] bool belongs_to_parent() const noexcept { return made_in_ != sched::fork_generation(); }

  const pid_t id_;
  const fd_handle pidfd_;
  const std::uint32_t made_in_ = sched::fork_generation();
  base::lock lock_;
  std::optional<exit_status> ended_;  // under lock_
};

// What waitid says of a pidfd now: nothing if the child has not ended. It is reaped then. `unknown` if the kernel says
// that there is no such child of ours (ECHILD).
[[nodiscard]] std::optional<exit_status> reap(const kernel_calls& calls, int pidfd) noexcept;

// Reaps the detached children that have ended.
void sweep_detached() noexcept;

}  // namespace weft::inline v1::io
