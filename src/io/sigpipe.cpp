#include "io/sigpipe.hpp"

#include <signal.h>

#include <ctime>

namespace weft::inline v1::io {
namespace {

sigset_t only_sigpipe() noexcept {
  sigset_t one;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGPIPE);
  return one;
}

}  // namespace

held_sigpipe::held_sigpipe() noexcept {
  const sigset_t one = only_sigpipe();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &one, &before);
  was_blocked_ = ::sigismember(&before, SIGPIPE) == 1;
  if (!was_blocked_) return;  // a pending one would have been delivered
  sigset_t pending;
  ::sigpending(&pending);
  was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
}

void held_sigpipe::take() noexcept {
  if (was_pending_) return;
  const sigset_t one = only_sigpipe();
  const timespec at_once{};
  while (::sigtimedwait(&one, nullptr, &at_once) < 0 && errno == EINTR) {}
}

held_sigpipe::~held_sigpipe() {
  if (was_blocked_) return;
  const sigset_t one = only_sigpipe();
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

}  // namespace weft::inline v1::io
