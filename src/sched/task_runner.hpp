// The task that a worker runs, and the switch from it straight to the next one.
//
// Tasks switch to each other directly (fiber to fiber). The worker's own stack is for searching and sleeping only. A
// task that leaves cannot do everything for itself, because its context is not saved before the switch is complete. So
// the code that runs next, on another stack, first finishes that for it: see departure. A suspension therefore passes
// the gate (gate.hpp) while still RUNNING, notes the departure, chooses who is next (run_queues.hpp) and switches. Then
// the other stack calls arrive().
//
// sched.K1. While a task is RUNNING or PARKING, exactly one worker has it as current_.
//     test sched/ownership_*
// sched.K2. A task enters a queue only after the switch away from it is complete.
//     test sched/a_task_stolen_the_moment_*
// sched.K3. A finished task's stack is given away only from another stack, or is reused by the loop at its base.
//     test sched/ownership_*
// sched.K7. A turn that the loop at the base of a stack gives ends done, cancelled or suspended. After `suspended` the
//     task has no frame on that stack, and the stack goes to the next task. Such a task holds no stack between its
//     turns.
//     test sched/a_turn_that_ends_*
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "context/stack.hpp"
#include "sched/exceptions_in_flight.hpp"
#include "sched/fiber_switch.hpp"
#include "sched/intake.hpp"
#include "sched/stack_supply.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class lane;

// What the next stack does for the task that has just switched away, because nobody can do it while the task's context
// is unsaved. Every switch sets it, and nobody clears it.
struct departure {
  enum class kind : std::uint8_t { none, yielded, stepped_aside, moving, parking, finished };
  kind what = kind::none;
  record* who = nullptr;
  context::stack* vacated = nullptr;  // finished: the stack to be given away
  void (*unlock)(void*) noexcept = nullptr;  // parking: nullptr if `locked` is a base::lock or nothing
  void* locked = nullptr;  // parking: the lock that is held across the switch
  lane* to = nullptr;  // moving: the lane to which the task goes

  // parking: called after the commit. The object may be gone after this, and so may the task.
  void release_lock() const noexcept {
    if (unlock != nullptr) return unlock(locked);
    if (locked != nullptr) static_cast<base::lock*>(locked)->release();
  }
};

// What a switch and every operation touch. It is a base, so that it lies in front of everything else that a worker has.
struct switch_state {
  base::raw_atomic<record*> current_{nullptr};  // the monitor reads it
  exceptions_in_flight exceptions_;
  static constexpr std::int32_t spent = -1;
  std::int32_t budget_ = spent;  // below 0: no budget is left
  thread_stack own_stack_;
  departure left_;
  // A task that the worker's own stack runs next, because it needs a stack and none is at hand.
  record* in_hand_ = nullptr;
};

// The base of worker, and of nothing else.
// Rejected: a virtual function for what only the worker can do. Its pointer would move the base, and each call of
// intake would pay for that.
class task_runner : protected switch_state, public intake {
 public:
  task_runner(scheduler& s, int worker);

  // nullptr if the worker is on its own stack.
  [[nodiscard]] record* current() const noexcept { return current_.load(base::relaxed); }

  // The steady clock in milliseconds, as it was at most 10 ms ago. It is for what is noted at every wait, where reading
  // the clock would cost as much as the wait. The worker refreshes it when it looks up and when it leaves its sleep.
  // The monitor refreshes it at each look.
  [[nodiscard]] std::uint32_t coarse_ms() const noexcept { return coarse_ms_.load(base::relaxed); }
  void refresh_clock(base::time_ns now) noexcept {
    coarse_ms_.store(static_cast<std::uint32_t>(now / 1'000'000), base::relaxed);
  }

