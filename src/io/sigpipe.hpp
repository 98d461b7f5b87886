// Writes to a pipe that nobody reads, and sendfile to such a socket. The kernel answers EPIPE and also sends SIGPIPE,
// which ends the process, to the thread that wrote. Sends are told not to by MSG_NOSIGNAL; for these calls there is no
// such flag before Linux 6.18. So the signal is blocked in the thread during the call, and taken away if the call has
// caused it.
//
// Rejected: to block SIGPIPE in all workers for good. It would save two system calls for each write, but children that a
// task makes with fork() would inherit the mask, and whatever a task does with write(2) itself would change its meaning.
#pragma once

#include <cerrno>
#include <cstddef>

namespace weft::inline v1::io {

class held_sigpipe {
 public:
  held_sigpipe() noexcept;
  ~held_sigpipe();
  held_sigpipe(const held_sigpipe&) = delete;
  held_sigpipe& operator=(const held_sigpipe&) = delete;
  // Takes away the signal that a failed write has sent. One that was pending before stays so: the kernel has merged the
  // two.
  void take() noexcept;

 private:
  bool was_blocked_ = false;
  bool was_pending_ = false;
};

// Makes a call that writes and returns its outcome (outcome_of()). The call must not suspend the task, because the mask
// is the thread's.
template <class Write>
[[nodiscard]] std::ptrdiff_t without_sigpipe(Write write) noexcept {
  held_sigpipe held;
  const std::ptrdiff_t n = write();
  if (n == -EPIPE) held.take();
  return n;
}

}  // namespace weft::inline v1::io
