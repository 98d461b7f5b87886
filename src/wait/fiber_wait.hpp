// Parking and waking: the one place where "who wins" is decided.
//
// fiber_wait follows §4.2 of the lifecycle contract: try, PARKING, publish, switch, commit, lost-wake check. The commit is made
// by the next stack (sched/worker.cpp, arrive), for an outside thread by itself.
//
// F1. A wake that lands at any point of the park is never lost.       model/park, test wait/wake_at_every_step_*
// F2. Cancellation, time-out and close claim like any other wake.     model/cancel, test wait/cancel_*
// F3. After the park is committed no user code runs until resumed.    test wait/no_user_code_*
#pragma once

#include <source_location>

#include "task/task.hpp"
#include "wait/waitable.hpp"

namespace weft::inline v1::wait {

enum class outcome : std::uint8_t { completed, cancelled, closed, timeout };

struct options {
  bool interruptible = true;  // a cancellation point; shields and unwinding are looked at as well
  std::source_location where = std::source_location::current();
};

// Waits on `w` with the caller's node. Works for tasks and for outside threads. On return the node is on no list.
[[nodiscard]] outcome fiber_wait(waitable& w, node& n, const options& o);

// --- wakers ---------------------------------------------------------------------------------------------------------
// With the object's lock held: claims n's waiter and writes the reason. True: the caller owns it and must call resume(),
// once, after it has released the lock; the node is the waiter's again from then on.
[[nodiscard]] bool claim(node& n, task::wake_reason why) noexcept;
void resume(task::parkable& who) noexcept;

// Asks for cancellation of a task that the caller holds a reference to. Any thread.
void cancel(task::record& t) noexcept;

// --- the running task -----------------------------------------------------------------------------------------------
// The running task, or nullptr on an outside thread.
[[nodiscard]] task::record* current_task() noexcept;
// Cancellation is requested and would be thrown at a cancellation point now.
[[nodiscard]] bool cancel_pending(const task::record& self) noexcept;
[[noreturn]] void throw_cancelled();
// Throws if cancellation is pending.
void check_cancelled();
// Aborts with a report if the running task must not suspend here (checked builds).
void check_may_suspend(int locks_allowed, std::source_location where) noexcept;

}  // namespace weft::inline v1::wait
