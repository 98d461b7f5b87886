// A worker: one thread, its queues, and the switch from one task straight to the next.
//
// Its own stack searches and sleeps; tasks switch to each other directly (fiber to fiber). Whoever arrives on a stack first
// finishes what the one just left could not do for itself: see departure.
//
// K1. While a task is RUNNING or PARKING exactly one worker has it as current_.                     test sched/ownership_*
// K2. A task enters a queue only after the switch away from it is complete.      test sched/requeue_*, stress migration
// K3. A finished task's stack is given away only from another stack, or reused by the loop at its base. test sched/finish_*
// K4. ACTIVE -> IDLE_SPIN (bounded) -> SLEEP; DRAINING -> DEAD. It sleeps only when no runnable work is visible.
// K5. A DRAINING worker neither steals nor accepts; its tasks go to the global queue.               model/drain, test sched/draining_*
// K6. A fresh task starts after at most 10·(q+1) dispatches of its worker, where q tasks were queued there when it was spawned, whatever
//     is spawned or woken later: 40·(q+1) if its queue had no room. This does not hold if its spawner goes on to wait for tasks
//     (spawned_), if urgent tasks come, or if it was spawned from outside or is stolen.
//                                                                                                                   test sched/fresh_*
#pragma once

#include <cstdint>
#include <memory>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "base/log.hpp"
#include "base/random.hpp"
#include "base/thread.hpp"
#include "context/stack.hpp"
#include "sched/driver.hpp"
#include "sched/fresh_deque.hpp"
#include "sched/idle_gaps.hpp"
#include "sched/inbox.hpp"
#include "sched/lifo_slot.hpp"
#include "sched/ring.hpp"
#include "sched/statistics.hpp"
#include "sched/this_worker.hpp"
#include "sched/tick.hpp"
#include "task/record_pool.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

using task::record;

class lane;
class scheduler;

// Build mode that resumes every task on another worker than the one it left: what breaks under migration breaks at once.
#if defined(WEFT_FORCE_MIGRATION)
inline constexpr bool force_migration = true;
#else
inline constexpr bool force_migration = false;
#endif

struct step_by_step;  // test/model: runs a worker's steps one by one

enum class worker_state : std::uint8_t { active, idle_spin, sleep, draining, dead };

// What the next stack does for the task that just switched away, because nobody can do it while its context is unsaved. Set by every
// switch, and not taken back.
struct departure {
  enum class kind : std::uint8_t { none, yielded, stepped_aside, moving, parking, finished };
  kind what = kind::none;
  record* who = nullptr;
  context::stack* stack = nullptr;  // finished: to be given away
  void (*unlock)(void*) noexcept = nullptr;  // parking: nullptr if `locked` is a base::lock, or nothing
  void* locked = nullptr;  // parking: held across the switch
  lane* to = nullptr;  // moving
};

class alignas(base::cache_line) worker {
 public:
  worker(scheduler& s, int id);
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  [[nodiscard]] int id() const noexcept { return id_; }
  [[nodiscard]] scheduler& owner() const noexcept { return scheduler_; }
  [[nodiscard]] record* current() const noexcept { return current_.load(base::relaxed); }
  // Of the running task; std::uncaught_exceptions() without its detour through thread-local storage.
  [[nodiscard]] bool is_unwinding() const noexcept { return exceptions_->uncaught != 0; }
  [[nodiscard]] timer_source& timers() noexcept { return *timers_; }
  [[nodiscard]] worker_counters& counters() noexcept { return counters_; }
  [[nodiscard]] const worker_counters& counters() const noexcept { return counters_; }
  [[nodiscard]] worker_state state() const noexcept { return state_.load(base::relaxed); }
  [[nodiscard]] task::record_cache& records() noexcept { return records_; }
  [[nodiscard]] base::random& random() noexcept { return random_; }

  // --- the running task, on this worker ---------------------------------------------------------------------------
  // Lets others run; back at once if there is nobody.
  void yield() noexcept;
  // Switches away; the next stack commits the park, then calls unlock(locked), or without it releases `locked`, a base::lock or
  // nullptr. Returns when somebody woke the task, perhaps on another worker.
  static void park(worker& on, void (*unlock)(void*) noexcept, void* locked) noexcept;
  // Switches away, to come back when `to` gives the task a turn.
  void move(lane* to) noexcept;
  // The fresh task runs now; the running one comes next.
  void start_at_once(record* t) noexcept;
  // The running task may block from now on, or does not any more.
  [[gnu::cold]] void give_way(bool gives) noexcept;
  // One suspension point passed without parking. False: the budget is spent, the caller should yield.
  [[nodiscard]] bool spend_budget() noexcept {
    if (--budget_ >= 0) [[likely]]
      return true;
    budget_ = spent;
    return false;
  }
  // The running task is about to wait for tasks. Those that it has spawned stay in fresh_, and so are taken newest first.
  void keep_spawned() noexcept { spawned_ &= logs_parks; }
  void return_budget() noexcept { ++budget_; }  // what was spent just now
  [[nodiscard]] bool has_budget() const noexcept { return budget_ >= 0; }  // and so there is a running task

