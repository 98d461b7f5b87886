// An unbounded FIFO under a lock, entered in batches: for overflow and for tasks that come from outside.
//
// sched.G1. The queue is a FIFO, and a batch goes in or out under one lock.
//     test sched/global_queue_*, model/global_queue
// sched.G2. `size_` may be read without the lock. Zero means that nothing is inside whose push happened before the
//     read.
//     model/global_told_of_a_task_finds_it
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "sched/chain.hpp"

namespace weft::inline v1::sched {

template <class Task>
class global_queue {
 public:
  static constexpr std::size_t min_batch = 4;
  static constexpr std::size_t max_batch = 64;

  void push(chain<Task>&& batch) noexcept {
    if (batch.empty()) return;
    base::lock_guard guard(lock_);
    tasks_.append(std::move(batch));
    // release pairs with the acquire in size(): a worker that sees the count finds the tasks.
    size_.store(tasks_.size(), base::release);
  }
  void push(Task* t) noexcept {
    chain<Task> one;
    one.push_back(t);
    push(std::move(one));
  }

  // Takes one worker's fair share of what is there: between min_batch and max_batch tasks if there are so many, and at
  // most `most`.
  [[nodiscard]] chain<Task> take_share(std::size_t workers, std::size_t most = max_batch) noexcept {
    chain<Task> share;
    if (size() == 0) return share;
    base::lock_guard guard(lock_);
    std::size_t n = std::clamp(tasks_.size() / std::max<std::size_t>(workers, 1), min_batch, max_batch);
    n = std::min(n, most);
    while (n-- > 0) {
      Task* t = tasks_.pop_front();
      if (t == nullptr) break;
      share.push_back(t);
    }
    size_.store(tasks_.size(), base::release);
    return share;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_.load(base::acquire); }

 private:
  alignas(base::cache_line) base::lock lock_;
  chain<Task> tasks_;
  alignas(base::cache_line) base::atomic<std::size_t> size_{0};
};

}  // namespace weft::inline v1::sched
