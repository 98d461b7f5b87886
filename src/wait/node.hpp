// The list of waiters that an object keeps: nodes, each in its waiter's frame.
#pragma once

#include "task/task.hpp"
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::waits {

// A list is a FIFO of nodes and is one pointer wide, so that a task record can afford one: the `previous` of the head
// is the tail. All three functions are called with the lock of the list's object held (wait.N1).

// Appends a node that the caller has initialised as linked and without a successor.
inline void link_new(node*& head, node& n) noexcept {
  if (head == nullptr) [[likely]] {
    head = &n;
    n.previous = &n;
    return;
  }
  n.previous = head->previous;
  head->previous->next = &n;
  head->previous = &n;
}

inline void link_last(node*& head, node& n) noexcept {
  n.linked = true;
  n.next = nullptr;
  link_new(head, n);
}

// Does nothing to a node that a waker has taken off already (wait.A2).
inline void unlink(node*& head, node& n) noexcept {
  if (!n.linked) return;
  n.linked = false;
  if (head == &n)
    head = n.next;
  else
    n.previous->next = n.next;
  if (n.next != nullptr)
    n.next->previous = n.previous;
  else if (head != nullptr)
    head->previous = n.previous;
}

}  // namespace weft::inline v1::waits
