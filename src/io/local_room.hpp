// Sending datagrams to Unix sockets by address.
//
// Such a send says EAGAIN for one of two reasons: the sender's own buffer is full, or the receiver has as many datagrams
// as it takes. The kernel tells the sender of an edge in the first case only. In the second case poll(2) says all the
// time that the sender is writable, because it is, for other receivers. So these sends do not skip a call because an
// earlier one has found no room, and do not take EAGAIN for an answer about the descriptor.
//
// A socket that is connected with the receiver is told when the receiver has room. So whoever has to wait for a receiver
// connects another socket with it, and waits for that one.
//
// Rejected: trying again after a pause. The receiver usually has room after microseconds, and a queue has ten places.
// Rejected: connecting the sender itself. It would then receive from that one address only.
#pragma once

#include <chrono>
#include <cstddef>
#include <system_error>

#include "io/socket.hpp"
#include "io/transfer.hpp"

namespace weft::inline v1::io {

// Nobody who closes the sender wakes those who wait for a receiver, so they look after this time. It also covers the
// case that the sender's buffer is nearly full and another receiver, which does not read, keeps it so.
inline constexpr std::chrono::milliseconds longest_look_away{10};

// Called during a use of `r`, after a call that has said EAGAIN; `seen` is what its direction looked like before that
// call. Returns when another call is worth trying, or some time later; with an error if the wait is not possible.
[[nodiscard]] std::error_code wait_for_room_at(const net::endpoint& receiver, fd_record& r, direction::view seen,
                                               const terms& t);

// As transfer() on the writing side, for a call that sends to `receiver` first.
template <class Call>
[[nodiscard]] std::ptrdiff_t send_to_local(fd_record& r, const net::endpoint& receiver, const terms& t,
                                           std::error_code& why, Call call) {
  begin_operation(r, t.where, why);
  const use in_use(r);
  direction& d = r.in(side::write);
  std::ptrdiff_t n = -1;
  while (!why) {
    const direction::view seen = d.look();
    if (!in_use || direction::is_closed(seen)) {
      why = closed_by_another();
      break;
    }
    n = call(r.fd());
    if (n >= 0) break;
    if (n == -EAGAIN && base::now() >= t.deadline)
      why = std::make_error_code(std::errc::timed_out);
    else if (n == -EAGAIN)
      why = wait_for_room_at(receiver, r, seen, t);
    else if (n != -EINTR)
      why = std::error_code(static_cast<int>(-n), std::generic_category());
  }
  d.pass_on();
  return why ? -1 : n;
}

}  // namespace weft::inline v1::io
