// The run queue of tasks that have never run and have no place in the ring. The owner takes the newest first, thieves
// take the oldest first. It is a bounded deque after Chase and Lev.
//
// A fork tree thus goes depth-first on its worker and its memory stays small, while a thief takes the oldest, which is
// the largest subtree (docs/decisions/0004-two-local-queues.md has the figures).
//
// sched.D1. A task pushed is popped or stolen exactly once.
//     model/fresh_deque, test sched/fresh_deque_*
// sched.D2. The owner and a thief meet only at the last task; the CAS on top_ decides.
//     model/fresh_last_task_*
// sched.D3. A slot is overwritten only after top_ has passed it. A thief that has read it by then loses its CAS.
//     model/fresh_*wrap_*
// sched.D4. The owner takes a run of the newest tasks as it takes one: bottom_ goes back over all of them, and only the
//     task at top_ can also be claimed by a thief.
//     model/fresh_deque, test sched/fresh_deque_*
//
// Rejected: taking half in one claim as in ring.hpp. The owner pops without a CAS while more than one task is left, so
// a thief that claims several at once could claim what the owner has just popped.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "sched/chain.hpp"

namespace weft::inline v1::sched {

template <class Task>
class fresh_deque {
 public:
  static constexpr std::size_t default_capacity = 256;

  explicit fresh_deque(std::size_t capacity = default_capacity)  // a power of two, 2 at least
      : mask_(capacity - 1),
        slots_(std::make_unique<base::atomic<Task*>[]>(capacity)) {}
  fresh_deque(const fresh_deque&) = delete;
  fresh_deque& operator=(const fresh_deque&) = delete;

  // --- owner only -------------------------------------------------------------------------------------------------
  // Adds the newest task, if there is room. `seemed_empty` says that the deque was empty before. It may be false
  // although thieves have emptied the deque.
  [[nodiscard]] bool try_push(Task* t, bool& seemed_empty) noexcept {
    const std::int64_t bottom = bottom_.load(base::relaxed);
    if (bottom - top_seen_ >= static_cast<std::int64_t>(mask_ + 1)) [[unlikely]] {
      // acquire pairs with the CAS of steal(): a slot that a thief has read may be overwritten (sched.D3).
      top_seen_ = top_.load(base::order<"fresh.push.top">(base::acquire));
      if (bottom - top_seen_ >= static_cast<std::int64_t>(mask_ + 1)) return false;
    }
    seemed_empty = bottom == top_seen_;
    slots_[index(bottom)].store(t, base::relaxed);
    // Publishes the slot and the task; pairs with the acquire of bottom_ in steal().
    bottom_.store(bottom + 1, base::order<"fresh.push.bottom">(base::release));
    return true;
  }
  // Adds the newest task. A full deque hands its older half to `overflow` first.
  void push(Task* t, chain<Task>& overflow) noexcept {
    bool seemed_empty = false;
    while (!try_push(t, seemed_empty)) [[unlikely]]
      for (std::size_t i = 0; i < (mask_ + 1) / 2; ++i)
        if (Task* oldest = steal()) overflow.push_back(oldest);
  }

  // The answer stays right while the owner does nothing: top_ only grows, and only the owner moves bottom_.
  [[nodiscard]] bool is_surely_empty() const noexcept { return bottom_.load(base::relaxed) <= top_seen_; }
  // Takes the newest task.
  [[nodiscard]] Task* pop() noexcept {
    const std::int64_t bottom = bottom_.load(base::relaxed) - 1;
    if (bottom < top_seen_) return nullptr;  // surely empty
    // release as in try_push(): a thief that reads this store relies on it for the older slots. C++20 does not count a
    // relaxed store by the same thread as part of the release sequence of try_push(). Found by model/fresh_deque.
    bottom_.store(bottom, base::order<"fresh.pop.bottom">(base::release));
    // Our bottom_ is visible before we read top_; the mirror is in steal(). Either the thief sees that we took the
    // slot, or we see that it took it. Guard: model/fresh_deque.
    base::step<"fresh.pop.fence">([] { base::fence_seq_cst(); });
    // acquire as in try_push(), because top_seen_ becomes this value.
    std::int64_t top = top_seen_ = top_.load(base::order<"fresh.pop.top">(base::acquire));
    Task* t = nullptr;
    if (top <= bottom) {
      t = slots_[index(bottom)].load(base::relaxed);
      if (top < bottom) return t;
      // This is the last task (sched.D2). The task is our own push, and the fence above makes the CAS a release for
      // thieves. acquire for the failure, as in try_push().
      if (!base::check<"fresh.pop.last">(
              top_.compare_exchange_strong(top, top + 1, base::acquire, base::order<"fresh.pop.lost">(base::acquire))))
        t = nullptr;
      top_seen_ = bottom + 1;  // taken, by us or by a thief
    }
    bottom_.store(bottom + 1, base::relaxed);
    return t;
  }

