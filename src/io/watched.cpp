#include "io/watched.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "sched/scheduler.hpp"

namespace weft::inline v1::io {

std::error_code watch_for_this_task(fd_record& r, side s) noexcept {
  sched::driver* d = sched::this_worker()->owner().polling().polled();
  if (d == nullptr) return std::make_error_code(std::errc::operation_not_supported);
  return r.is_watched_by(*d, s) && !r.traits().borrowed ? std::error_code() : r.watch(*d, s);
}

int ask_kernel(fd_record& r, side s) noexcept {
  pollfd p{r.fd(), static_cast<short>(s == side::read ? POLLIN | POLLRDHUP : POLLOUT), 0};
  const timespec at_once{};
  int ready;
  do ready = r.calls().ppoll(&p, 1, &at_once);
  while (ready < 0 && last_error_number() == EINTR);
  if (ready <= 0) return -EAGAIN;
  return (p.revents & POLLNVAL) != 0 ? -EBADF : 0;
}

timespec time_left(base::time_ns deadline) noexcept {
  constexpr base::time_ns second = 1'000'000'000;
  const base::time_ns ns = std::max<base::time_ns>(0, deadline - base::now());
  return {.tv_sec = static_cast<time_t>(ns / second), .tv_nsec = static_cast<long>(ns % second)};
}

}  // namespace weft::inline v1::io
