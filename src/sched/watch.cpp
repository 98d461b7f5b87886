// The watch: one sleeping worker that keeps the earliest deadline of all timers, and an eye on workers that are stuck.
//
// Tasks are sometimes queued without waking anybody (the LIFO slot, a lone fresh task), because their worker will come to
// them in a moment. If it does not, because a task computes for long, somebody must notice. So whenever at least one worker is
// active and another sleeps, one sleeper looks around once in a while; when all sleep, nobody does, and the process makes no
// system call.
//
// V1. watch_armed_ is false whenever the watcher sleeps without the short limit. A quiet enqueue reads it after a fence and,
//     if it is false, wakes a sleeper, which becomes the watcher.       model/watch, test sched/watch_*
// V2. The watcher sleeps until the earliest deadline it has seen. A worker that goes to sleep with an earlier one takes over.
// V3. A watcher that leaves for work while timers are pending wakes another sleeper to watch, and so does the last searcher, also
//     for a task in somebody's slot: to it a quiet enqueue leaves the waking.      model/watch, test time/stuck_owner, sched/slot_*
#include <algorithm>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {
namespace {

constexpr base::time_ns trim_after_ns = 100'000'000;

}  // namespace

void scheduler::ensure_watched() noexcept {
  // V1: the task is visible before watch_armed_ is read; mirror in watch_from().
  base::step<"watch.enqueue.fence">([] { base::fence_seq_cst(); });
  if (base::check<"watch.enqueue">(!watch_armed_.load(base::relaxed) && idle_.sleeping() != 0)) notify();
}

// Not more at a time than the worker's ring takes: what is woken then runs while it is still in the cache. The rest stays in its
// wheel, and the next look comes when these have run.
std::size_t scheduler::fire_timers(base::time_ns now, worker& on) noexcept {
  constexpr std::size_t least = 16;  // also while the ring is full of tasks that yield
  const std::size_t room = on.woken_.capacity() - std::min(on.woken_.size(), on.woken_.capacity());
  const std::size_t most = std::max(room / 2, least);
  std::size_t fired = 0;
  bool more = false;
  for (worker* w : worker_pointers_) {
    if (w->timers().next_deadline() > now) continue;
    if (fired < most) fired += w->timers().fire(now, on, most - fired);
    more = more || w->timers().next_deadline() <= now;
  }
  if (more) on.tick_.look_after(static_cast<std::int32_t>(std::max(fired, least)));
  return fired;
}

bool scheduler::timer_due(base::time_ns now) const noexcept {
  for (worker* w : worker_pointers_)
    if (w->timers().next_deadline() <= now) return true;
  return false;
}

// How long this sleeper may sleep. It is counted as sleeping already.
base::time_ns scheduler::watch_from(worker& w) noexcept {
  base::time_ns deadline = base::never_ns;
  for (const worker* other : worker_pointers_) deadline = std::min(deadline, other->timers_->next_deadline());
  base::lock_guard guard(watch_lock_);
  if (watcher_ != idle_set::nobody && watcher_ != w.id() && watch_deadline_ <= deadline &&
      watch_armed_.load(base::relaxed))
    return base::never_ns;
  const base::time_ns now = base::now();
  // relaxed: a late look only trims later.
  if (worked_.load(base::relaxed)) {
    worked_.store(false, base::relaxed);
    idle_since_ = 0;
    trimmed_ = false;
  }
  watch_armed_.store(false, base::relaxed);
  // V1: disarmed before we look who is active; mirror in ensure_watched().
  base::step<"watch.sleep.fence">([] { base::fence_seq_cst(); });
  if (base::check<"watch.look_around">(idle_.sleeping() < live_workers_.load(base::relaxed))) {
    worked_.store(true, base::relaxed);
    deadline = std::min(deadline, now + look_around_ns);
    watch_armed_.store(true, base::relaxed);
  } else if (!trimmed_) {
    if (idle_since_ == 0) idle_since_ = now;
    deadline = std::min(deadline, idle_since_ + trim_after_ns);
  }
  if (starved_count_.load(base::relaxed) != 0) deadline = std::min(deadline, now + look_around_ns);
  watcher_ = w.id();
  watch_deadline_ = deadline;
  WEFT_LOG(watch, "worker %d watches, %zu of %zu asleep, %s", w.id(), idle_.sleeping(),
           live_workers_.load(base::relaxed), deadline == base::never_ns ? "until woken" : "with a deadline");
  return deadline;
}

bool scheduler::stop_watching(worker& w) noexcept {
  retry_starved_if_due(base::now());
  base::lock_guard guard(watch_lock_);
  if (watcher_ != w.id()) return false;
  watcher_ = idle_set::nobody;
  watch_armed_.store(false, base::relaxed);
  return true;
}

// The watcher goes to work, or the last searcher, to whom a quiet enqueue may have left it to be seen. If somebody sleeps, and
// timers are pending or a slot is taken, they need a new watcher (V3): one that looks around and sleeps again, without
// searching.
void scheduler::hand_on_watch() noexcept {
  // After the fence S2 of stop_searching(), whose mirror is E2 of the quiet enqueuer that left it to us (its fence follows its own
  // reading of watch_armed_): we read what it read, or something newer. The watcher wrote it itself, under watch_lock_.
  if (watch_armed_.load(base::relaxed) || idle_.sleeping() == 0) return;
  if (std::none_of(worker_pointers_.begin(), worker_pointers_.end(),
                   [](const worker* w) { return w->timers_->next_deadline() != base::never_ns || !w->slot_.empty(); }))
    return;
  if (const int sleeper = idle_.any_sleeper(); base::check<"watch.hand_on">(sleeper != idle_set::nobody))
    worker_pointers_[static_cast<std::size_t>(sleeper)]->wake();
}

// All have been asleep for a while. True: the caller, who must not be chosen for work while it does, is the one to trim.
bool scheduler::may_trim(base::time_ns now) noexcept {
  base::lock_guard guard(watch_lock_);
  if (trimmed_ || idle_since_ == 0 || now < idle_since_ + trim_after_ns) return false;
  trimmed_ = true;
  return true;
}

// What is cached beyond the limits goes back to the system.
void scheduler::trim() noexcept {
  stacks_.trim();
  records_->trim();
}

}  // namespace weft::inline v1::sched
