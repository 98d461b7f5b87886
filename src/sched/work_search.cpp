#include "sched/work_search.hpp"

#include <algorithm>
#include <tuple>

#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "sched/worker.hpp"

namespace weft::inline v1::sched {
namespace {

// Waking a sleeping thread takes some 30 µs, and a task often takes less. So a worker looks around for about that long
// before it sleeps, if that has paid lately.
base::time_ns spin_ns(idle_gaps::source s) noexcept { return base::spin_time(idle_gaps::look_around(s)); }

}  // namespace

record* work_search::find(bool searching) noexcept {
  idle_set& idle = scheduler_.idle();
  base::time_ns asleep_since = 0;  // 0: it has not slept yet
  bool has_events = false;
  for (;;) {
    if (worker_.is_leaving()) {
      if (searching) end();
      return nullptr;
    }
    // It does not search for what the driver has woken: the last one to stop searching hands on what is left in its
    // queues, and others have been told of these tasks if they are many.
    if (!searching && !has_events) searching = idle.start_searching();
    record* t = worker_.next();
    bool few_events = false;
    if (t == nullptr && searching) {
      t = look_around(few_events);
      if (t != nullptr && asleep_since == 0) gaps_.found();
    }
    if (t == nullptr) t = its_.queues.next_in_background();
    if (t != nullptr) {
      worker_.enter(worker_state::active);
      if (searching) end(few_events);
      if (asleep_since != 0) {
        const base::time_ns now = base::now();
        gaps_.slept(now - asleep_since, source());
        worker_.refresh_clock(now);
      }
      return t;
    }
    if (scheduler_.stopping()) {
      if (searching) end();
      return nullptr;
    }
    // Enough others search, and what keeps us from sleeping is theirs to take. So we do not load the idle set
    // meanwhile.
    if (!searching) base::cpu_relax();
    if (asleep_since == 0) asleep_since = base::now();
    std::tie(searching, has_events) = sleep(searching);
    its_.ticks.forget();
  }
}

// The worker has found work, or is to end. If it was the last searcher, others have left to it what they queued
// meanwhile. So it hands on (s1 to s3 of idle_set.hpp).
void work_search::end(bool has_few_events) noexcept {
  if (!scheduler_.idle().stop_searching()) return;
  const bool within_reach = has_few_events ? work_from_others() : work_within_reach();
  if (within_reach || work_elsewhere()) scheduler_.notifying().notify();
}

idle_gaps::source work_search::source() const noexcept {
  return scheduler_.polling().is_wanted() ? idle_gaps::source::events : idle_gaps::source::threads;
}

// Whether others have left work to this worker.
bool work_search::work_from_others() const noexcept {
  return scheduler_.queues().size() != 0 || !its_.queues.inbox.empty();
}

// Whether there is work that the worker finds without searching.
bool work_search::work_within_reach() const noexcept {
  return scheduler_.queues().size() != 0 || its_.queues.has_visible_work();
}

// Whether there is work that the worker would have to steal.
bool work_search::work_elsewhere() const noexcept {
  for (const worker* w : scheduler_.workers())
    if (w != &worker_ && w->queues().has_visible_work() && (scheduler_.options().stealing || w->is_dead())) return true;
  return false;
}

record* work_search::look_around(bool& few_events) noexcept {
  worker_.enter(worker_state::idle_spin);
  const base::time_ns until = gaps_.are_short() ? base::now() + spin_ns(source()) : 0;  // 0: one round
  base::time_ns now = 0;
  const auto poll = [&](base::time_ns at) {
    const std::size_t events = scheduler_.polling().poll(at, worker_);
    few_events = events != 0 && worker_.comes_soon_to(events);
    return events;
  };
  if (scheduler_.polling().is_wanted() && poll(base::now()) != 0)
    if (record* t = worker_.next()) return t;
  do {
    if (record* t = steal()) return t;
    if (scheduler_.queues().background.size() != 0) return nullptr;  // background work is better than waiting
    base::linger(8);
    now = base::now();
    const std::size_t fired = scheduler_.watching().fire(now, worker_);
    if (fired + poll(now) != 0 || !its_.queues.inbox.empty() || scheduler_.queues().size() != 0) {
      few_events = few_events && fired == 0;
      if (record* t = worker_.next()) return t;
    }
  } while (now < until && !scheduler_.stopping());
  return nullptr;
}

// Looks at a few victims; then the caller pauses (KC-3). Workers that have left do not count among them. What came to
// their inboxes while they left is for everybody, also in a runtime without stealing.
record* work_search::steal() noexcept {
  const worker_set& all = scheduler_.pool();
  const auto n = static_cast<std::uint32_t>(all.created());
  if (n == 1) return nullptr;
  const bool stealing = scheduler_.options().stealing;
  std::size_t scan = std::min<std::size_t>(n - 1, scheduler_.options().steal_scan) + 1;
  const std::uint32_t first = its_.random.below(n);  // random, so that thieves do not follow each other
  for (std::uint32_t i = 0; i < n && scan != 0; ++i) {
    worker& victim = all[(first + i) % n];
    const bool has_left = victim.is_dead();
    if (!has_left) --scan;
    if (&victim == &worker_ || (!stealing && !has_left)) continue;
    if (!victim.queues().has_visible_work()) continue;
    bool more = false;
    record* t = its_.queues.steal_from(victim.queues(), more);
    if (more) scheduler_.notifying().notify_others();
    if (t != nullptr) return t;
  }
  return nullptr;
}

// Sleeps until the worker is woken or there is something to do.
work_search::awake work_search::sleep(bool was_searching) noexcept {
  worker_.enter(worker_state::sleep);
  worker_.counters().sleeps.add();
  idle_set& idle = scheduler_.idle();
  const int id = worker_.id();
  idle.enter_sleep(id, was_searching);
  chain<record> woken;  // tasks that the driver has woken
  for (;;) {
    // w3 of idle_set.hpp.
    if (base::check<"idle.w3">(work_within_reach()) || base::check<"idle.stopping">(scheduler_.stopping()) ||
        base::check<"drain.asleep">(worker_.is_leaving()))
      break;
    if (base::check<"idle.w3_elsewhere">(work_elsewhere() && !idle.left_to_searcher())) break;
    scheduler_.ending().tell_if_all_ended([this] { return scheduler_.workers(); });
    worker_.give_caches_if_asked();
    const base::time_ns deadline = scheduler_.watching().begin(worker_);
    lie_down(deadline, woken);
    const bool was_watcher = scheduler_.watching().end(worker_);
    // The idle set, and not the token, says whether we were woken to work. A token may be an old one, or may only ask
    // for a new watcher.
    if (!idle.is_asleep(id)) {
      worker_.leave_idle();
      if (!woken.empty()) worker_.accept_events(std::move(woken));
      if (was_watcher) scheduler_.watching().hand_on();
      return {true, false};
    }
    // Events have come, or a timer is due.
    if (!woken.empty() || scheduler_.watching().is_due(base::now())) break;
  }
  const bool by_itself = idle.leave_sleep(id);
  const bool has_events = !woken.empty();
  worker_.leave_idle();
  if (has_events) worker_.accept_events(std::move(woken));
  if (by_itself) scheduler_.watching().fire(base::now(), worker_);
  scheduler_.watching().hand_on();  // we may have been the watcher before the last look
  // If we did not leave by ourselves, somebody has chosen us at this moment. Its token makes the next sleep end at
  // once, and then we look around again.
  // Nobody has left work to us while we slept: an enqueuer that sees no searcher wakes somebody. So what the driver has
  // brought can be taken without a search.
  return {!by_itself, by_itself && has_events};
}

// The worker sleeps in the driver if a task waits for an event and nobody is there (sched.Q1). Otherwise it sleeps on
// its own word (bed.hpp).
void work_search::lie_down(base::time_ns deadline, chain<record>& woken) noexcept {
  poller& polling = scheduler_.polling();
  if (!base::check<"poller.sleep">(polling.try_enter())) return its_.sleeps_in.sleep(deadline);
  its_.sleeps_in.sleep_in_driver(deadline, poller::most_for(worker_), woken);
  polling.leave(base::now());
}

}  // namespace weft::inline v1::sched
