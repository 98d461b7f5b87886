// Tasks that other threads hand over to one worker. Anybody pushes; the owner or a thief takes all of them.
//
// sched.N1. A task pushed is taken exactly once, in the order pushed.
//     model/inbox, test sched/inbox_*
#pragma once

#include "base/atomic.hpp"
#include "sched/chain.hpp"

namespace weft::inline v1::sched {

template <class Task>
class inbox {
 public:
  void push(Task* t) noexcept {
    Task* newest = newest_.load(base::relaxed);
    do t->next = newest;
    // Publishes the task and its link; pairs with the acquire in take_all(). A failed attempt reads nothing through the
    // link.
    while (!newest_.compare_exchange_weak(newest, t, base::order<"inbox.push">(base::release), base::relaxed));
  }

  // Takes everything, oldest first. One exchange takes the whole list, so there is no ABA problem.
  [[nodiscard]] chain<Task> take_all() noexcept {
    chain<Task> in_order;
    if (empty()) return in_order;
    // Pairs with the release of every push: each read-modify-write continues the release sequence.
    Task* t = newest_.exchange(nullptr, base::order<"inbox.take">(base::acquire));
    Task* reversed = nullptr;
    while (t != nullptr) {
      Task* older = t->next;
      t->next = reversed;
      reversed = t;
      t = older;
    }
    while (reversed != nullptr) {
      Task* newer = reversed->next;
      in_order.push_back(reversed);
      reversed = newer;
    }
    return in_order;
  }

  [[nodiscard]] bool empty() const noexcept { return newest_.load(base::relaxed) == nullptr; }

 private:
  base::atomic<Task*> newest_{nullptr};
};

}  // namespace weft::inline v1::sched
