// A wait node: one entry of somebody's wait on a list of waiters. Lives in the waiter's frame.
//
// N1. Linked and unlinked only under the lock of the object whose list it is on, so it is never reused while a waker may
//     still look at it (LS-T2).                                                    test wait/node_*
// N2. It names its waiter and the ticket of this wait; a waker with an old ticket changes nothing (LS-T1). model/ticket
#pragma once

#include "task/task.hpp"

namespace weft::inline v1::wait {

struct node {
  task::parkable* who = nullptr;
  task::ticket ticket = 0;
  node* next = nullptr;
  node* previous = nullptr;
  bool linked = false;
};

// A FIFO of nodes: the head's `previous` is the tail. The list is one pointer, so a record can afford it.
inline void link_last(node*& head, node& n) noexcept {
  n.linked = true;
  n.next = nullptr;
  if (head == nullptr) {
    head = &n;
    n.previous = &n;
    return;
  }
  n.previous = head->previous;
  head->previous->next = &n;
  head->previous = &n;
}

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

}  // namespace weft::inline v1::wait