  // --- this worker's thread ---------------------------------------------------------------------------------------
  void accept_woken(record* t) noexcept;  // RUNNABLE, claimed by us: to the LIFO slot
  void accept_joiner(record* t) noexcept;  // as accept_woken, but to the ring: see there
  void accept_fresh(record* t) noexcept;  // RUNNABLE, never ran
  void accept_woken_batch(chain<record>&& batch) noexcept;  // as accept_woken, to the ring
  void accept_batch(chain<record>&& batch) noexcept;  // RUNNABLE, from another queue
  void queue(record* t) noexcept;  // RUNNABLE, and has its turn (lane.hpp)

  // --- anybody ----------------------------------------------------------------------------------------------------
  void push_inbox(record* t) noexcept { inbox_.push(t); }
  void wake() noexcept { driver_->wake(); }
  void request_drain() noexcept { drain_requested_.store(true, base::release); }
  [[nodiscard]] bool is_leaving() const noexcept { return drain_requested_.load(base::relaxed); }
  // For the monitor, at its last look.
  [[nodiscard]] bool is_stuck() const noexcept { return stuck_.load(base::relaxed); }
  // Approximate, and below zero for a moment while others take.
  [[nodiscard]] std::int64_t queued() const noexcept {
    return static_cast<std::int32_t>(woken_.size()) + static_cast<std::int64_t>(fresh_.size()) +
           (inbox_.empty() ? 0 : 1) + (slot_.empty() ? 0 : 1);
  }
  [[nodiscard]] int thread_id() const noexcept { return thread_id_.load(base::relaxed); }
  // The running task has said that it may block.
  [[nodiscard]] bool gives_way() const noexcept { return (manner_.load(base::relaxed) & may_block) != 0; }
  [[nodiscard]] bool has_visible_work() const noexcept { return !woken_.empty() || !fresh_.empty() || !inbox_.empty(); }

  void start();  // throws std::system_error
  void join() noexcept;

 private:
  friend class scheduler;
  friend class monitor;
  friend struct step_by_step;

  void set_stuck(bool s) noexcept { stuck_.store(s, base::relaxed); }

  // worker_loop.cpp: the worker's own stack
  void thread_main() noexcept;
  void loop() noexcept;
  [[nodiscard]] record* find_work(bool searching = false) noexcept;
  [[nodiscard]] record* search() noexcept;
  [[nodiscard]] record* steal_from(worker& victim) noexcept;
  [[nodiscard]] bool sleep(bool was_searching) noexcept;
  void give_caches() noexcept;
  void leave_idle() noexcept;
  void drain() noexcept;
  void run(record* t) noexcept;

  // worker.cpp: queues and switches
  [[nodiscard]] record* next_local() noexcept;
  [[nodiscard]] bool goes_on() noexcept;
  [[nodiscard]] record* next_from_slot() noexcept;
  [[nodiscard]] record* next_in_turn() noexcept;
  [[nodiscard]] record* next_without_locks() noexcept;
  [[nodiscard]] record* with_stack(record* t) noexcept;
  [[nodiscard]] record* overdue_fresh() noexcept;
  [[nodiscard]] record* newest_fresh() noexcept;
  // Before a switch, and before anything is queued behind the woken tasks: K6.
  void settle_spawned() noexcept {
    if (spawned_ != 0) [[unlikely]]
      line_up_spawned();
  }
  void line_up_spawned() noexcept;
  [[gnu::noinline]] void before_parking() noexcept;
  void queue_woken(record* t) noexcept;
  void queue_behind(record* t) noexcept;
  [[gnu::cold]] void queue_and_log(record* t) noexcept;  // apart: its text would be in the frame of whoever wakes
  void put_in_slot(record* t) noexcept {
    if (record* displaced = slot_.put(t)) queue_behind(displaced);
  }
  [[gnu::cold]] void accept_specially(record* t) noexcept;
  bool forget_line_if_passed() noexcept;
  void queue_fresh(record* t) noexcept;
  [[gnu::cold]] void queue_overflowing(record* fresh) noexcept;
  [[gnu::cold]] void queue_openly(record* t) noexcept;
  void spill(chain<record>& overflow) noexcept;
  void append(record* t) noexcept;
  [[gnu::cold]] void append_overflowing(record* t) noexcept;
  void tell() noexcept;
  void tell_if(bool worth_it) noexcept;
  [[nodiscard]] record* from_inbox() noexcept;
  [[nodiscard]] record* from_global() noexcept;
  [[gnu::cold]] [[nodiscard]] record* from_urgent() noexcept;
  [[nodiscard]] record* from_background() noexcept;
  [[nodiscard]] record* maintain() noexcept;
  [[nodiscard]] bool attach_cached(record* t) noexcept;
  [[nodiscard]] bool attach_any(record* t) noexcept;
  void attach(record* t, context::stack* s) noexcept;
  static void switch_between(worker& on, record* self, record* next) noexcept;
  static void switch_from(worker& on, record* self, record* next) noexcept;
  void arrive() noexcept;
  void unlock_departed() noexcept {
    if (left_.unlock != nullptr) return left_.unlock(left_.locked);
    if (left_.locked != nullptr) static_cast<base::lock*>(left_.locked)->release();
  }
  [[gnu::cold]] void arrive_otherwise(departure::kind how) noexcept;
  [[gnu::cold]] void arrive_woken(record* t) noexcept;
  void yield_otherwise(bool in_turn, record* next) noexcept;
  [[gnu::cold]] void leave_turn(departure::kind how, record* t) noexcept;
  void adopt(record* t) noexcept;
  void none_current() noexcept {
    current_.store(nullptr, base::relaxed);
    budget_ = spent;
  }
  [[gnu::cold]] void adopt_specially(record* t) noexcept;
  void save_exceptions(record* self) noexcept;
  [[gnu::cold]] void take_exceptions(record* self) noexcept;
  static void fiber_main(void* worker_pointer) noexcept;
  static void run_tasks(worker* w) noexcept;
  [[nodiscard]] record* end_current(context::stack*& left) noexcept;
  [[noreturn]] static void leave(worker& w, record* next, context::stack* left) noexcept;
  void give_stack(context::stack* s) noexcept;

