// Waiting for the end of a task: any number of tasks and threads, before or after the end.
//
// J1. A joiner is woken exactly once, when the result is complete.                model/join, test wait/join_*
// J2. The record is not recycled while a joiner or the finisher touches it: the joiner has a reference by its handle, the
//     finisher the scheduler's own, which it drops last.                          model/join
//     Those who wait beside the one who joins touch it no more once they were woken by the end; one that was cancelled takes
//     its lock once more, recycled or not, and finds its node unlinked. test api/those_who_wait_*
#pragma once

#include "wait/fiber_wait.hpp"

namespace weft::inline v1::waits {

class join_wait final : public waitable {
 public:
  static constexpr bool waits_for_tasks = true;
  explicit join_wait(task::record& target) noexcept : target_(target) {}

  bool try_complete() noexcept override { return task::state_word::is_final(target_.word.load()); }
  bool publish(node& n) noexcept override {
    link_last(target_.join_list, n);
    if (target_.word.add_joiner()) return true;
    unlink(target_.join_list, n);
    return false;
  }
  void unpublish(node& n) noexcept override { unlink(target_.join_list, n); }
  void lock() noexcept override { target_.join_lock.acquire(); }
  void unlock() noexcept override { target_.join_lock.release(); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &target_.join_lock; }
  [[nodiscard]] const char* reason() const noexcept override { return "join"; }
  [[nodiscard]] const void* object() const noexcept override { return &target_; }
  [[nodiscard]] const task::record& target() const noexcept { return target_; }

 private:
  task::record& target_;
};

}  // namespace weft::inline v1::waits
