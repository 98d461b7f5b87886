// The four queues of one worker, and what is done with several of them at once. run_queues.hpp decides the order in
// which the worker takes from them. This class is what everybody else sees of them.
//
// Each queue says which of its functions only the owner may call and which anybody may. What overflows goes to the
// global queue: the newer half of the ring, and the older half of the fresh tasks.
//
// sched.W1. A task that was put in is taken exactly once, by the owner or by somebody else. Each queue has its own
//     proof. Here nothing is taken from one queue before there is a place for it in another, or in a chain that the
//     caller holds.
//     test sched/run_queues, model/drain
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/cache_line.hpp"
#include "sched/chain.hpp"
#include "sched/fresh_deque.hpp"
#include "sched/inbox.hpp"
#include "sched/lifo_slot.hpp"
#include "sched/ring.hpp"
#include "sched/shared_queues.hpp"
#include "sched/statistics.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

using task::record;

class alignas(base::cache_line) local_queues {
 public:
  // `counters` belong to the worker.
  local_queues(std::size_t capacity, shared_queues& shared, worker_counters& counters)
      : woken(static_cast<std::uint32_t>(capacity)),
        fresh(capacity),
        shared_(shared),
        counters_(counters) {}
  local_queues(const local_queues&) = delete;
  local_queues& operator=(const local_queues&) = delete;

  ring<record> woken;  // woken tasks, and fresh ones that have lined up behind them
  fresh_deque<record> fresh;  // tasks that have never run
  alignas(base::cache_line) sched::inbox<record> inbox;  // tasks from other threads
  // The task that was woken last. It shares a line with what the owner remembers (run_queues), because others look at
  // it often and seldom take from it.
  alignas(base::cache_line) lifo_slot<record> slot;

  // --- the owner ----------------------------------------------------------------------------------------------------
  // Appends to the ring.
  void append(record* t) noexcept {
    if (!woken.try_push(t)) [[unlikely]]
      append_overflowing(t);
  }
  // Appends those tasks of a batch for which `keeps` returns true. It has handled the others itself.
  template <class Keeps>
  void append_those(chain<record>&& batch, Keeps keeps) noexcept {
    chain<record> overflow;
    while (record* t = batch.pop_front())
      if (keeps(t)) woken.push(t, overflow);
    spill(overflow);
  }
  void append_all(chain<record>&& batch) noexcept {
    append_those(std::move(batch), [](record*) { return true; });
  }
  // Adds a fresh task to a full deque.
  [[gnu::cold]] void push_fresh_overflowing(record* t) noexcept;
  [[nodiscard]] std::size_t room_for_woken() const noexcept {
    return woken.capacity() - std::min(woken.size(), woken.capacity());
  }
  // Steals from one victim: half of its woken tasks, half of its fresh ones, or its whole inbox. Returns one task to
  // run at once, or nullptr. The others are in our own queues then. `more` says that some of those came from an inbox,
  // so that nobody else has been notified of them.
  [[nodiscard]] record* steal_from(local_queues& victim, bool& more) noexcept;
  // Takes everything, for whoever will run it instead.
  [[nodiscard]] chain<record> drain() noexcept;

  // --- anybody ------------------------------------------------------------------------------------------------------
  // Whether a thief would find something. The slot is not for thieves.
  [[nodiscard]] bool has_visible_work() const noexcept { return !woken.empty() || !fresh.empty() || !inbox.empty(); }
  // Approximate, and below zero for a moment while others take.
  [[nodiscard]] std::int64_t size() const noexcept {
    return static_cast<std::int32_t>(woken.size()) + static_cast<std::int64_t>(fresh.size()) + (inbox.empty() ? 0 : 1) +
           (slot.empty() ? 0 : 1);
  }
  // The monitor takes tasks from behind a worker that does not come to them: some of what is here, or only what is in
  // the slot. `through` is a ring of the caller's own, and empty.
  [[nodiscard]] chain<record> take_over(bool only_slot, ring<record>& through) noexcept;

 protected:
  void spill(chain<record>& overflow) noexcept {
    if (!overflow.empty()) [[unlikely]]
      take_overflow(overflow);
  }
  [[nodiscard]] shared_queues& shared() const noexcept { return shared_; }

 private:
  [[gnu::cold]] void append_overflowing(record* t) noexcept;
  [[gnu::cold]] void take_overflow(chain<record>& overflow) noexcept;

  shared_queues& shared_;
  worker_counters& counters_;
};

}  // namespace weft::inline v1::sched
