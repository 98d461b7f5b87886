// Anything that can be waited for. All parking goes through this (LS-W1), and so anything waitable can be an arm of a select.
// Public only because the operations of channels and timers live in their callers' frames.
//
// A1. publish() and unpublish() are called with the lock held, and the lock stays held from publish() until the park is
//     committed (switch, then commit, then unlock), so whoever takes the lock never meets a half-parked waiter.
// A2. unpublish() is idempotent: the node may have been taken off by a waker in between.
// A3. Locks of several waitables are taken in the order of their addresses, each once.
#pragma once

#include <cstdint>

#include <weft/detail/config.hpp>

namespace weft::inline v1::base {
class lock;
}
namespace weft::inline v1::task {
struct parkable;
}

namespace weft::inline v1::waits {

// One entry of somebody's wait on a list of waiters.
//
// N1. Linked and unlinked only under the lock of the object whose list it is on, so it is never reused while a waker may
//     still look at it (LS-T2).                                                    test wait/node_*
// N2. It names its waiter and the ticket of this wait; a waker with an old ticket changes nothing (LS-T1). model/ticket
struct node {
  task::parkable* who = nullptr;
  std::uint64_t ticket = 0;
  node* next = nullptr;
  node* previous = nullptr;
  std::uint32_t arm = 0;  // which arm of a select this is
  std::uint16_t place = 0;  // for an owner of many lists: which it is on
  bool linked = false;
  bool unused = false;  // makes eight bytes of these, which are written at once
};

class WEFT_API waitable {
 public:
  // Without the lock, before anything else: what is needed to know which lock it is.
  virtual void prepare() noexcept {}
  // Without the lock: completes at once if that takes no lock.
  [[nodiscard]] virtual bool try_complete() noexcept = 0;
  // With the lock: from now until unpublish() nothing happens to this object without its lock. For a select that must know that
  // its better arms are still not ready when it takes another.
  virtual void freeze() noexcept {}
  // With the lock, before anything is published: completes if it can; settle() does the rest.
  [[nodiscard]] virtual bool try_locked() noexcept { return false; }
  // With the lock: makes the node discoverable. False: it could complete instead, or has; nothing was published, and
  // settle() does the rest.
  [[nodiscard]] virtual bool publish(node& n) noexcept = 0;
  virtual void unpublish(node& n) noexcept = 0;
  // What completing under the lock left to be done without any: move the value, wake the peer. May throw.
  virtual void settle() {}

  virtual void lock() noexcept = 0;
  virtual void unlock() noexcept = 0;
  // What these two take and release, for a select, which has many of them to take; nullptr: nothing.
  [[nodiscard]] virtual base::lock* own_lock() noexcept = 0;
  // For a waiter that has no wheel to be woken by: an outside thread. Steady clock, nanoseconds; INT64_MAX is never.
  [[nodiscard]] virtual std::int64_t deadline() const noexcept { return INT64_MAX; }

  [[nodiscard]] virtual const char* reason() const noexcept = 0;  // for dumps: "join", "sleep", …
  [[nodiscard]] virtual const void* object() const noexcept = 0;

 protected:
  waitable() = default;
  waitable(const waitable&) = default;
  waitable& operator=(const waitable&) = default;
  ~waitable() = default;
};

}  // namespace weft::inline v1::waits
