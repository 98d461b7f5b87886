// The core of a dispatcher: how many of its tasks may run at once, and which tasks wait for a turn. It has no threads
// of its own. The pool's workers run its tasks, and a worker that does so counts as blocked, so that the pool replaces
// it while other work waits.
//
// sched.L1. A task of a lane is in the workers' queues, or runs, only while it has one of the lane's turns. It gives
//     the turn back when it parks, yields, ends or moves to another lane.
//     model/lane, test sched/dispatcher_*
// sched.L2. First come, first served: a turn that is given back goes to the task that has waited longest, and nobody
//     overtakes.
//     model/lane, test sched/custom_starts_its_tasks_*
// sched.L3. While a task waits, all turns are out. So there is always a task that will hand its turn on.
//     model/lane
// sched.L4. Each handle and each task on the lane holds a reference, and the last one frees the lane. A worker that
//     hands on a turn holds a reference meanwhile, because the task for which it does so may be gone.
//     model/lane_goes_with_its_last_reference
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sched/chain.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class lane {
 public:
  explicit lane(std::size_t turns) noexcept : turns_(turns) {}
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  // Called for a runnable task. If it returns true, the task has its turn and the caller queues it. Otherwise whoever
  // leaves the lane will queue it.
  [[nodiscard]] bool enter(task::record* t) noexcept {
    base::lock_guard guard(lock_);
    if (base::check<"lane.full">(running_ == turns_)) {
      waiting_.push_back(t);
      return false;
    }
    ++running_;
    return true;
  }
  // The same for a running task, which continues at once if it gets a turn.
  [[nodiscard]] bool try_enter() noexcept {
    base::lock_guard guard(lock_);
    if (base::check<"lane.try">(running_ == turns_)) return false;
    ++running_;
    return true;
  }
  // Gives a turn back. The caller queues the task that gets it, if any.
  [[nodiscard]] task::record* leave() noexcept {
    base::lock_guard guard(lock_);
    task::record* next = base::check<"lane.hand_on">(!waiting_.empty()) ? waiting_.pop_front() : nullptr;
    if (next == nullptr) --running_;
    ++given_back_;
    return next;
  }

  // The state of the lane, for the monitor.
  struct load {
    std::size_t turns;
    std::size_t waiting;  // tasks that wait for a turn
    std::uint64_t given_back;  // turns that were given back so far
  };
  [[nodiscard]] load look() noexcept {
    base::lock_guard guard(lock_);
    return {turns_, waiting_.size(), given_back_};
  }

  // relaxed: whoever copies a handle holds a reference already.
  void add_reference() noexcept { references_.fetch_add(1, base::relaxed); }
  void drop_reference() noexcept {
    // acq_rel: whoever drops the last reference sees what the others did with the lane.
    if (references_.fetch_sub(1, base::order<"lane.drop">(base::acq_rel)) == 1) delete this;
  }

 private:
  const std::size_t turns_;
  base::lock lock_;
  std::size_t running_ = 0;  // turns that are out; under lock_, like the next two
  std::uint64_t given_back_ = 0;
  chain<task::record> waiting_;
  base::atomic<std::uint32_t> references_{1};
};

}  // namespace weft::inline v1::sched
