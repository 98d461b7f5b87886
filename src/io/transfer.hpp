// An operation on a descriptor: the system call first, and the wait only if it says EAGAIN.
//
// A short read or write on a descriptor for which that means "no more" is not followed by a call that would only say
// EAGAIN: the next operation waits at once (io.D1).
#pragma once

#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <system_error>

#include "base/clock.hpp"
#include "io/fd_record.hpp"
#include "io/reception.hpp"
#include "sync/caller.hpp"
#include <weft/detail/fd_handle.hpp>

namespace weft::inline v1::io {

// What an operation is called, how long it may wait, and where it was called. `few_is_all` says of an operation that
// fewer than asked for means that there is no more, though the descriptor does not say so of all its operations.
struct terms {
  terms(const waits::wait_kind& k, const limit& l, bool few_means_all = false) noexcept
      : kind(k),
        deadline(l.until.time_since_epoch().count()),
        where(l.where),
        few_is_all(few_means_all) {}
  const waits::wait_kind& kind;
  const base::time_ns deadline;
  const std::source_location where;
  const bool few_is_all;
};

inline constexpr std::size_t one_operation = std::size_t{16} << 10;  // bytes that one operation should transfer at most
// The kernel transfers at most so many bytes in one call. So this count is not short, whatever was asked for.
inline constexpr std::size_t most_in_one_call = 0x7ffff000;

// How a wait ended: another call is worth trying, the time is up, the call was made by whoever ended the wait, or the
// descriptor cannot be waited for.
enum class waited : std::uint8_t { ready, late, received, failed };

// Called during a use, after a call that has found nothing; `seen` is what the direction looked like before that call.
// If it fails, `why` says it: operation_canceled for a closed descriptor, or an error of the kernel's that keeps it from
// being watched. A cancellation point. With `wanted` the wait may end with a call that was made for the task.
[[nodiscard]] waited wait_until_worth_trying(fd_record& r, side s, direction::view seen, const terms& t,
                                             std::error_code& why, reception* wanted = nullptr);

// Whether the running task may skip a call because an earlier one has found nothing more. An outside thread may not: its
// waits look at the descriptor itself.
[[nodiscard]] inline bool may_skip(direction::view seen) noexcept {
  return !direction::is_worth_trying(seen) && waits::current_task() != nullptr;
}

[[nodiscard]] inline std::error_code closed_by_another() noexcept {
  return std::make_error_code(std::errc::operation_canceled);
}

// What an operation does first if undisturbed() says that there is something to do. Throws usage_error in the child of a
// fork, for a descriptor that belongs to a runtime of the parent.
void begin_disturbed(fd_record& r, std::source_location where);
// What an operation does first. A cancellation point, and the place where a task yields that has had its turn.
inline void begin_operation(fd_record& r, std::source_location where, std::error_code& why) {
  why.clear();
  if (waits::undisturbed() == nullptr) [[unlikely]]
    begin_disturbed(r, where);
}

// Whether a transfer of fewer bytes than were asked for says that there is no more, and the next edge will be told.
[[nodiscard]] inline bool took_all_there_was(const fd_record& r, side s, std::size_t bytes, std::size_t asked,
                                             bool short_is_all) noexcept {
  const bool is_short = bytes != 0 && bytes < asked && bytes != most_in_one_call;
  return is_short && short_is_all && r.is_watched(s);
}

// A long transfer counts as several operations, so that the tasks beside it get their turns.
void spend_budget_on(std::size_t bytes) noexcept;

// The end of an operation whose call has transferred something, or has found the end.
[[nodiscard]] inline std::ptrdiff_t succeeded(fd_record& r, side s, std::size_t asked, const terms& t,
                                              direction::view seen, std::ptrdiff_t n) noexcept {
  const auto bytes = static_cast<std::size_t>(n);
  if (took_all_there_was(r, s, bytes, asked, r.traits().short_is_all || t.few_is_all)) r.in(s).took_all(seen);
  if (asked != 0 && bytes >= one_operation) spend_budget_on(bytes);
  r.in(s).pass_on();
  return n;
}
// The end of one that has failed: returns -1.
[[nodiscard]] std::ptrdiff_t failed(fd_record& r, side s, int error, std::error_code& why) noexcept;
// The end of one whose call was made by whoever ended its wait, and has not said EAGAIN.
[[nodiscard]] std::ptrdiff_t concluded(fd_record& r, side s, std::size_t asked, const terms& t, const reception& got,
                                       std::error_code& why) noexcept;

// A call that others may make for a task that waits: recv into one buffer (reception.hpp).
template <class Call>
concept receiving = requires(const Call& c) {
  { c.wanted() } -> std::same_as<reception>;
};

// Calls call(fd) until it does not say EAGAIN, and returns what it returned: a count, or -1 with the reason in `why`. The
// call returns its error as a number below zero (outcome_of() in kernel.hpp). `asked` is how many bytes, or datagrams,
// the call would transfer at most, and 0 if it transfers nothing. A cancellation point: a cancelled operation has transferred
// nothing. When the time is up there is one more call, because an edge may not have been told yet. What was received for
// the task while it waited is its outcome, whatever has happened since: a close or a cancellation came too late.
template <class Call>
[[nodiscard]] std::ptrdiff_t transfer(fd_record& r, side s, std::size_t asked, const terms& t, std::error_code& why,
                                      Call call) {
  begin_operation(r, t.where, why);
  const use in_use(r);
  direction& d = r.in(s);
  for (bool is_late = false;;) {
    const direction::view seen = d.look();
    if (!in_use || direction::is_closed(seen)) {
      why = closed_by_another();
      return -1;
    }
    if (is_late || !may_skip(seen)) {
      const std::ptrdiff_t n = call(r.fd());
      if (n >= 0) return succeeded(r, s, asked, t, seen, n);
      if (n == -EINTR) continue;
      if (n != -EAGAIN || is_late) return failed(r, s, n == -EAGAIN ? ETIMEDOUT : static_cast<int>(-n), why);
    }
    waited end;
    if constexpr (receiving<Call>) {
      reception got = call.wanted();
      end = wait_until_worth_trying(r, s, seen, t, why, &got);
      if (end == waited::ready) [[likely]]
        continue;
      while (end == waited::received) {
        if (got.outcome != -EAGAIN) return concluded(r, s, asked, t, got, why);
        end = wait_until_worth_trying(r, s, got.seen_before(d), t, why, &got);
      }
    } else {
      end = wait_until_worth_trying(r, s, seen, t, why);
    }
    if (end == waited::failed) {
      d.pass_on();
      return -1;
    }
    is_late = end == waited::late;
  }
}

// The same, but it never waits: `why` is errc::operation_would_block if the call says EAGAIN. Not a cancellation point. The
// call is made whatever the direction looks like: there may be an edge that nobody has told of yet, because nobody polls
// while no task waits.
template <class Call>
[[nodiscard]] std::ptrdiff_t try_transfer(fd_record& r, side s, std::size_t asked, std::error_code& why, Call call) {
  const use in_use(r);
  direction& d = r.in(s);
  const direction::view seen = d.look();
  if (!in_use || direction::is_closed(seen)) {
    why = closed_by_another();
    return -1;
  }
  std::ptrdiff_t n;
  do n = call(r.fd());
  while (n == -EINTR);
  if (n == -EAGAIN) {
    if (r.is_watched(s)) d.found_nothing(seen);
    why = std::make_error_code(std::errc::operation_would_block);
    return -1;
  }
  if (took_all_there_was(r, s, static_cast<std::size_t>(n), asked, r.traits().short_is_all)) d.took_all(seen);
  d.pass_on();
  if (n >= 0) {
    why.clear();
    return n;
  }
  why.assign(static_cast<int>(-n), std::generic_category());
  return -1;
}

}  // namespace weft::inline v1::io
