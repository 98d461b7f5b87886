// Waiting for the end of a task: any number of tasks and threads, before or after the end.
//
// wait.J1. A joiner is woken exactly once, when the result is complete.
//     model/join, test wait/join_*
// wait.J2. The record is not recycled while a joiner or the finishing task touches it. The joiner's handle holds a
//     reference, and the finisher drops the scheduler's own reference last.
//     Others may wait for the same end without holding a reference. Once the end has woken them they do not touch the
//     record again. One that was cancelled takes the record's lock once more, even if the record was recycled
//     meanwhile, and finds its node unlinked.
//     model/join, test api/those_who_wait_*
#pragma once

#include "wait/fiber_wait.hpp"

namespace weft::inline v1::waits {

extern const wait_kind join_kind;

class join_wait final : public waitable {
 public:
  static constexpr bool waits_for_tasks = true;
  explicit join_wait(task::record& target) noexcept : target_(target) {}

  bool try_complete() noexcept override { return task::state_word::is_final(target_.word.load()); }
  // A finisher that sees has-joiners takes the join lock before it looks at the list, so it finds the node.
  // add_joiner() returns false if the task has ended already: nobody looks at the list any more.
  bool publish(node& n) noexcept override {
    link_last(target_.join_list, n);
    if (target_.word.add_joiner()) return true;
    unlink(target_.join_list, n);
    return false;
  }
  void unpublish(node& n) noexcept override { unlink(target_.join_list, n); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &target_.join_lock; }
  [[nodiscard]] subject what() const noexcept override { return {&join_kind, &target_}; }

 private:
  task::record& target_;
};

}  // namespace weft::inline v1::waits
