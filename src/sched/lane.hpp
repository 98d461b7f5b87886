// A dispatcher's core: how many of its tasks may run at once, and who waits for a turn. No threads of its own: the pool's workers
// run its tasks, and one that does so counts as blocked, so that the pool replaces it while other work waits.
//
// L1. A task of a lane is in the workers' queues, or runs, only with one of its turns. It gives it back when it parks, yields, ends
//     or moves to another lane.                                                             model/lane, test sched/dispatcher_*
// L2. First come, first served: a turn that is given back goes to the one who has waited longest, and nobody overtakes.
// L3. While somebody waits, all turns are out; so there is always one who will hand on.
// L4. Handles, and tasks on the lane, each hold a reference; the last one frees it. A worker that hands on a turn holds one
//     meanwhile: the task it does it for may be gone.
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

  // A runnable task. True: it has its turn and goes into a queue. False: whoever leaves will see to that.
  [[nodiscard]] bool enter(task::record* t) noexcept {
    base::lock_guard guard(lock_);
    if (base::check<"lane.full">(running_ == turns_)) {
      waiting_.push_back(t);
      return false;
    }
    ++running_;
    return true;
  }
  // The same for one that runs and would go on at once.
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

  // How it stands, for the monitor.
  struct load {
    std::size_t turns;
    std::size_t waiting;  // tasks, for a turn
    std::uint64_t given_back;  // turns, so far
  };
  [[nodiscard]] load look() noexcept {
    base::lock_guard guard(lock_);
    return {turns_, waiting_.size(), given_back_};
  }

  // relaxed: whoever copies a handle holds one.
  void add_reference() noexcept { references_.fetch_add(1, base::relaxed); }
  void drop_reference() noexcept {
    // The last one sees what the others did with the lane.
    if (references_.fetch_sub(1, base::order<"lane.drop">(base::acq_rel)) == 1) delete this;
  }

 private:
  const std::size_t turns_;
  base::lock lock_;
  std::size_t running_ = 0;  // turns that are out; under lock_, as the next two
  std::uint64_t given_back_ = 0;
  chain<task::record> waiting_;
  base::atomic<std::uint32_t> references_{1};
};

}  // namespace weft::inline v1::sched
