// The run queue of woken tasks, and of spawned ones that have lined up behind them: a bounded FIFO ring. The owner
// pushes and pops. A thief takes half of the tasks in one claim.
//
//      steal            real                tail
//        v                v                   v
//   [ being copied by one thief ][ runnable   ]      indices run on and wrap; slot = index % capacity
//
// sched.R1. A task pushed is popped or stolen exactly once.
//     model/ring, test sched/ring_*
// sched.R2. `steal == real` unless a thief is copying. Slots from `steal` on are not overwritten before it has
//     finished.
//     model/ring
// sched.R3. One thief steals at a time. A second one gives up rather than waits.
//     model/ring
// sched.R4. Overflow hands the newer half and the new task over in one chain, in their order. Nothing is lost, and what
//     came first keeps its place.
//     model/ring, test sched/ring_*
//
// Rejected: Chase-Lev for this queue (its owner works on the young end, which starves the oldest wake), and slots that
// are exchanged one by one (a thief would pay for one contended operation per task).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "sched/chain.hpp"

namespace weft::inline v1::sched {

template <class Task>
class ring {
 public:
  static constexpr std::uint32_t default_capacity = 256;

  explicit ring(std::uint32_t capacity = default_capacity)  // a power of two, 4 at least
      : mask_(capacity - 1),
        slots_(std::make_unique<base::atomic<Task*>[]>(capacity)) {}
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  // --- owner only -------------------------------------------------------------------------------------------------
  // Appends the task, if there is room.
  [[nodiscard, gnu::always_inline]] inline bool try_push(Task* t) noexcept {
    // acquire pairs with the release in finish_steal(): the thief has read its slots before we overwrite them.
    return append(t, head_.load(base::order<"ring.push.head">(base::acquire)));
  }
  // Appends the task. What does not fit is added to `overflow`: the newer half and `t`, or only `t` while a thief makes
  // room or if other tasks have gone there before.
  void push(Task* t, chain<Task>& overflow) noexcept {
    while (overflow.empty()) {
      const std::uint64_t head = head_.load(base::order<"ring.push.head">(base::acquire));  // as in try_push()
      if (append(t, head)) [[likely]]
        return;
      // Either a thief is about to make room, or we make it now.
      if (steal_of(head) != real_of(head) || give_newer_half(head, overflow)) break;
    }
    overflow.push_back(t);
  }

  [[nodiscard]] Task* pop() noexcept {
    std::uint64_t head = head_.load(base::relaxed);
    const std::uint32_t tail = tail_.load(base::relaxed);
    for (;;) {
      const std::uint32_t real = real_of(head);
      if (real == tail) return nullptr;
      const std::uint64_t next = steal_of(head) == real ? pack(real + 1, real + 1) : pack(steal_of(head), real + 1);
      // Decides against thieves (sched.R1). The slot is our own store, so no acquire is needed for it. acq_rel keeps
      // the release sequence of finish_steal() intact for try_push() and push().
      if (head_.compare_exchange_weak(head, next, base::acq_rel, base::relaxed)) return slot(real).load(base::relaxed);
    }
  }

  // end() is the place of the next task to be appended. has_passed() says whether all tasks that were appended before a
  // place have been popped or stolen.
  [[nodiscard]] std::uint32_t end() const noexcept { return tail_.load(base::relaxed); }
  [[nodiscard]] bool has_passed(std::uint32_t place) const noexcept {
    return static_cast<std::int32_t>(real_of(head_.load(base::relaxed)) - place) >= 0;
  }

  // What pop() would return after so many more pops, or nullptr. These are hints for prefetching and nothing else.
  struct outlook {
    const Task* soon;
    const Task* later;
  };
  [[nodiscard]] outlook upcoming(std::uint32_t soon, std::uint32_t later) const noexcept {
    const std::uint32_t real = real_of(head_.load(base::relaxed));
    const std::uint32_t count = tail_.load(base::relaxed) - real;
    return {count > soon ? slot(real + soon).load(base::relaxed) : nullptr,
            count > later ? slot(real + later).load(base::relaxed) : nullptr};
  }

