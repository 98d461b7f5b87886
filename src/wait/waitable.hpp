// Anything that can be waited for. All parking goes through this (LS-W1), and so anything waitable can be a select arm.
//
// A1. publish() and unpublish() are called with the lock held, and the lock stays held from publish() until the park is
//     committed (switch, then commit, then unlock), so whoever takes the lock never meets a half-parked waiter.
// A2. unpublish() is idempotent: the node may have been taken off by a waker in between.
// A3. Locks of several waitables are taken in the order of their keys.
#pragma once

#include <cstdint>

#include "wait/node.hpp"

namespace weft::inline v1::wait {

class waitable {
 public:
  // Completes without waiting if it can. Called without the lock for a first look, and with it after unpublish() by a waiter
  // that was woken for another reason. In between publish() decides.
  [[nodiscard]] virtual bool try_complete() noexcept = 0;
  // Makes the node discoverable. False: the wait is already over (completed or closed); nothing was published.
  [[nodiscard]] virtual bool publish(node& n) noexcept = 0;
  virtual void unpublish(node& n) noexcept = 0;

  virtual void lock() noexcept = 0;
  virtual void unlock() noexcept = 0;
  [[nodiscard]] virtual std::uintptr_t order_key() const noexcept = 0;

  [[nodiscard]] virtual const char* reason() const noexcept = 0;  // for dumps: "join", "sleep", …
  [[nodiscard]] virtual const void* object() const noexcept = 0;

 protected:
  ~waitable() = default;
};

}  // namespace weft::inline v1::wait
