// The order in which a worker takes tasks from its queues. Who is next is decided here and nowhere else.
//
// Together with the queues that all workers share (shared_queues.hpp), the order of turns is:
//
//   1. an urgent task, up to 8 in a row;
//   2. the slot, up to 3 in a row;
//   3. the newest fresh task, if four turns have passed over fresh tasks;
//   4. the ring;
//   5. the slot after all;
//   6. the inbox, which is emptied into the ring;
//   7. the newest fresh task;
//   8. a share of the global queue, which goes to the ring.
//
// Who asks, and for which part of the order:
//   next()           A task that has ended, and the worker's own stack, ask for all of it.
//   next_at_hand() and next_at_hand_after_slot()
//                    A task that parks may hold an object's lock. It asks only for what needs neither a lock nor the
//                    system: 2 to 5, and 7 if there is a stack for it. There are two functions, so that the first one,
//                    the slot, is inline in park(). If a look is due or an urgent task waits, neither is called
//                    (task_runner::goes_on()), and the worker's own stack asks next().
//   next_in_ring()   A task that yields asks for 4 where 2 and 3 have nothing to say (only_ring_counts()). The order is
//                    the same, cut short, so that a yield among many tasks costs little more than the switch.
//   next_at_look()   At a look around (tick.hpp) the worker asks for the oldest of something that this order may have
//                    kept waiting, in turns.
//
// sched.W2. The slot does not starve the ring: after three tasks from the slot in a row the ring has its turn.
//     test sched/run_queues, sched/slot_*
// sched.W3. Woken tasks do not starve fresh ones (sched.K6), and urgent tasks do not starve the others.
//     test sched/run_queues, sched/fresh_*
// sched.W4. Whatever else is queued, the tasks in the inbox, in the global queue and in the background, and the oldest
//     fresh task, come to their turns at some look.
//     test sched/run_queues
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "sched/local_queues.hpp"
#include "sched/notifier.hpp"
#include "sched/shared_queues.hpp"
#include "sched/starved.hpp"
#include "sched/statistics.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

// Only the worker uses this class, on its own thread.
class run_queues : public local_queues {
 public:
  struct rooms {
    shared_queues& shared;
    const starved& without_stack;
    const worker_set& workers;  // says how many share the global queue
    notifier& others;
  };
  run_queues(int worker, std::size_t capacity, const rooms& of, worker_counters& counters)
      : local_queues(capacity, of.shared, counters),
        worker_(worker),
        without_stack_(of.without_stack),
        workers_(of.workers),
        others_(of.others) {}

  // --- who is next --------------------------------------------------------------------------------------------------
  // Returns nullptr if there is nothing here. The worker searches then.
  [[nodiscard]] [[gnu::always_inline]] record* next() noexcept {
    if (urgent_waits()) [[unlikely]]
      if (record* t = next_urgent()) return t;
    if (record* t = next_at_hand()) return t;
    if (record* t = next_after_slot()) return t;
    if (!inbox.empty()) [[unlikely]]
      if (record* t = next_in_inbox()) return t;
    if (record* t = newest_fresh()) return t;
    return next_in_global();
  }
  // Part 2 of the order. Such a task was woken, and so it has a stack.
  [[nodiscard]] [[gnu::always_inline]] record* next_at_hand() noexcept {
    if (slot_runs_ >= slot_runs_limit) return nullptr;
    record* t = slot.take();
    if (t != nullptr) ++slot_runs_;
    return t;
  }
  // Parts 3 to 5, and 7. `may_start` says that there is a stack for a fresh task. A fresh task that has been passed
  // over too often is taken without one.
  [[nodiscard]] [[gnu::always_inline]] record* next_at_hand_after_slot(bool may_start) noexcept {
    record* t = next_after_slot();
    return t == nullptr && may_start ? newest_fresh() : t;
  }
  [[nodiscard]] [[gnu::always_inline]] bool only_ring_counts() const noexcept {
    return fresh.is_surely_empty() && (slot.empty() || slot_runs_ >= slot_runs_limit);
  }
  // Part 4. The caller prefetches what comes behind the task, once it knows that it runs this one.
  [[nodiscard]] [[gnu::always_inline]] record* next_in_ring() noexcept {
    slot_runs_ = 0;
    return woken.pop();
  }
  // With a thousand tasks neither records nor frames are in the first-level cache, and each frame is on a page of its
  // own. So both are prefetched so far ahead that they are there when their turn comes. The record comes first, because
  // it says where the frames are.
  [[gnu::always_inline]] void prefetch_behind() const noexcept {
    const auto [soon, later] = woken.upcoming(2, 5);
    if (soon != nullptr)
      if (const void* frames = soon->first_accessed()) base::prefetch(frames, 4);  // nullptr if it ended or is fresh
    if (later != nullptr) base::prefetch(later, 1);
  }
  [[nodiscard]] record* next_at_look(base::time_ns now) noexcept;
  // For a worker that finds nothing else and would sleep.
  [[nodiscard]] record* next_in_background() noexcept { return shared().background.take_share(1, 1).pop_front(); }