  // --- the running task ---------------------------------------------------------------------------------------------
  [[nodiscard]] bool is_unwinding() const noexcept { return exceptions_.is_unwinding(); }
  // The suspension gate (gate.hpp). pass_gate_to_park() also logs the park.
  [[nodiscard]] bool is_gate_open() const noexcept { return gate_.is_open(); }
  void pass_gate() noexcept {
    if (!gate_.is_open()) [[unlikely]]
      open_gate();
  }
  void pass_gate_to_park() noexcept {
    if (!gate_.is_open()) [[unlikely]]
      open_gate_to_park();
  }
  // Lets others run. Returns at once if there is nobody else.
  void yield() noexcept;
  // Switches away. The next stack commits the park and then calls unlock(locked). If `unlock` is nullptr, it releases
  // `locked`, which is a base::lock or nullptr. Returns when somebody has woken the task, perhaps on another worker.
  static void park(task_runner& on, void (*unlock)(void*) noexcept, void* locked) noexcept;
  // Switches away. Returns when `to` has given the task a turn.
  void move(lane* to) noexcept;
  // The fresh task runs now, and the running task is queued to come next.
  void start_at_once(record* t) noexcept;
  // The running task has passed one suspension point without parking. Returns false if the budget is spent; the caller
  // should yield.
  [[nodiscard]] bool spend_budget() noexcept {
    if (--budget_ >= 0) [[likely]]
      return true;
    budget_ = spent;
    return false;
  }
  void return_budget() noexcept { ++budget_; }  // takes back the last spend_budget()
  [[nodiscard]] bool has_budget() const noexcept { return budget_ >= 0; }  // true also means that a task is running

  // --- the worker's own stack ---------------------------------------------------------------------------------------
  // Returns the task that is next here. nullptr: there is none, or the worker is to leave.
  [[nodiscard]] record* next() noexcept;

  // --- anybody ------------------------------------------------------------------------------------------------------
  // The worker is to leave. From now on nobody is chosen, and the worker's own stack gives its tasks away.
  void request_drain() noexcept {
    drain_requested_.store(true, base::release);
    gate_.request_drain();
  }
  [[nodiscard]] bool is_leaving() const noexcept { return drain_requested_.load(base::acquire); }

 protected:
  ~task_runner() = default;
  friend struct test_seam;

  // Called on the worker's own thread before the first task.
  void begin_on_this_thread() noexcept {
    exceptions_.find_those_of_this_thread();
    own_stack_.annotations.adopt_thread();
  }
  // Switches from the worker's own stack to a task. Returns when nothing local is left to run.
  void run(record* t) noexcept;
  // At a tick: handles timers, events and tasks without a stack, and then returns a task that the usual order may have
  // kept waiting.
  [[nodiscard]] record* look_up() noexcept;
  [[nodiscard]] record* take_in_hand() noexcept { return std::exchange(in_hand_, nullptr); }

 protected:
  base::atomic<bool> drain_requested_{false};
  stack_supply stacks_;
  base::raw_atomic<std::uint32_t> coarse_ms_{0};

 private:
  // --- who is next ---
  [[nodiscard]] bool goes_on() noexcept;
  [[nodiscard]] record* next_after_slot() noexcept;
  [[nodiscard]] record* next_without_locks() noexcept;
  [[nodiscard]] record* with_stack(record* t) noexcept;
  void open_gate() noexcept;
  void open_gate_to_park() noexcept;
  void yield_otherwise(bool in_turn, record* next) noexcept;
  // --- the switch ---
  static void switch_between(task_runner& on, record* self, record* next) noexcept;
  static void switch_from(task_runner& on, record* self, record* next) noexcept;
  void adopt(record* t) noexcept;
  [[gnu::cold]] void adopt_specially(record* t) noexcept;
  void none_current() noexcept {
    current_.store(nullptr, base::relaxed);
    budget_ = spent;
  }
  // --- on the other stack ---
  void arrive() noexcept;
  [[gnu::cold]] void arrive_otherwise(departure::kind how) noexcept;
  [[gnu::cold]] void arrive_woken(record* t) noexcept;
  [[gnu::cold]] void leave_turn(departure::kind how, record* t) noexcept;
  // --- the base of a fiber's stack ---
  static void fiber_main(void* runner) noexcept;
  static void run_tasks(task_runner* on) noexcept;
  static void finish(record* t, detail::ended how) noexcept;
  [[nodiscard]] record* end_current(context::stack*& left) noexcept;
  [[nodiscard]] [[gnu::cold]] record* suspend_current(context::stack*& left) noexcept;
  [[noreturn]] static void leave(task_runner& on, record* next, context::stack* left) noexcept;
  void give_stack(context::stack* s) noexcept;
  void starve(record* t) noexcept;
};

}  // namespace weft::inline v1::sched
