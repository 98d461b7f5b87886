#include "io/child.hpp"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <cerrno>
#include <new>
#include <string>
#include <vector>

#include <weft/this_task.hpp>

namespace weft::inline v1::io {
namespace {

constexpr waits::wait_kind exit_kind{"exit of a process"};

// The pidfds of detached children that were not seen to end.
struct detached_children {
  base::lock lock;
  std::vector<int> pidfds;  // under lock
};
detached_children& all_detached() noexcept {
  static auto& all = *new detached_children;  // never destroyed: static objects may detach
  return all;
}

}  // namespace

std::optional<exit_status> reap(const kernel_calls& calls, int pidfd) noexcept {
  siginfo_t about{};
  int result;
  do result = calls.wait_pidfd(pidfd, &about, WEXITED | WNOHANG);
  while (result != 0 && last_error_number() == EINTR);
  if (result != 0) return exit_status();
  if (about.si_pid == 0) return std::nullopt;
  return about.si_code == CLD_EXITED ? exit_status::exited(about.si_status) : exit_status::signalled(about.si_status);
}

std::optional<exit_status> child::look() {
  const use in_use(record());
  base::lock_guard guard(lock_);
  if (!ended_ && in_use) ended_ = reap(record().calls(), record().fd());
  return ended_;
}

// The pidfd is readable as soon as the child has ended, and waitid is the system call of this operation.
std::optional<exit_status> child::wait(const limit& l, std::error_code& why) {
  std::optional<exit_status> how;
  (void)transfer(record(), side::read, 0, {exit_kind, l}, why, [&](int) -> std::ptrdiff_t {
    how = look();
    return how ? 0 : -EAGAIN;
  });
  return how;
}

// With the lock held, nobody reaps the child meanwhile. Whether it has ended unseen makes no difference: the signal of a
// zombie goes nowhere.
bool child::send(int signal_number, std::error_code& why) {
  why.clear();
  base::lock_guard guard(lock_);
  if (ended_) return false;
  if (record().calls().pidfd_send_signal(record().fd(), signal_number) == 0) return true;
  why = last_error();
  if (why == std::errc::no_such_process) {  // somebody else has reaped it
    why.clear();
    ended_ = exit_status();
  }
  return false;
}

void child::end() noexcept {
  if (belongs_to_parent()) return;
  std::error_code why;
  if (look() || !send(SIGKILL, why)) {
    if (why) detach();  // it may not be signalled, because it is another user's by now
    return;
  }
  if (!this_task::running()) {
    (void)wait({}, why);
  } else {
    const this_task::shield held;
    (void)wait({}, why);
  }
  if (why) detach();  // it cannot be waited for, for want of descriptors
}

void child::detach() noexcept {
  if (belongs_to_parent()) return;
  // Without memory or descriptors its status stays with the kernel until this process ends.
  try {
    detached_children& all = all_detached();
    base::lock_guard guard(all.lock);
    int& own = all.pidfds.emplace_back(-1);  // before there is something to lose
    own = record().calls().duplicate(record().fd());
    if (own < 0) all.pidfds.pop_back();
  } catch (const std::bad_alloc&) {}
}

void sweep_detached() noexcept {
  detached_children& all = all_detached();
  base::lock_guard guard(all.lock);
  std::erase_if(all.pidfds, [](int pidfd) {
    if (!reap(real_kernel(), pidfd)) return false;
    real_kernel().close(pidfd);
    return true;
  });
}

}  // namespace weft::inline v1::io

namespace weft::inline v1 {

std::string exit_status::to_string() const {
  if (const auto c = code()) return "exited with code " + std::to_string(*c);
  if (const auto s = signal()) {
    const char* name = ::sigdescr_np(*s);
    return "ended by signal " + std::to_string(*s) + (name == nullptr ? "" : std::string(" (") + name + ")");
  }
  return "ended, and somebody else has taken its status";
}

}  // namespace weft::inline v1
