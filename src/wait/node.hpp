// The list of waiters that an object keeps: nodes, each in its waiter's frame.
#pragma once

#include "task/task.hpp"
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::waits {

// A FIFO of nodes: the head's `previous` is the tail. The list is one pointer, so a record can afford it.
// link_new: the node was made as linked, with nothing behind it.
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