  // --- anybody ----------------------------------------------------------------------------------------------------
  // Moves up to half of the tasks to `into` (the caller's own ring, empty or nearly so) and returns one more to run at
  // once.
  [[nodiscard]] Task* steal_into(ring& into) noexcept {
    const std::uint32_t to = into.tail_.load(base::relaxed);
    // Our own ring needs room for half the capacity. If it has less, perhaps because a thief is still copying from it,
    // nothing is stolen. acquire pairs with the release in that thief's finish_steal(): it has read its slots before we
    // overwrite them.
    if (to - steal_of(into.head_.load(base::order<"ring.steal.into">(base::acquire))) > capacity() / 2) return nullptr;
    // acquire pairs with the release of a former thief's finish_steal().
    std::uint64_t head = head_.load(base::acquire);
    std::uint32_t real = 0;
    std::uint32_t count = 0;
    for (;;) {
      real = real_of(head);
      if (steal_of(head) != real) return nullptr;  // sched.R3
      // Pairs with the release in append(): the slots below this tail are readable, and their tasks are complete.
      const std::uint32_t tail = tail_.load(base::order<"ring.steal.tail">(base::acquire));
      count = tail - real;
      // A head that was read long before this tail would claim what is not there.
      if (count == 0 || count > capacity()) return nullptr;
      count -= count / 2;
      // Claims [real, real+count). The owner pops behind it, and sched.R2 keeps the slots while we copy.
      if (head_.compare_exchange_weak(head, pack(real, real + count), base::order<"ring.steal.claim">(base::acq_rel),
                                      base::acquire))
        break;
    }
    Task* first = slot(real).load(base::relaxed);
    for (std::uint32_t i = 1; i < count; ++i)
      into.slot(to + i - 1).store(slot(real + i).load(base::relaxed), base::relaxed);
    finish_steal();
    // Publishes what we now own to our own thieves; pairs with their acquire of tail_ above.
    if (count > 1) into.tail_.store(to + count - 1, base::order<"ring.steal.publish">(base::release));
    return first;
  }

  // Exact for the owner, approximate for others.
  [[nodiscard]] std::uint32_t size() const noexcept {
    const std::uint32_t tail = tail_.load(base::acquire);
    return tail - real_of(head_.load(base::acquire));
  }
  [[nodiscard]] bool empty() const noexcept {
    const std::uint32_t real = real_of(head_.load(base::acquire));
    return static_cast<std::int32_t>(tail_.load(base::acquire) - real) <= 0;
  }

  [[nodiscard]] std::uint32_t capacity() const noexcept { return mask_ + 1; }

 private:
  [[nodiscard]] base::atomic<Task*>& slot(std::uint32_t index) const noexcept { return slots_[index & mask_]; }
  static std::uint64_t pack(std::uint32_t steal, std::uint32_t real) noexcept {
    return std::uint64_t{steal} << 32 | real;
  }
  static std::uint32_t steal_of(std::uint64_t head) noexcept { return static_cast<std::uint32_t>(head >> 32); }
  static std::uint32_t real_of(std::uint64_t head) noexcept { return static_cast<std::uint32_t>(head); }

  [[nodiscard]] bool append(Task* t, std::uint64_t head) noexcept {
    const std::uint32_t tail = tail_.load(base::relaxed);
    if (tail - steal_of(head) >= capacity()) [[unlikely]]
      return false;
    slot(tail).store(t, base::relaxed);
    // Publishes the slot and the task; pairs with the acquire of tail_ in steal_into().
    tail_.store(tail + 1, base::order<"ring.push.tail">(base::release));
    return true;
  }

  // The owner of a full ring makes room (sched.R4). Returns false if a thief came first; the caller looks again. It
  // claims all of the ring, and appends the older half again, which is in the right slots already.
  // Rejected: to take tail_ back. A thief that has read the old tail, and a head that another thief has moved since,
  // would claim what is not there any more. Found by model/ring.
  [[nodiscard]] bool give_newer_half(std::uint64_t head, chain<Task>& out) noexcept {
    const std::uint32_t tail = tail_.load(base::relaxed);
    const std::uint32_t half = capacity() / 2;
    if (!head_.compare_exchange_strong(head, pack(tail, tail), base::acq_rel, base::relaxed)) return false;
    for (std::uint32_t i = tail - half; i != tail; ++i) out.push_back(slot(i).load(base::relaxed));
    // relaxed: the CAS has published the slots to whoever claims by the head that it stored.
    tail_.store(tail + half, base::relaxed);
    return true;
  }

  void finish_steal() noexcept {
    std::uint64_t head = head_.load(base::relaxed);
    // release pairs with the acquire in try_push() and push(): our reads of the slots come before the owner's next
    // writes to them.
    while (!head_.compare_exchange_weak(head, pack(real_of(head), real_of(head)),
                                        base::order<"ring.steal.finish">(base::acq_rel), base::relaxed)) {}
  }

  alignas(base::cache_line) base::atomic<std::uint64_t> head_{0};
  alignas(base::cache_line) base::atomic<std::uint32_t> tail_{0};
  const std::uint32_t mask_;
  const std::unique_ptr<base::atomic<Task*>[]> slots_;
};

}  // namespace weft::inline v1::sched
