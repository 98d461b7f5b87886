// One direction of a descriptor: whether a system call is worth trying, and who waits until it is.
//
// The kernel tells of an edge, a change, once. So it has to be remembered until a system call has found nothing more.
// Here is the protocol between the task that makes system calls and the poller that brings edges:
//
//   task    seen = look(); system call; found_nothing(seen) if it said EAGAIN, and took_all(seen) if it transferred
//           less than was asked for; the next call comes when is_worth_trying()
//   poller  tell(): counts the edge, says that it is worth trying, and wakes the first waiter
//   closer  close(): wakes everybody, for ever
//
// io.D1. No edge is lost. found_nothing() and took_all() have an effect only if no edge was counted since look(). An edge
//     that is counted later wakes whoever waits by then, because publishing and telling both hold the lock.
//     model/direction_*, test io/no_edge_*
// io.D2. An edge wakes one waiter. Whoever was woken makes its system call, or has only asked (an arm of a select), and
//     then calls pass_on(): the next waiter is woken while there is still something to try.
//     model/direction_*, test io/two_readers_*
// io.D3. An event of an earlier life of the descriptor's record changes nothing: its generation is not the present one.
//     model/direction_*, test io/a_stale_event_*
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "base/mutation.hpp"
#include "sync/waiters.hpp"

namespace weft::inline v1::io {

// How many tasks wait for events that one epoll tells of. Whoever takes a node off a direction's list counts it out.
using waiting_count = base::atomic<std::int64_t>;

class direction {
 public:
  // What look() saw: the bits and the number of edges.
  using view = std::uint32_t;
  // Marks of nodes: this is a limited_node with a deadline; and that has passed; and whoever has claimed the task has
  // also made its call (reception.hpp).
  static constexpr std::uint8_t limited = 1;
  static constexpr std::uint8_t late = 2;
  static constexpr std::uint8_t received = 4;

  direction() = default;
  direction(const direction&) = delete;
  direction& operator=(const direction&) = delete;

  // --- who makes the system call ------------------------------------------------------------------------------------
  // acquire pairs with the release in tell(): what the poller knew of the descriptor is known here.
  [[nodiscard]] view look() const noexcept { return state_.load(base::order<"direction.look">(base::acquire)); }
  [[nodiscard]] static bool is_worth_trying(view v) noexcept { return (v & (ready | closed)) != 0; }
  [[nodiscard]] static bool is_closed(view v) noexcept { return (v & closed) != 0; }
  // The system call has said EAGAIN. `seen` is what look() returned before the call. Needs a direction that the poller
  // watches; otherwise nobody would tell of the next edge. It also takes back that every further call will say
  // something: errors of a datagram socket, and the end of a FIFO, are not for ever.
  void found_nothing(view seen) noexcept { clear(seen, ready | ended); }
  // The system call has taken all there was, but perhaps not the end of the stream.
  void took_all(view seen) noexcept {
    if ((seen & ended) == 0) clear(seen, ready);
  }
  // Wakes the next waiter if there is still something to try, as io.D2 demands. It takes no lock if nobody waits, which
  // is the usual case. A waiter that publishes itself after this look has seen the state with the lock, and does not
  // wait while there is something to try.
  void pass_on() noexcept {
    if (waits_.load(base::relaxed) != 0) [[unlikely]]
      pass_on_slowly();
  }

  // --- the poller ---------------------------------------------------------------------------------------------------
  // An event has come: `for_ever` means that the other side has ended or failed, so every further system call will say
  // something, as far as is known. The first waiter is claimed and its node returned, if there is one. The node is the
  // caller's until it resumes the waiter.
  [[nodiscard]] waits::node* tell(std::uint32_t generation, bool for_ever, std::int64_t& left) noexcept;

  // --- a new descriptor ---------------------------------------------------------------------------------------------
  void open() noexcept;

  // --- with the lock ------------------------------------------------------------------------------------------------
  [[nodiscard]] base::lock& own_lock() noexcept { return lock_; }
  [[nodiscard]] bool is_waited_for() const noexcept { return !waiters_.empty(); }
  [[nodiscard]] std::uint32_t generation() const noexcept { return generation_; }
  // Events of before change nothing from now on (io.D3).
  void renew() noexcept { ++generation_; }
  // Claims those whose time is up, and returns the earliest deadline of the others (deadline_alarm.hpp).
  [[nodiscard]] base::time_ns expire(base::time_ns now, locks::claimed_waiters& all) noexcept;
  // Claims everybody who waits. A later wait ends at once.
  void close(locks::claimed_waiters& all) noexcept;
  void publish(waits::node& n, waiting_count& waiting) noexcept {
    waiting_ = &waiting;
    waiters_.link_last(n);
    waits_.store(waits_.load(base::relaxed) + 1, base::relaxed);
    // relaxed: the worker of this task sees it when it goes to sleep itself (sched/driver.hpp, is_wanted()).
    base::step<"direction.count_in">([&] { waiting.fetch_add(1, base::relaxed); });
  }
  void unpublish(waits::node& n) noexcept {
    if (!n.linked) return;  // who took it off has counted it out
    unlink(n);
    waiting_->fetch_sub(1, base::relaxed);
  }

 private:
  static constexpr view ready = 1;  // a system call is worth trying
  static constexpr view ended = 2;  // and every further one, unless one says EAGAIN
  static constexpr view closed = 4;
  static constexpr view one_edge = 8;  // the rest counts edges. It would have to wrap around during one system call.

  void clear(view seen, view bits) noexcept {
    if ((seen & closed) != 0) return;
    // relaxed: a waiter looks again with the lock, and the count in `seen` says whether an edge came in between.
    view expected = base::check<"direction.clear">(true) ? seen : state_.load(base::relaxed);
    state_.compare_exchange_strong(expected, expected & ~bits, base::relaxed, base::relaxed);
  }
  void unlink(waits::node& n) noexcept {
    waiters_.unlink(n);
    waits_.store(waits_.load(base::relaxed) - 1, base::relaxed);
  }
  // `left` becomes larger by the nodes that were taken off.
  [[nodiscard]] waits::node* claim_first(std::int64_t& left) noexcept;
  void pass_on_slowly() noexcept;

  base::lock lock_;
  base::atomic<view> state_{closed};
  std::uint32_t generation_ = 0;  // under lock_
  base::atomic<std::uint32_t> waits_{0};  // the length of the list, written under lock_
  locks::waiters waiters_;  // under lock_
  waiting_count* waiting_ = nullptr;  // under lock_: where those on the list are counted; all of them at one place
};

}  // namespace weft::inline v1::io