  // --- what the order depends on ------------------------------------------------------------------------------------
  [[nodiscard]] [[gnu::always_inline]] bool urgent_waits() const noexcept { return shared().urgent.size() != 0; }
  // Whether so much waits in the global queue that the next look should come soon (sched.W4).
  [[nodiscard]] bool much_waits_outside() const noexcept;
  // The newest `count` fresh tasks go behind the woken ones, in the order in which they were spawned. Those for which
  // the ring has no room go behind everything else.
  void line_up(std::size_t count) noexcept;
  // Whether all tasks that have lined up have had their turns.
  [[nodiscard]] bool line_has_passed() const noexcept { return woken.has_passed(line_end_); }

 private:
  // After this many tasks from the slot in a row, the ring gets its turn (BZ-1).
  static constexpr std::uint8_t slot_runs_limit = 3;
  // After this many turns of woken tasks, each with the tasks that the slot brought, a fresh task has its turn.
  static constexpr std::uint8_t most_passed_over = 4;

  [[nodiscard]] [[gnu::always_inline]] record* next_after_slot() noexcept {
    slot_runs_ = 0;
    if (record* t = overdue_fresh()) return t;
    if (record* t = woken.pop()) {
      prefetch_behind();
      return t;
    }
    return slot.take();
  }
  // Fresh tasks whose spawner waits for them come after woken ones, which may soon give back what they hold. But they
  // do not wait for ever. The newest is taken, because the oldest would open a fork tree at its root. The oldest has
  // its turn at a look.
  [[nodiscard]] [[gnu::always_inline]] record* overdue_fresh() noexcept {
    if (passed_over_ < most_passed_over) [[likely]] {
      ++passed_over_;
      return nullptr;
    }
    if (without_stack_.any()) [[unlikely]]  // woken tasks will give stacks back, fresh ones need them
      return nullptr;
    return newest_fresh();
  }
  [[nodiscard]] record* newest_fresh() noexcept {
    passed_over_ = 0;
    return fresh.pop();
  }
  [[gnu::cold]] [[nodiscard]] record* next_urgent() noexcept;
  [[nodiscard]] record* next_in_inbox() noexcept;
  [[nodiscard]] record* next_in_global() noexcept;
  [[nodiscard]] std::size_t room_for_those_outside() const noexcept;

  // These share a line with local_queues::slot.
  std::uint8_t slot_runs_ = 0;  // tasks from the slot since the ring had its turn
  std::uint8_t passed_over_ = 0;  // turns since a fresh task had one
  std::uint8_t urgent_runs_ = 0;  // urgent tasks since another one had its turn
  std::uint32_t line_end_ = 0;  // the place in `woken` behind those that have lined up
  std::uint32_t looks_ = 0;
  const int worker_;  // whose queues these are
  base::time_ns oldest_started_ = 0;  // when the oldest fresh task last had its turn
  const starved& without_stack_;
  const worker_set& workers_;
  notifier& others_;
};

}  // namespace weft::inline v1::sched
