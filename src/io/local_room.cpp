#include "io/local_room.hpp"

#include <algorithm>

#include "io/watched.hpp"
#include <weft/detail/clock.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1::io {
namespace {

// Waits until a socket that is connected with the receiver is writable.
std::error_code wait_beside(const net::endpoint& receiver, const waits::wait_kind& kind, const limit& l) {
  std::error_code why;
  const fd_handle beside = open_socket(AF_UNIX, SOCK_DGRAM, {}, why);
  if (why) return why;
  fd_record& r = beside.record();
  if (r.calls().connect(r.fd(), receiver.data(), receiver.size()) != 0) return last_error();
  (void)transfer(r, side::write, 0, {kind, l}, why, [&](int) noexcept { return ask_kernel(r, side::write); });
  return why;
}

}  // namespace

std::error_code wait_for_room_at(const net::endpoint& receiver, fd_record& r, direction::view seen, const terms& t) {
  using time_point = detail::clock::time_point;
  const time_point deadline{detail::clock::duration(t.deadline)};
  const time_point now = detail::clock_now();
  const limit look{std::min<time_point>(deadline, now + longest_look_away), t.where};
  if (ask_kernel(r, side::write) != 0) {
    std::error_code why;
    (void)wait_until_worth_trying(r, side::write, seen, {t.kind, look}, why);
    return why;
  }
  // The sender itself is ready, so whoever waits for it behind this one is to be woken (io.D2).
  r.in(side::write).pass_on();
  // If there is no other socket, because the process has no more descriptors or the receiver is gone, then the next
  // send tells what is wrong, or there is another wait.
  if (const std::error_code why = wait_beside(receiver, t.kind, look); why && why != std::errc::timed_out)
    sleep_until(std::min<time_point>(deadline, now + std::chrono::milliseconds(1)), t.where);
  return {};
}

}  // namespace weft::inline v1::io
