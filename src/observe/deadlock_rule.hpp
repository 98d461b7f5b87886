// The rule by which a deadlock is proved: all tasks of the process are parked, and nothing can wake one.
//
// A parked task is woken by a worker, by a timer, by an event of the kernel that a worker polls for, or by a thread
// outside of Weft. So the rule holds if, in every runtime of the process,
//   - every live worker is in the idle set, and nobody searches (idle_set.hpp);
//   - no queue holds a task, none starves for a stack, and every task that has not ended is PARKED by its own word;
//   - no timer is set, and no task waits for the driver: sockets, pipes, signals and the ends of processes are its events;
//   - no guest is inside (closing.hpp);
// and if every thread of the process is one of Weft's, or rests in Weft (base/known_threads.hpp). All of this is looked at
// twice, the runtimes, the threads, the threads again and the runtimes again, and the looks must agree in every count, every
// ticket and every rest. So there is a moment in between at which all of it was true at once.
//
// observe.D1. If the rule holds, no task of the process will ever run again, unless a signal handler of the user or a
//     debugger wakes one. docs/decisions/0016-deadlock-rule.md has the argument, race by race.
//     test observe/no_report_*
// observe.D2. If all tasks are stuck for ever and there is no foreign thread, the rule holds from some moment on, and some
//     monitor goes to rest after that moment or hears of the thread that began to rest.
//     test observe/two_runtimes_*, observe/a_thread_that_joins_late_*
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft::inline v1::sched {
class scheduler;
}

namespace weft::inline v1::observe {

// What one look has seen of runtimes in which nothing can happen by itself. Two looks that are equal have seen the same
// waits: every wait has a ticket of its own.
struct stillness {
  std::uint64_t tasks = 0;  // parked
  std::uint64_t tickets = 0;  // a sum over their words and records
  std::uint64_t progress = 0;  // a sum of counters that only grow
  std::size_t workers = 0;
  [[nodiscard]] friend bool operator==(const stillness&, const stillness&) = default;
};

// How many tasks of a runtime have not ended. They are counted as in closing::all_ended(), those that have finished first:
// otherwise a task that ends between the two sums would be missing. One that is spawned in between counts.
[[nodiscard]] std::uint64_t live_tasks_in(sched::scheduler& s) noexcept;

// Nothing if somebody works, or if a timer or an event can wake somebody.
[[nodiscard]] std::optional<stillness> look_for_stillness(std::span<sched::scheduler* const> all) noexcept;

// The threads of the process, as the rule sees them.
struct thread_census {
  std::size_t own = 0;  // Weft's
  std::size_t resting = 0;  // outside, in a wait in Weft that has no deadline
  std::vector<std::string> foreign = {};  // all others: `"name" (number)`
  std::size_t users = 0;  // those of the foreign ones that have used Weft, or are the main thread
  // Two looks that are equal have listed the same threads, so none of them has ended in between, which could have hidden
  // another one from the kernel's list.
  std::vector<int> all = {};
  std::vector<std::pair<int, std::uint64_t>> rests = {};  // the number of each resting thread's rest
  bool is_complete = false;  // false: the kernel did not tell of all, so nothing is known
  [[nodiscard]] friend bool operator==(const thread_census&, const thread_census&) = default;
};
// A thread that closes a runtime rests only while a task of that runtime lives.
[[nodiscard]] thread_census count_threads(std::span<sched::scheduler* const> all);

struct proof {
  stillness what;
  thread_census threads;
};
// `alone` says that foreign threads never wake a task, except those that have used Weft before and the main thread. The
// caller has the list of runtimes.
[[nodiscard]] std::optional<proof> prove_deadlock(std::span<sched::scheduler* const> all, bool alone);

}  // namespace weft::inline v1::observe
