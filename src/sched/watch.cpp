// The watch: one sleeping worker that keeps the earliest deadline of all timers. While somebody is awake the monitor sees to timers
// that are due and have nobody to come to them.
//
// V1. The watcher sleeps until the earliest deadline it has seen. A worker that goes to sleep with an earlier one takes over.
// V2. A watcher that leaves for work while timers are pending wakes another sleeper to watch.
//                                                                       model/watch, test time/stuck_owner
#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

// A few at a time: what is woken then runs while it is still in the cache. The rest stays in its wheel, and the next look comes when
// these have run.
std::size_t scheduler::fire_timers(base::time_ns now, worker& on) noexcept {
  constexpr std::size_t least = 16;  // also while the ring is full of tasks that yield
  constexpr std::size_t largest = 128;
  const std::size_t room = on.woken_.capacity() - std::min(on.woken_.size(), on.woken_.capacity());
  const std::size_t most = std::clamp(room / 2, least, largest);
  std::size_t fired = 0;
  bool more = false;
  for (worker* w : workers()) {
    if (w->timers().next_deadline() > now) continue;
    if (fired < most) fired += w->timers().fire(now, on, most - fired);
    more = more || w->timers().next_deadline() <= now;
  }
  if (more) on.tick_.look_after(static_cast<std::int32_t>(std::max(fired, least)));
  return fired;
}

bool scheduler::timer_due(base::time_ns now) const noexcept {
  for (worker* w : workers())
    if (w->timers().next_deadline() <= now) return true;
  return false;
}

// How long this sleeper may sleep. It is counted as sleeping already.
base::time_ns scheduler::watch_from(worker& w) noexcept {
  base::time_ns deadline = base::never_ns;
  for (const worker* other : workers()) deadline = std::min(deadline, other->timers_->next_deadline());
  base::lock_guard guard(watch_lock_);
  if (watcher_ != idle_set::nobody && watcher_ != w.id() && watch_deadline_ <= deadline) return base::never_ns;
  watcher_ = w.id();
  watch_deadline_ = deadline;
  WEFT_LOG(watch, "worker %d watches, %zu of %zu asleep, %s", w.id(), idle_.sleeping(), live_workers(),
           deadline == base::never_ns ? "until woken" : "with a deadline");
  return deadline;
}

bool scheduler::stop_watching(worker& w) noexcept {
  base::lock_guard guard(watch_lock_);
  if (watcher_ != w.id()) return false;
  watcher_ = idle_set::nobody;
  return true;
}

// The watcher goes to work. If timers are pending, somebody who sleeps becomes the new one (V2): it looks around and sleeps again,
// without searching.
void scheduler::hand_on_watch() noexcept {
  {
    base::lock_guard guard(watch_lock_);
    if (watcher_ != idle_set::nobody) return;
  }
  const auto all = workers();
  if (std::any_of(all.begin(), all.end(),
                  [](const worker* w) { return w->timers_->next_deadline() != base::never_ns; }))
    wake_for_timers();
}

void scheduler::wake_for_timers() noexcept {
  if (const int sleeper = idle_.any_sleeper(); base::check<"watch.hand_on">(sleeper != idle_set::nobody))
    worker_pointers_[static_cast<std::size_t>(sleeper)]->wake();
}

}  // namespace weft::inline v1::sched
