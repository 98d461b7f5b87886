#include "io/transfer.hpp"

#include <poll.h>

#include "io/watched.hpp"
#include <weft/detail/complete_until.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1::io {
namespace {

// An outside thread asks the kernel, and also waits for the close of the descriptor.
waited wait_on_this_thread(fd_record& r, side s, base::time_ns deadline, std::error_code& why) noexcept {
  const int bell = r.bell();
  if (bell < 0) {
    why = r.is_closed() ? closed_by_another() : last_error();
    return waited::failed;
  }
  pollfd both[] = {{r.fd(), static_cast<short>(s == side::read ? POLLIN | POLLRDHUP : POLLOUT), 0}, {bell, POLLIN, 0}};
  for (;;) {
    const timespec left = time_left(deadline);
    const int found = r.calls().ppoll(both, 2, deadline == base::never_ns ? nullptr : &left);
    if (found > 0) return waited::ready;
    if (found == 0) return waited::late;
    if (last_error_number() == EINTR) continue;
    why = last_error();
    return waited::failed;
  }
}

// The mark that the wait's end has left on its node says how it ended (direction.hpp).
waited ending_of(readiness& op) noexcept {
  static_assert(direction::limited == 1 && direction::late >> 1 == static_cast<int>(waited::late) &&
                direction::received >> 1 == static_cast<int>(waited::received));
  return static_cast<waited>(op.node().mark >> 1);
}

// An alarm that is set early enough is the usual case (deadline_alarm.hpp). It also rings for a deadline in the past, but
// whoever asks with such a one wants to know at once.
waited wait_until_deadline(fd_record& r, side s, const terms& t, reception* wanted) {
  bool has_alarm = r.is_alarm_set_for(s, t.deadline);
  if (!has_alarm) {
    if (base::now() >= t.deadline) {
      locks::pass_suspension_point(t.where);
      return waited::late;
    }
    has_alarm = r.set_alarm(s, t.deadline);
  }
  if (has_alarm) {
    readiness op(r, s, t.kind, t.deadline, wanted);
    locks::complete(op, t.where);
    return ending_of(op);
  }
  readiness op(r, s, t.kind);
  const detail::clock::time_point when(detail::clock::duration(t.deadline));
  return detail::complete_until(op, when, t.where) ? waited::ready : waited::late;
}

}  // namespace

void begin_disturbed(fd_record& r, std::source_location where) {
  if (r.belongs_to_parent())
    detail::throw_usage(
        "this process was forked, and the stream or listener belongs to a runtime of the parent; here it can only be "
        "closed",
        where);
  locks::pass_suspension_point(where);
}

void spend_budget_on(std::size_t bytes) noexcept {
  sched::worker* on = sched::this_worker();
  if (on == nullptr || on->current() == nullptr) return;
  for (std::size_t units = bytes / one_operation; units != 0 && on->spend_budget(); --units) {}
}

std::ptrdiff_t failed(fd_record& r, side s, int error, std::error_code& why) noexcept {
  why.assign(error, std::generic_category());
  r.in(s).pass_on();
  return -1;
}

std::ptrdiff_t concluded(fd_record& r, side s, std::size_t asked, const terms& t, const reception& got,
                         std::error_code& why) noexcept {
  if (got.outcome < 0) return failed(r, s, static_cast<int>(-got.outcome), why);
  return succeeded(r, s, asked, t, got.seen_before(r.in(s)), got.outcome);
}

waited wait_until_worth_trying(fd_record& r, side s, direction::view seen, const terms& t, std::error_code& why,
                               reception* wanted) {
  if (waits::current_task() == nullptr) return wait_on_this_thread(r, s, t.deadline, why);
  why = watch_for_this_task(r, s);
  if (why) return waited::failed;
  r.in(s).found_nothing(seen);
  if (t.deadline == base::never_ns) [[likely]] {
    readiness op(r, s, t.kind, base::never_ns, wanted);
    locks::complete(op, t.where);
    return ending_of(op);
  }
  return wait_until_deadline(r, s, t, wanted);
}

}  // namespace weft::inline v1::io
