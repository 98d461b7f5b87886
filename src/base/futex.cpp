#include "base/atomic.hpp"

#if !defined(WEFT_MODEL)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace weft::inline v1::base {
namespace {

// A waker or a timed-out sleeper must not disturb the errno of the code around it.
class keep_errno {
 public:
  keep_errno() : saved_(errno) {}
  ~keep_errno() { errno = saved_; }
  keep_errno(const keep_errno&) = delete;
  keep_errno& operator=(const keep_errno&) = delete;

 private:
  int saved_;
};

}  // namespace

void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, time_ns deadline) noexcept {
  keep_errno keep;
  timespec limit{};
  if (deadline != never_ns) {
    if (deadline < 0) deadline = 0;
    limit.tv_sec = deadline / 1'000'000'000;
    limit.tv_nsec = deadline % 1'000'000'000;
  }
  // WAIT_BITSET takes an absolute CLOCK_MONOTONIC time, so a spurious return does not prolong the wait.
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, deadline == never_ns ? nullptr : &limit, nullptr,
            FUTEX_BITSET_MATCH_ANY);
}

void futex_wake(atomic<std::uint32_t>* word, int count) noexcept {
  keep_errno keep;
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

}  // namespace weft::inline v1::base
#endif
