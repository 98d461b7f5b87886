#include "sched/watch.hpp"

#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "sched/monitor_limits.hpp"
#include "sched/worker.hpp"

namespace weft::inline v1::sched {

// Timers are fired a few at a time, so that the tasks run while they are still in the cache. The rest stays in its
// wheel, and the worker looks again when these have run.
std::size_t watch::fire(base::time_ns now, intake& on) noexcept {
  constexpr std::size_t least = 16;  // also while the ring is full of tasks that yield
  constexpr std::size_t largest = 128;
  const std::size_t most = std::clamp(on.queues().room_for_woken() / 2, least, largest);
  fired_timers due;
  std::size_t fired = 0;
  bool more = false;
  for (worker* w : workers_.all()) {
    if (w->timers().next_deadline() > now) continue;
    if (fired < most) fired += w->timers().fire(now, most - fired, due);
    more = more || w->timers().next_deadline() <= now;
  }
  if (!due.tasks.empty()) on.accept_woken_batch(std::move(due.tasks));
  resume_others(due);
  if (more) on.look_up_after(static_cast<std::int32_t>(std::max(fired, least)));
  return fired;
}

bool watch::is_due(base::time_ns now) const noexcept { return earliest_deadline() <= now; }

base::time_ns watch::earliest_deadline() const noexcept {
  base::time_ns earliest = base::never_ns;
  for (worker* w : workers_.all()) earliest = std::min(earliest, w->timers().next_deadline());
  return earliest;
}

base::time_ns watch::begin(worker& sleeper) noexcept {
  const base::time_ns deadline = earliest_deadline();
  base::lock_guard guard(lock_);
  // sched.V1: the present watcher wakes up early enough.
  if (watcher_ != idle_set::nobody && watcher_ != sleeper.id() && deadline_ <= deadline) return base::never_ns;
  watcher_ = sleeper.id();
  deadline_ = deadline;
  WEFT_LOG(watch, "worker %d watches, %zu of %zu asleep, %s", sleeper.id(), idle_.sleeping(), workers_.live(),
           deadline == base::never_ns ? "until woken" : "with a deadline");
  return deadline;
}

bool watch::end(worker& sleeper) noexcept {
  base::lock_guard guard(lock_);
  if (watcher_ != sleeper.id()) return false;
  watcher_ = idle_set::nobody;
  return true;
}

void watch::hand_on() noexcept {
  {
    base::lock_guard guard(lock_);
    if (watcher_ != idle_set::nobody) return;
  }
  const base::time_ns earliest = earliest_deadline();
  if (earliest != base::never_ns && earliest < base::now() + monitor_limits::longest_nap) wake_a_sleeper();
}

void watch::wake_a_sleeper() noexcept {
  if (const int sleeper = idle_.any_sleeper(); base::check<"watch.hand_on">(sleeper != idle_set::nobody))
    workers_[static_cast<std::size_t>(sleeper)].wake();
}

}  // namespace weft::inline v1::sched
