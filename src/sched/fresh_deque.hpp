// The run queue of tasks that have never run and have no place in the ring: newest first for the owner, oldest first for thieves
// (Chase and Lev, bounded).
//
// A fork tree thus goes depth-first on its worker and its memory stays small, while a thief takes the oldest, which is
// the largest subtree (docs/decisions/0004-two-local-queues.md has the figures).
//
// D1. A task pushed is popped or stolen exactly once.                       model/fresh_deque, test sched/fresh_deque_*
// D2. The owner and a thief meet only at the last task; the CAS on top_ decides.
// D3. A slot is overwritten only after top_ has passed it, and then a thief that read it loses its CAS.
// D4. The owner takes a run of the newest as it takes one: bottom_ goes back over all of them, and only the task at top_ can be a
//     thief's as well.                                                     model/fresh_deque, test sched/fresh_deque_*
//
// Rejected: taking half in one claim as in ring.hpp. The owner pops without a CAS while more than one is left, so a thief
// that claims several at once could claim what the owner has just popped.
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
  // Adds the newest, if there is room. `seemed_empty`: it was the only one then; false may be out of date.
  [[nodiscard]] bool try_push(Task* t, bool& seemed_empty) noexcept {
    const std::int64_t bottom = bottom_.load(base::relaxed);
    if (bottom - top_seen_ >= static_cast<std::int64_t>(mask_ + 1)) [[unlikely]] {
      // acquire pairs with the CAS of steal(): a slot it has read may be overwritten (D3).
      top_seen_ = top_.load(base::order<"fresh.push.top">(base::acquire));
      if (bottom - top_seen_ >= static_cast<std::int64_t>(mask_ + 1)) return false;
    }
    seemed_empty = bottom == top_seen_;
    slots_[index(bottom)].store(t, base::relaxed);
    // Publishes the slot and the task; pairs with the acquire of bottom_ in steal().
    bottom_.store(bottom + 1, base::order<"fresh.push.bottom">(base::release));
    return true;
  }
  // Adds the newest. A full deque hands its older half to `overflow` first.
  void push(Task* t, chain<Task>& overflow) noexcept {
    bool seemed_empty = false;
    while (!try_push(t, seemed_empty)) [[unlikely]]
      for (std::size_t i = 0; i < (mask_ + 1) / 2; ++i)
        if (Task* oldest = steal()) overflow.push_back(oldest);
  }

  // top_ only grows.
  [[nodiscard]] bool is_surely_empty() const noexcept { return bottom_.load(base::relaxed) <= top_seen_; }
  // The newest.
  [[nodiscard]] Task* pop() noexcept {
    const std::int64_t bottom = bottom_.load(base::relaxed) - 1;
    if (bottom < top_seen_) return nullptr;  // surely empty
    // release as in push(): a thief that reads this store relies on it for the older slots. C++20 does not count a relaxed
    // store by the same thread as part of push()'s release sequence. Found by model/fresh_deque.
    bottom_.store(bottom, base::order<"fresh.pop.bottom">(base::release));
    // Our bottom_ is visible before we read top_; the mirror is in steal(). Either the thief sees that we took the slot,
    // or we see that it took it. Guard: model/fresh_deque.
    base::step<"fresh.pop.fence">([] { base::fence_seq_cst(); });
    // acquire as in try_push(): it is what top_seen_ becomes.
    std::int64_t top = top_seen_ = top_.load(base::order<"fresh.pop.top">(base::acquire));
    Task* t = nullptr;
    if (top <= bottom) {
      t = slots_[index(bottom)].load(base::relaxed);
      if (top < bottom) return t;
      // The last one: D2. The task is our own push, and the fence above makes this a release for thieves. acquire, for the
      // failure, as in try_push().
      if (!base::check<"fresh.pop.last">(
              top_.compare_exchange_strong(top, top + 1, base::acquire, base::order<"fresh.pop.lost">(base::acquire))))
        t = nullptr;
      top_seen_ = bottom + 1;  // taken, by us or by a thief
    }
    bottom_.store(bottom + 1, base::relaxed);
    return t;
  }

  // Takes the newest tasks, `most` at most, and gives them to `take`, the oldest of them first. D4.
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
      // Thieves have come as far as the tasks we want. At most one of them can still take one, the task at top_, and the CAS
      // decides who has it; a thief that comes later sees our bottom_ and finds nothing.
      const bool ours =
          top == bottom || base::check<"fresh.newest.last">(top_.compare_exchange_strong(
                               top, bottom, base::acquire, base::order<"fresh.newest.lost">(base::acquire)));
      from = top;  // the thief's CAS, if it came first, has moved it one further
      top_seen_ = ours ? bottom : top;
      bottom_.store(top_seen_, base::relaxed);
    }
    for (; from < bottom; ++from) take(slots_[index(from)].load(base::relaxed));
  }

  // --- anybody ----------------------------------------------------------------------------------------------------
  // The oldest, or nullptr when there is none or somebody else was faster.
  [[nodiscard]] Task* steal() noexcept {
    std::int64_t top = top_.load(base::relaxed);
    // Mirror of the fence in pop(). It also makes the load above an acquire, which pairs with the CAS of other thieves, so
    // that bottom_ is not read from before it.
    base::step<"fresh.steal.fence">([] { base::fence_seq_cst(); });
    // Pairs with the release in push(): the slot and its task are complete.
    const std::int64_t bottom = bottom_.load(base::order<"fresh.steal.bottom">(base::acquire));
    if (top >= bottom) return nullptr;
    Task* t = slots_[index(top)].load(base::relaxed);
    // release: our read of the slot comes before the owner overwrites it, pairs with the acquires of top_ in try_push() and pop().
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
  std::int64_t top_seen_ = 0;  // the owner's: no further than top_, whose line is the thieves' as well
  const std::size_t mask_;
  const std::unique_ptr<base::atomic<Task*>[]> slots_;
};

}  // namespace weft::inline v1::sched