  // Takes the newest tasks, at most `most`, and gives them to `take`, the oldest of them first (sched.D4).
  template <class Take>
  void pop_newest(std::size_t most, Take&& take) noexcept {
    const std::int64_t bottom = bottom_.load(base::relaxed);
    std::int64_t from = std::max(bottom - static_cast<std::int64_t>(most), top_seen_);
    if (from >= bottom) return;
    bottom_.store(from, base::order<"fresh.newest.bottom">(base::release));  // release as in pop()
    // As in pop(): a thief that does not see this bottom_ has read a top_ that is no further than the one we read now.
    base::step<"fresh.newest.fence">([] { base::fence_seq_cst(); });
    std::int64_t top = top_seen_ = top_.load(base::order<"fresh.newest.top">(base::acquire));  // acquire as in pop()
    if (top >= from) {
      // Thieves have come as far as the tasks that we want. At most one thief can still take a task, the one at top_,
      // and the CAS decides who gets it. A thief that comes later sees our bottom_ and finds nothing.
      const bool ours =
          top == bottom || base::check<"fresh.newest.last">(top_.compare_exchange_strong(
                               top, bottom, base::acquire, base::order<"fresh.newest.lost">(base::acquire)));
      from = top;  // if a thief's CAS came first, it has moved top_ one further
      top_seen_ = ours ? bottom : top;
      bottom_.store(top_seen_, base::relaxed);
    }
    for (; from < bottom; ++from) take(slots_[index(from)].load(base::relaxed));
  }

  // --- anybody ----------------------------------------------------------------------------------------------------
  // Takes the oldest task. Returns nullptr if there is none or if somebody else was faster.
  [[nodiscard]] Task* steal() noexcept {
    std::int64_t top = top_.load(base::relaxed);
    // Mirror of the fence in pop(). The fence also makes the load above an acquire, which pairs with the CAS of other
    // thieves, so that bottom_ is not read from before that CAS.
    base::step<"fresh.steal.fence">([] { base::fence_seq_cst(); });
    // Pairs with the release in try_push(): the slot and its task are complete.
    const std::int64_t bottom = bottom_.load(base::order<"fresh.steal.bottom">(base::acquire));
    if (top >= bottom) return nullptr;
    Task* t = slots_[index(top)].load(base::relaxed);
    // release: our read of the slot comes before the owner overwrites it. Pairs with the acquires of top_ in try_push()
    // and pop().
    if (!top_.compare_exchange_strong(top, top + 1, base::order<"fresh.steal.cas">(base::seq_cst), base::relaxed))
      return nullptr;
    return t;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    const std::int64_t n = bottom_.load(base::acquire) - top_.load(base::acquire);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

 private:
  [[nodiscard]] std::size_t index(std::int64_t position) const noexcept {
    return static_cast<std::size_t>(position) & mask_;
  }

  alignas(base::cache_line) base::atomic<std::int64_t> top_{0};
  alignas(base::cache_line) base::atomic<std::int64_t> bottom_{0};
  // What the owner has last seen of top_, which lies on a line that thieves write. It is never further than top_.
  std::int64_t top_seen_ = 0;
  const std::size_t mask_;
  const std::unique_ptr<base::atomic<Task*>[]> slots_;
};

}  // namespace weft::inline v1::sched
