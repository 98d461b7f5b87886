// The waiters of a primitive: a FIFO of nodes, and the nodes that were claimed from it and are resumed once the lock is
// free.
//
// sync.G1. A waiter is either claimed by somebody that has something for it, or leaves by itself (cancelled, timed
//     out). Never both, because both are the claim of one word. What is meant for a waiter that cannot be claimed goes
//     to the next.                                                                         model/semaphore, model/mutex
// sync.G2. A waiter that was claimed by a release, an unlock or a signal is resumed after the waker's last access to
//     the primitive, because it may destroy the primitive. A waiter that leaves by itself (cancelled, timed out) still
//     uses the primitive until its call returns.               test sync/*_may_destroy_it, model/mutex, model/semaphore
#pragma once

#include "base/mutation.hpp"
#include "wait/fiber_wait.hpp"

namespace weft::inline v1::locks {

// Claimed waiters in their order, linked by `next`. The nodes belong to the claimer until their waiters are resumed.
class claimed_waiters {
 public:
  claimed_waiters() = default;
  claimed_waiters(const claimed_waiters&) = delete;
  claimed_waiters& operator=(const claimed_waiters&) = delete;

  void add(waits::node& n) noexcept {
    n.next = nullptr;
    *end_ = &n;
    end_ = &n.next;
  }
  void resume() noexcept {
    while (first_ != nullptr) {
      waits::node* n = first_;
      first_ = n->next;  // the waiter may reuse its node as soon as it runs
      waits::resume(*n->who);
    }
  }

 private:
  waits::node* first_ = nullptr;
  waits::node** end_ = &first_;
};

// All calls need the primitive's lock.
class waiters {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] waits::node* first() const noexcept { return head_; }

  void link_last(waits::node& n) noexcept { waits::link_last(head_, n); }
  void link_first(waits::node& n) noexcept {
    waits::node* second = head_;
    n.linked = true;
    n.next = second;
    n.previous = second == nullptr ? &n : second->previous;  // the head's `previous` is the tail
    if (second != nullptr) second->previous = &n;
    head_ = &n;
  }
  void unlink(waits::node& n) noexcept { waits::unlink(head_, n); }

  // Takes the first waiter off the list. Returns true if it is claimed; it then belongs to the caller until it is
  // resumed. Returns false if it has left already (sync.G1).
  [[nodiscard]] bool claim(waits::node& first, task::wake_reason why) noexcept {
    unlink(first);
    return base::check<"waiters.claim">(waits::claim(first, why));
  }
  [[nodiscard]] waits::node* claim_first(task::wake_reason why) noexcept {
    while (waits::node* n = head_)
      if (claim(*n, why)) return n;
    return nullptr;
  }
  void claim_all(claimed_waiters& into) noexcept {
    while (waits::node* n = claim_first(task::wake_reason::data)) into.add(*n);
  }

 private:
  waits::node* head_ = nullptr;
};

}  // namespace weft::inline v1::locks
