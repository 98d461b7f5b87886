// Fresh tasks for which there was no stack. They wait here until a stack is freed.
//
// While a task is here, workers keep no stacks for themselves (task_runner::give_stack()), and sleepers give theirs
// away (worker::give_caches_if_asked()), so that no free stack is overlooked. A worker that gives a stack back has all
// of these tasks queued anew (placement::retry_starved()). Each of them that finds no stack again comes back here.
//
// sched.SV1. A task is put here by the worker that found no stack for it, and is taken out once.
//     test sched/starved, sched/starving_*
// sched.SV2. If no stack is freed, the tasks are tried again a millisecond after the first of them came, and not at
//     full speed. Otherwise workers would pass a starving task back and forth.
//     test sched/starved
#pragma once

#include <cstddef>
#include <utility>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sched/chain.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class starved {
 public:
  static constexpr base::time_ns pause = 1'000'000;

  // Read at every look for work, and therefore without the lock. relaxed: a worker that misses a task that has just
  // come finds it at the next look (sched.SV2).
  [[nodiscard]] bool any() const noexcept { return count() != 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_.load(base::relaxed); }
  // Whether they have waited long enough to be tried again although nobody has freed a stack.
  [[nodiscard]] bool is_due(base::time_ns now) const noexcept {
    return any() && now - since_.load(base::relaxed) >= pause;
  }

  void put(task::record* t, base::time_ns now) noexcept {
    base::lock_guard guard(lock_);
    if (tasks_.empty()) since_.store(now, base::relaxed);
    tasks_.push_back(t);
    count_.store(tasks_.size(), base::relaxed);
  }
  // Takes all of them, in the order in which they came.
  [[nodiscard]] chain<task::record> take_all() noexcept {
    if (!any()) return {};
    base::lock_guard guard(lock_);
    count_.store(0, base::relaxed);
    return std::move(tasks_);
  }

 private:
  base::lock lock_;
  chain<task::record> tasks_;  // under lock_
  base::atomic<std::size_t> count_{0};
  base::atomic<base::time_ns> since_{0};  // when the first of them came
};

}  // namespace weft::inline v1::sched
