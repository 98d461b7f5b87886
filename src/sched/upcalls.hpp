// Functions that sched calls and a layer above defines. All other calls of sched go down or stay in it. This is the
// only file that declares such functions, and the file that defines one includes it, so that the two cannot differ.
//
// The linker makes the connection, and it costs nothing.
// Rejected: function pointers that the upper layers register. Somebody would have to register them before the first
// task ends, and each end would need an indirect call.
#pragma once

#include <cstdint>
#include <memory>

#include "base/clock.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class scheduler;
class bystander;

// wait/join.cpp: wakes everybody on the join list of a task that has just ended. scheduler::end_task() calls it once,
// on the ended task's own stack, and holds a reference.
void wake_joiners(task::record& finished) noexcept;

// sync/held_locks.cpp: ends the process and says which lock an ended task still holds. Checked builds only.
[[noreturn]] void report_held_lock(const task::record& ended) noexcept;

// observe/deadlock.cpp: reports a deadlock of the process, if there is one, and perhaps ends the process. A monitor calls
// it when it goes to rest, after all workers of its runtime have slept for a while. Returns when it wants to be called
// again if the rest lasts, usually never. `told_cycles` belongs to the caller, who only keeps it.
[[nodiscard]] base::time_ns look_for_deadlock(scheduler& of, std::uint64_t& told_cycles) noexcept;
// observe/cycle_watch.cpp: reports tasks of this runtime that wait for each other, while others work. The monitor calls it
// now and then while it is awake.
void look_for_cycles(scheduler& of, std::uint64_t& told_cycles) noexcept;

// observe/bystander.cpp: what the environment wants to be told of a runtime; nullptr if nothing. Called once for each
// runtime, when its workers run.
[[nodiscard]] std::unique_ptr<bystander> make_bystander(scheduler& of);

}  // namespace weft::inline v1::sched
