// Where a runnable task goes: to the queues of the worker that wakes or spawns it, to another worker's inbox, to a
// shared queue, or to its dispatcher's lane first.
//
// Whoever has claimed, spawned or taken a task hands it over here, or to intake::accept_*(). The functions for any
// thread call the latter when they run on a worker of the task's own runtime. The ways of a task:
//   on a worker of its runtime   It goes to the worker's own queues, unless sends_elsewhere() has taken it: it is on a
//                                lane or has a priority (route()), or the build forces migration (to another worker's
//                                inbox).
//   on any other thread          It goes to route() if it is on a lane or has a priority, and otherwise to inject():
//                                into an inbox, chosen in turn.
// The static functions find the runtime by the task. The others belong to one runtime.
//
// sched.PL1. A task that is handed over enters exactly one queue, or waits in its lane. Whoever may have to run it is
//     notified after the push (sched.I1).
//     model/idle, model/drain, test sched/spread_*
// sched.PL2. A thread of another runtime or of none touches the scheduler only as its guest (sched.C4).
//     model/close
// sched.PL3. With forced migration a task that wakes, starts or yields continues on another worker, if there is one.
//     Nothing outside this file and placement.cpp depends on that, except that such a build does not steal
//     (scheduler.cpp). By code: the migrate preset runs all tests this way, and its tests/migration programs fail
//     without it.
#pragma once

#include <cstdint>
#include <utility>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "sched/chain.hpp"
#include "sched/closing.hpp"
#include "sched/idle_set.hpp"
#include "sched/lane.hpp"
#include "sched/notifier.hpp"
#include "sched/shared_queues.hpp"
#include "sched/starved.hpp"
#include "sched/worker_set.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

using task::record;

class monitor;
class poller;
class scheduler;
class watch;

// A build mode that resumes every task on another worker than the one it left. What breaks under migration breaks at
// once.
#if defined(WEFT_FORCE_MIGRATION)
inline constexpr bool force_migration = true;
#else
inline constexpr bool force_migration = false;
#endif

// Called by the winner of the claim, or whoever else holds the task, before it queues the task. Checked builds: only an
// active task that is in no queue may enter one (LS-F2).
inline void become_runnable(record* t, task::run_state from) noexcept {
  if constexpr (base::checked_build) task::expect_queueable(*t, from);
  t->running.store(task::run_state::runnable, base::relaxed);
}

class placement {
 public:
  struct rooms {
    worker_set& workers;
    idle_set& idle;
    notifier& notifying;
    shared_queues& queues;
    closing& ending;
    starved& without_stack;
    monitor& monitoring;  // looks after workers whose tasks may block
    poller& polling;
    watch& watching;
    bool stealing;
  };
  explicit placement(const rooms& of) noexcept : of_(of) {}
  placement(const placement&) = delete;
  placement& operator=(const placement&) = delete;

  // --- any thread -------------------------------------------------------------------------------------------------
  // The task is RUNNABLE, and the caller holds it by the claim. It goes into a queue once.
  static void schedule(record* t) noexcept;
  static void schedule_joiner(record* t) noexcept;  // the same for a task that waited for the end of another
  static void schedule_all(chain<record>&& claimed) noexcept;  // all belong to one runtime
  // The task is RUNNABLE, has never run, and was spawned by a thread that is no worker of its runtime.
  static void spawned_outside(record* t) noexcept;

  // --- tasks on lanes and with priorities ---------------------------------------------------------------------------
  // The task has a lane or a priority. It waits in its lane or, if it gets its turn there at once, goes to its queue.
  [[gnu::cold]] static void route(record* t) noexcept;
  // A turn was given back. The task that has waited longest for it is queued.
  static void hand_on_turn(lane& l) noexcept;
  // The task has ended and gives its turn back.
  static void leave_lane(record* ended) noexcept {
    if ((ended->extras & task::on_lane) == 0) [[likely]]
      return;
    ended->extras = static_cast<task::extra>(ended->extras & ~task::on_lane);
    lane* left = std::exchange(ended->dispatcher(), nullptr);
    hand_on_turn(*left);
    left->drop_reference();
  }
  // The running task leaves its lane for another one, or for none (nullptr). It may have to wait for its turn there,
  // and may come back on another worker.
  static void move_to(worker& on, lane* to) noexcept;

  // --- a worker, on its own thread ----------------------------------------------------------------------------------
  // Whether a task with these extras, on a worker in this manner (intake.hpp), needs more care when it wakes than a
  // place in the worker's slot.
  [[nodiscard]] static constexpr bool is_special(task::extra extras_and_manner) noexcept {
    return force_migration || (extras_and_manner & (task::is_routed | task::waits_for_several)) != 0;
  }
  // Returns true if the task is not for the queues of the worker `from` that has it now, and is already on its way
  // elsewhere.
  [[nodiscard]] static bool sends_elsewhere(scheduler& home, int from, record* t) noexcept {
    if ((t->extras & task::is_routed) != 0) [[unlikely]] {
      route(t);
      return true;
    }
    return migrates(home, from, t);
  }
  // The same for a task that is known to be on no lane and to have no priority.
  [[nodiscard]] static bool migrates([[maybe_unused]] scheduler& home, [[maybe_unused]] int from,
                                     [[maybe_unused]] record* t) noexcept {
    if constexpr (force_migration) inject_elsewhere(home, from, t);
    return force_migration;
  }
  // Whether a task that yields while nobody else is here may go to another worker nevertheless.
  [[nodiscard]] static bool can_migrate(const worker_set& workers) noexcept {
    return force_migration && !workers.is_alone();
  }

  // --- one runtime's ------------------------------------------------------------------------------------------------
  // The task is RUNNABLE and goes to some worker's inbox, in turn.
  void inject(record* t) noexcept { inject_to(next_inbox_.fetch_add(1, base::relaxed), t); }
  // The same, to the first suitable worker from this one on.
  void inject_to(std::uint32_t first_choice, record* t) noexcept;
  // Queues tasks anew that had no stack: because one was freed or, if due, because they have waited for a while.
  void retry_starved() noexcept;
  void retry_starved_if_due(base::time_ns now) noexcept;
  // A worker's task may block from now on while work waits behind it. Somebody else has to take that work.
  void find_replacement() noexcept;
  // The same while nothing waits yet.
  void gave_way() noexcept;

 private:
  static void place(record* t) noexcept;
  static void inject_elsewhere(scheduler& home, int from, record* t) noexcept;
  [[nodiscard]] std::uint32_t choose_inbox(std::uint32_t first) const noexcept;
  void see_to_events() noexcept;
  [[nodiscard]] bool nobody_is_idle() const noexcept { return of_.idle.sleeping() + of_.idle.searching() == 0; }

  const rooms of_;
  alignas(base::cache_line) base::atomic<std::uint32_t> next_inbox_{0};  // written at every inject
};

}  // namespace weft::inline v1::sched
