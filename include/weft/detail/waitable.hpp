// Anything that can be waited for. All parking goes through this (LS-W1), and so anything waitable can be an arm of a
// select. It is public only because the operations of channels and timers live in their callers' frames.
// src/wait/README.md tells how to write one.
//
// wait.A1. publish() and unpublish() are called with the lock held, and the lock stays held from publish() until the
//     park is committed (switch, then commit, then unlock), so whoever takes the lock never meets a half-parked waiter.
//     test wait/after_the_commit_*, wait/a_wake_at_each_step_of_the_park_*
// wait.A2. unpublish() is idempotent: a waker may have taken the node off before, or it may never have been published.
//     test wait/unpublish_may_come_*
// wait.A3. Locks of several waitables are taken in the order of their addresses, each once.
//     model/select_against_select_in_both_orders, test wait/two_selects_that_list_*
#pragma once

#include <cstdint>

#include <weft/detail/config.hpp>
#include <weft/detail/wait_kind.hpp>

namespace weft::inline v1::base {
class lock;
}
namespace weft::inline v1::task {
struct parkable;
}

namespace weft::inline v1::waits {

// The entry of one wait on a list of waiters. It lies in the waiter's frame.
//
// wait.N1. A node is linked and unlinked only under the lock of the object whose list it is on, so it is never reused
//     while a waker may still look at it (LS-T2).
//     model/park, test wait/a_cancelled_waiter_does_not_swallow_*
// wait.N2. A node names its waiter and the ticket of this wait. A waker with an old ticket changes nothing (LS-T1).
//     model/park_old_ticket_*, test wait/ticket_*
struct node {
  task::parkable* who = nullptr;
  std::uint64_t ticket = 0;
  node* next = nullptr;
  node* previous = nullptr;
  std::uint32_t arm = 0;  // which arm of a select this is
  std::uint16_t place = 0;  // for an object with many lists: the list that the node is on
  bool linked = false;
  std::uint8_t mark = 0;  // for the object whose list it is: what became of the operation
};

// src/wait/wait.hpp calls these functions, in this order.
class WEFT_API waitable {
 public:
  // Called without the lock, before everything else. Finds out what own_lock() has to know.
  virtual void prepare() noexcept {}
  // The lock that protects the object and its list of waiters, or nullptr. The caller takes and releases it.
  [[nodiscard]] virtual base::lock* own_lock() noexcept = 0;
  // Called without the lock. Completes the operation if that needs no lock.
  [[nodiscard]] virtual bool try_complete() noexcept = 0;
  // Called with the lock. From now until unpublish() nothing happens to this object without its lock. A select needs
  // this when it must know that its better arms are still not ready while it takes another.
  virtual void freeze() noexcept {}
  // Called with the lock, before anything is published. Completes the operation if it can, and leaves the rest to
  // settle().
  [[nodiscard]] virtual bool try_locked() noexcept { return false; }
  // Called with the lock. Makes the node discoverable. Returns false if the operation is complete instead: then nothing
  // was published, and settle() does the rest.
  [[nodiscard]] virtual bool publish(node& n) noexcept = 0;
  // Called with the lock, after a wake that did not complete the operation, or instead of the park. Takes the node off
  // the list, if it is still there, and takes back what freeze() announced.
  virtual void unpublish(node& n) noexcept = 0;
  // Called without the lock, after unpublish() and before the wait looks again or ends, for an operation that somebody
  // else still works on, such as a kernel that has its buffer. May wait. Does not return before that work is over.
  virtual void retract() noexcept {}
  // Called without the lock. Does what the completion has left undone: moves the value, wakes the peer. May throw.
  virtual void settle() {}
  // When the operation is completed by time alone, for an outside thread, which no worker's timers wake. Nanoseconds of
  // the steady clock; INT64_MAX means never.
  [[nodiscard]] virtual std::int64_t deadline() const noexcept { return INT64_MAX; }
  // For logs and dumps, which may call it on a copy of this object's bytes. It reads nothing but members.
  [[nodiscard]] virtual subject what() const noexcept = 0;

 protected:
  waitable() = default;
  waitable(const waitable&) = default;
  waitable& operator=(const waitable&) = default;
  ~waitable() = default;
};

}  // namespace weft::inline v1::waits
