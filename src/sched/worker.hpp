// A worker: one thread that runs tasks, from its start to its end, and what others see of it.
//
// It has two bases. intake.hpp puts what comes into the queues, and task_runner.hpp runs tasks and switches from one to
// the next. run_queues.hpp decides who is next. When there is nobody, work_search.hpp looks for work and sleeps. This
// class adds the rest: the thread, its timers, its caches, and what thieves, wakers, the watch and the monitor may ask.
//
// sched.K4. ACTIVE -> IDLE_SPIN (bounded) -> SLEEP; DRAINING -> DEAD. A worker sleeps only when no runnable work is
//     visible.
//     model/idle, test sched/a_worker_is_active_*, sched/a_worker_does_not_sleep_*
// sched.K5. A DRAINING worker neither steals nor accepts tasks. Its tasks go to the global queue.
//     model/drain, test sched/draining_*
// sched.K6. A fresh task starts after at most 10·(q+1) dispatches of its worker, where q tasks were queued there when
//     it was spawned, whatever is spawned or woken later. The bound is 40·(q+1) if its queue had no room. This does not
//     hold if its spawner then waits for tasks (intake::keep_spawned), if urgent tasks come, or if the task was spawned
//     from outside or is stolen.
//     test sched/fresh_*
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/random.hpp"
#include "base/thread.hpp"
#include "sched/bed.hpp"
#include "sched/os_thread.hpp"
#include "sched/task_ids.hpp"
#include "sched/task_runner.hpp"
#include "sched/test_seam.hpp"
#include "sched/this_worker.hpp"
#include "sched/timer_source.hpp"
#include "sched/work_search.hpp"
#include "task/record_pool.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class scheduler;

enum class worker_state : std::uint8_t { active, idle_spin, sleep, draining, dead };

class alignas(base::cache_line) worker final : public task_runner {
 public:
  worker(scheduler& s, int id);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  [[nodiscard]] timer_source& timers() noexcept { return *timers_; }
  [[nodiscard]] worker_state state() const noexcept { return state_.load(base::relaxed); }
  [[nodiscard]] bool is_dead() const noexcept { return state() == worker_state::dead; }
  [[nodiscard]] task::record_cache& records() noexcept { return records_; }
  [[nodiscard]] task_id_block& ids() noexcept { return ids_; }
  [[nodiscard]] base::random& random() noexcept { return random_; }

  // --- its own stack (work_search.hpp) ------------------------------------------------------------------------------
  void enter(worker_state s) noexcept { state_.store(s, base::relaxed); }
  // Called on the way to sleep. The worker gives away what it keeps for its next task, if somebody asks for it
  // (idle_caches.hpp, starved.hpp).
  void give_caches_if_asked() noexcept;
  // The worker has left the idle set in order to work.
  void leave_idle() noexcept;
  [[nodiscard]] work_search& search() noexcept { return search_; }

  // --- anybody ----------------------------------------------------------------------------------------------------
  void wake() noexcept { bed_.wake(); }
  // Whether the monitor found it stuck at its last look.
  [[nodiscard]] bool is_stuck() const noexcept { return stuck_.load(base::relaxed); }
  [[nodiscard]] int thread_id() const noexcept { return thread_id_.load(base::relaxed); }
  // How long it has been in its present task, as far as the monitor has seen: up to 10 ms less than the truth.
  [[nodiscard]] std::chrono::milliseconds same_task_for(base::time_ns now) const noexcept {
    if (seen_dispatched_.load(base::acquire) != counters().dispatched.get()) return {};
    return std::chrono::milliseconds((now - seen_since_.load(base::relaxed)) / 1'000'000);
  }
  // Whether the worker is not dead and has stacks or records for its next task. The acquires pair with the releases in
  // die() and in give_caches_if_asked(): what it gave is in the pools.
  [[nodiscard]] bool keeps_caches() const noexcept {
    return state_.load(base::acquire) != worker_state::dead && keeps_caches_.load(base::acquire);
  }

  // --- the monitor ------------------------------------------------------------------------------------------------
  void mark_stuck(bool is) noexcept { stuck_.store(is, base::relaxed); }
  // For reports: the worker has been in the same task since then, after so many dispatches.
  void note_same_task(std::uint64_t dispatched, base::time_ns since) noexcept {
    seen_since_.store(since, base::relaxed);
    // release pairs with the acquire in same_task_for(): the time is at least as new as the number.
    seen_dispatched_.store(dispatched, base::release);
  }
  // Its thread sleeps for a lock of our own. Such a wait is short.
  [[nodiscard]] bool waits_for_lock() const noexcept { return waits_for_lock_.load(base::relaxed); }
  // How much processor time its thread has used so far. The worker must not be dead.
  [[nodiscard]] base::time_ns processor_time() noexcept { return sched::processor_time(thread_); }

  // --- whoever changes the set of workers (worker_set.hpp) ----------------------------------------------------------
  void start();  // throws std::system_error, and then the worker is dead
  void join() noexcept;

 private:
  friend struct test_seam;

  // worker_loop.cpp: the worker's own stack
  void thread_main() noexcept;
  void loop() noexcept;
  void drain() noexcept;
  void die() noexcept;

  task::record_cache records_;
  base::random random_;
  task_id_block ids_;

  // --- shared ---
  alignas(base::cache_line) base::atomic<worker_state> state_{worker_state::active};
  base::atomic<bool> stuck_{false};
  base::atomic<bool> keeps_caches_{true};  // it has worked since it last gave them away
  base::atomic<int> thread_id_{0};  // the kernel's number of it
  base::raw_atomic<bool> waits_for_lock_{false};  // for a lock of our own; such a wait is short
  base::raw_atomic<std::uint64_t> seen_dispatched_{0};  // by the monitor: note_same_task()
  base::raw_atomic<base::time_ns> seen_since_{0};
  std::unique_ptr<timer_source> timers_;
  bed bed_;
  work_search search_;
  base::thread thread_;
};

}  // namespace weft::inline v1::sched
