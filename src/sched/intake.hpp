// What comes to a worker: where in its queues a task goes that it wakes, spawns or gets a turn for, and when others are
// notified of it.
//
// This is the half of a worker that puts tasks in. It owns the half that takes them out, run_queues. All functions are
// for the worker's own thread, except where a comment says otherwise.
//
//   woken     goes to the slot. What was there goes behind the other woken tasks. A select of several sources goes
//             behind them at once.
//   joiner    goes behind the other woken tasks.
//   fresh     goes to the fresh tasks, which are taken newest first. When the running task leaves without waiting for
//             tasks, those that it has spawned line up behind the woken ones (gate.hpp, sched.K6).
//   a batch   goes behind the other woken tasks.
// A task on a lane or with a priority goes to placement first, and comes back through queue() when it has its turn.
//
// While the running task may block (give_way()), nothing is put where others do not see it, and others are notified of
// each task, because the worker may not come to it for long.
//
// Otherwise others are notified when more is queued than this worker comes to in a moment. Nobody is woken for less,
// because waking a thread costs more than most tasks do. If the worker does not come to the task, the monitor notices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/log.hpp"
#include "sched/chain.hpp"
#include "sched/gate.hpp"
#include "sched/placement.hpp"
#include "sched/run_queues.hpp"
#include "sched/statistics.hpp"
#include "sched/tick.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class scheduler;

class intake {
 public:
  intake(scheduler& s, int worker);
  intake(const intake&) = delete;
  intake& operator=(const intake&) = delete;

  [[nodiscard]] int id() const noexcept { return id_; }
  [[nodiscard]] scheduler& owner() const noexcept { return scheduler_; }

  // --- tasks that come ----------------------------------------------------------------------------------------------
  void accept_woken(record* t) noexcept;  // RUNNABLE, claimed by this worker; goes to the LIFO slot
  void accept_joiner(record* t) noexcept;  // as accept_woken(), but goes to the ring, for the reason given there
  void accept_fresh(record* t) noexcept;  // RUNNABLE, has never run
  void accept_woken_batch(chain<record>&& batch) noexcept;  // as accept_woken(), but they go to the ring
  void accept_events(
      chain<record>&& batch) noexcept;  // the same for what the driver has woken; others are told of many
  void queue(record* t) noexcept;  // RUNNABLE, and has its turn (lane.hpp)

  // For whoever wakes many tasks here: the worker looks up again after at most so many dispatches.
  void look_up_after(std::int32_t dispatches) noexcept { tick_.look_after(dispatches); }

  // Whether this worker alone comes to so many tasks sooner than it pays to wake another one for them.
  [[nodiscard]] bool comes_soon_to(std::size_t tasks) const noexcept;

  // --- the running task ---------------------------------------------------------------------------------------------
  // The running task may block from now on, or it no longer may.
  [[gnu::cold]] void give_way(bool gives) noexcept;
  // The running task is about to wait for tasks. Those that it has spawned stay among the fresh ones, and so are taken
  // newest first. Returns how many they are, so that a task that does not wait after all can return_spawned() them.
  [[nodiscard]] std::uint32_t keep_spawned() noexcept {
    const std::uint32_t kept = gate_.spawned();
    gate_.forget_spawned();
    return kept;
  }
  void return_spawned(std::uint32_t kept) noexcept { gate_.count_spawned(kept); }

  // --- anybody ------------------------------------------------------------------------------------------------------
  // Whether the running task has said that it may block.
  [[nodiscard]] bool gives_way() const noexcept { return (manner_.load(base::relaxed) & may_block) != 0; }
  // Only this worker's thread changes the counts.
  [[nodiscard]] worker_counters& counters() noexcept { return counters_; }
  [[nodiscard]] const worker_counters& counters() const noexcept { return counters_; }
  // What others see of the queues: thieves, wakers from elsewhere, and the monitor. Only the worker decides who is
  // next.
  [[nodiscard]] local_queues& queues() noexcept { return queues_; }
  [[nodiscard]] const local_queues& queues() const noexcept { return queues_; }

 protected:
  ~intake() = default;

  // Called before anything is queued behind the woken tasks (sched.K6).
  void settle_spawned() noexcept {
    if (!gate_.is_open()) [[unlikely]]
      line_up_spawned();
  }
  void line_up_spawned() noexcept;
  [[nodiscard]] task::extra manner() const noexcept { return manner_.load(base::relaxed); }
  // Returns true if woken tasks may use the slot.
  bool forget_line_if_passed() noexcept;
  // Queues the task in the ring, where thieves can take it, and notifies others.
  [[gnu::cold]] void queue_openly(record* t) noexcept;

  // Every switch touches what follows.
  gate gate_;

 private:
  base::atomic<task::extra> manner_{0};  // its bits are explained below; only this worker writes it

 protected:
  tick tick_;
  scheduler& scheduler_;
  const int id_;  // the worker's
  run_queues queues_;
  alignas(base::cache_line) worker_counters counters_;

 private:
  // Bits of manner_, which says what holds for all tasks here. Each is a bit of record::extras with which a single task
  // is treated in the same way, so that whoever queues or runs a task asks one question for both.
  static constexpr task::extra may_block = task::on_lane;  // the running task may block
  // Spawned tasks have lined up, and not all of them have had their turns. Until then woken tasks go behind them and
  // not into the slot. Otherwise a task that spawns, and is woken again and again through the slot, would spawn more
  // than ever start.
  static constexpr task::extra line_waits = task::waits_for_several;

  void set_manner(task::extra m) noexcept { manner_.store(m, base::relaxed); }
  void queue_woken(record* t) noexcept;
  // Out of line: its text would otherwise be in the frame of whoever wakes.
  [[gnu::cold]] void queue_and_log(record* t) noexcept;
  [[gnu::cold]] void accept_specially(record* t) noexcept;
  void put_in_slot(record* t) noexcept {
    if (record* displaced = queues_.slot.put(t)) queue_behind(displaced);
  }
  void queue_behind(record* t) noexcept;
  void queue_batch(chain<record>&& batch) noexcept;
  void queue_fresh(record* t) noexcept;
  [[gnu::cold]] void queue_overflowing(record* fresh) noexcept;
  void append(record* t) noexcept;
  void tell() noexcept;
  void tell_if(bool worth_it) noexcept;
};

inline void intake::accept_woken(record* t) noexcept {
  counters_.wakes.add();
  become_runnable(t, task::run_state::none);
  if (placement::is_special(t->extras | manner())) [[unlikely]]
    return accept_specially(t);
  queue_woken(t);
}

inline void intake::queue_woken(record* t) noexcept {
  if (base::logs(base::topic::wake)) [[unlikely]]
    return queue_and_log(t);
  put_in_slot(t);
}

}  // namespace weft::inline v1::sched
