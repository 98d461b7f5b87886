// Tasks that wait for each other in a circle, in a process in which others go on. They are reported once.
//
// Only cancellation ends such a wait, so this is certain as soon as it is seen, whoever else runs. A snapshot reads the
// words of the tasks, then the owners of the locks, and the words are read once more here. If no task on a cycle has
// another ticket than before, all of them were parked in between, and each lock was held by a task on the cycle at a moment
// at which that task was parked, and therefore all the time.
//
// observe.D3. Who is reported to be on a cycle is on it until cancelled.            test observe/a_cycle_*, observe/no_cycle_*
#pragma once

#include <chrono>
#include <cstdint>

namespace weft::inline v1::sched {
class scheduler;
}

namespace weft::inline v1::observe {

// Looks at tasks that have waited for so long. A process with many tasks is not watched in this way: a bound on what the
// monitor spends. `told` stands for the cycles of this runtime that were reported last; each is reported once. Throws
// std::bad_alloc.
void watch_cycles(sched::scheduler& s, std::chrono::milliseconds waited_for, std::uint64_t& told);

}  // namespace weft::inline v1::observe