  // --- touched at every switch ---
  base::raw_atomic<record*> current_{nullptr};  // the monitor reads it
  task::exception_state* exceptions_ = nullptr;  // this thread's __cxa_eh_globals
  void* sp_ = nullptr;  // the worker's own stack while a task runs
  departure left_;
  static constexpr std::int32_t spent = -1;
  std::int32_t budget_ = spent;  // below 0: none is left
  // Of the newest tasks in fresh_, those that the running task has spawned since it came, and that have no place in the order of
  // turns yet. If it waits for tasks next they stay, and are taken newest first: a fork tree goes depth first and stays small.
  // Otherwise they line up behind the woken tasks, in the order in which they came.
  std::uint32_t spawned_ = 0;
  // A bit of it, so that one question is for both: whoever parks is told of (WEFT_LOG=park).
  static constexpr std::uint32_t logs_parks = std::uint32_t{1} << 31;
  std::uint8_t slot_runs_ = 0;
  std::uint8_t passed_over_ = 0;  // turns since a fresh task had one
  std::uint8_t urgent_runs_ = 0;
  // What holds for all tasks here. Its bits are bits of record::extras with which a task is treated in the same way, so that whoever
  // queues or runs a task asks one question for both.
  static constexpr task::extra may_block = task::on_lane;  // the running task
  // Spawned tasks have lined up, and not all have had their turns. Till then woken tasks go behind them, not into the slot: who spawns,
  // and is woken again and again through the slot, would spawn more than ever start.
  static constexpr task::extra line_waits = task::waits_for_several;
  base::atomic<task::extra> manner_{0};
  std::uint32_t line_end_ = 0;  // the place in woken_ behind those that have lined up
  base::atomic<bool> drain_requested_{false};
  tick tick_;
  lifo_slot<record> slot_;
  context::stack_cache stacks_;
  task::record_cache records_;
  record* in_hand_ = nullptr;  // for the worker's own stack to run next
  [[no_unique_address]] context::flow flow_;
  scheduler& scheduler_;
  const int id_;
  base::random random_;
  idle_gaps gaps_;
  std::uint32_t ticks_ = 0;
  base::time_ns oldest_started_ = 0;  // when the oldest fresh task last had its turn
  std::uint64_t next_id_ = 0;
  std::uint64_t last_id_ = 0;

  // --- shared ---
  ring<record> woken_;
  fresh_deque<record> fresh_;
  alignas(base::cache_line) inbox<record> inbox_;
  base::atomic<worker_state> state_{worker_state::active};
  base::atomic<bool> stuck_{false};
  base::atomic<bool> keeps_caches_{true};  // it has worked since it gave them away
  base::atomic<int> thread_id_{0};  // the kernel's
  base::raw_atomic<bool> waits_for_lock_{false};  // one of our own, which is short
  alignas(base::cache_line) worker_counters counters_;
  std::unique_ptr<timer_source> timers_;
  std::unique_ptr<driver> driver_;
  base::thread thread_;
};

// The claim's winner, or whoever else holds the task, is about to queue it. Checked builds: nothing but an active task that is
// in no queue may enter one (LS-F2).
inline void become_runnable(record* t, task::run_state from) noexcept {
  if constexpr (base::checked_build) task::expect_queueable(*t, from);
  t->running.store(task::run_state::runnable, base::relaxed);
}

inline void worker::accept_woken(record* t) noexcept {
  counters_.wakes.add();
  become_runnable(t, task::run_state::none);
  constexpr task::extra special = task::is_routed | task::waits_for_several;
  if (force_migration || ((t->extras | manner_.load(base::relaxed)) & special) != 0) [[unlikely]]
    return accept_specially(t);
  queue_woken(t);
}

inline void worker::queue_woken(record* t) noexcept {
  if (base::logs(base::topic::wake)) [[unlikely]]
    return queue_and_log(t);
  put_in_slot(t);
}

}  // namespace weft::inline v1::sched
