#include "sched/monitor.hpp"

#include <pthread.h>

#include <cstdio>

#include "base/clock.hpp"
#include "base/known_threads.hpp"
#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "sched/upcalls.hpp"

namespace weft::inline v1::sched {

monitor::monitor(scheduler& s)
    : scheduler_(s),
      policy_({.workers = s.options().workers,
               .most = s.options().max_workers,
               .stealing = s.options().stealing,
               .keep_alive = s.options().keep_alive}),
      notes_(s.options().max_workers),
      hands_(static_cast<std::uint32_t>(s.options().queue_capacity)) {
  look_.workers.reserve(s.options().max_workers);
}

// ---- its thread ----------------------------------------------------------------------------------------------------

void monitor::start() {
  thread_ = start_thread(thread_role::monitor, [this] { run(); });
}

void monitor::stop() noexcept {
  // scheduler::stopping_ is stored before we look at the state. Mirror: the fence in rest().
  base::fence_seq_cst();
  hurry();
  if (thread_.joinable()) thread_.join();
}

// Ends a nap or a rest at once. Any thread may call this.
void monitor::hurry() noexcept {
  // relaxed: the monitor looks at everything anew, and the caller's fence has ordered what it needs to see.
  if (state_.exchange(awake, base::relaxed) != awake) base::futex_wake(&state_, 1);
}

void monitor::run() noexcept {
  const base::own_thread ours;
  (void)::pthread_setname_np(::pthread_self(), "weft-monitor");
  usual_slack_ = set_timer_slack(monitor_limits::precise);
  while (!scheduler_.stopping()) {
    const base::time_ns now = base::now();
    const respite next = look(now);
    if (look_.someone_works && now - cycles_looked_at_ >= monitor_limits::look_for_cycles_every) {
      cycles_looked_at_ = now;
      look_for_cycles(scheduler_, told_cycles_);
    }
    switch (next.how) {
      case plan::pause::nap: nap(next.length); break;
      case plan::pause::rest_for_a_while: rest(base::now() + next.length); break;
      case plan::pause::rest: rest(); break;
    }
  }
}

monitor::respite monitor::look(base::time_ns now) noexcept {
  observe(now);
  return act(policy_.decide(look_), now);
}

// A worker that leaves the idle set does not end a nap: the bound of sched.M1 is the nap's length.
void monitor::nap(base::time_ns length) noexcept {
  const std::uint32_t how = length <= monitor_limits::careful_nap ? napping : dozing;
  state_.store(how, base::relaxed);
  base::futex_wait(state_, how, base::now() + length);
  state_.store(awake, base::relaxed);
}

// A task that starves for a stack counts as work too, because nobody else would try again.
bool monitor::someone_works() const noexcept {
  return scheduler_.idle().sleeping() < scheduler_.pool().live() || scheduler_.without_stack().any();
}

// Sleeps until a worker leaves the idle set, or until the given time.
void monitor::rest(base::time_ns until) noexcept {
  state_.store(resting, base::relaxed);
  // The fence of sched.M1. Mirrors: the fences in ensure_awake() and stop().
  base::step<"monitor.rest.fence">([] { base::fence_seq_cst(); });
  // Once for each rest. The state says `resting` already, so whatever could change the answer ends this rest.
  const bool for_ever = until == base::never_ns;
  if (for_ever && !someone_works()) until = look_for_deadlock(scheduler_, told_cycles_);
  while (!base::check<"monitor.rest">(someone_works()) && !scheduler_.stopping() &&
         state_.load(base::relaxed) == resting &&
         (!for_ever || !base::check<"monitor.keeps">(scheduler_.caches().are_kept())) &&
         (until == base::never_ns || base::now() < until))
    base::futex_wait(state_, resting, until);
  state_.store(awake, base::relaxed);
}

// ---- observe -------------------------------------------------------------------------------------------------------

void monitor::observe(base::time_ns now) noexcept {
  pool_look& p = look_;
  p.now = now;
  // The process was stopped, or the machine is overloaded. A worker that was not seen to move had no chance to move.
  p.comes_late = now - last_look_ > monitor_limits::was_stopped_after;
  last_look_ = now;
  if (p.comes_late)
    for (note& n : notes_) n.since = now;
  p.somebody_starves = scheduler_.without_stack().any();
  p.starving_is_due = scheduler_.without_stack().is_due(now);
  p.someone_works = someone_works();
  p.workers.clear();
  for (worker* w : scheduler_.workers()) {
    note& seen = notes_[static_cast<std::size_t>(w->id())];
    worker_look& l = p.workers.emplace_back();  // within its capacity
    if (scheduler_.options().can_grow()) observe_sleep(*w, seen, l);
    if (p.someone_works) observe_work(*w, seen, l);
  }
  if (p.someone_works)
    observe_queues();
  else
    observe_caches();
}

// Sees for how long the worker has slept, and so whether it may leave. Needed only for a pool that can grow.
void monitor::observe_sleep(const worker& w, note& seen, worker_look& l) const noexcept {
  l.is_leaving = w.is_leaving();
  const std::uint64_t sleeps = w.counters().sleeps.get();
  if (w.state() != worker_state::sleep || sleeps != seen.sleeps) {
    seen.sleeps = sleeps;
    seen.asleep_since = look_.now;
  } else {
    l.asleep_for = look_.now - seen.asleep_since;
  }
}

// Sees what the worker does, and what is queued behind its task.
void monitor::observe_work(worker& w, note& seen, worker_look& l) const noexcept {
  if (gets_on(w, seen)) {
    seen.dispatched = w.counters().dispatched.get();
    seen.since = look_.now;
    seen.thread = thread_state::runs;
  }
  w.note_same_task(seen.dispatched, seen.since);
  l.same_task_for = look_.now - seen.since;
  l.sleeps_in_kernel = seen.thread == thread_state::sleeps;
  l.is_dead = w.is_dead();
  l.gives_way = w.gives_way();
  l.has_visible_work = w.queues().has_visible_work();
  l.has_slot = !w.queues().slot.empty();
  l.queued = w.queues().size();
}

// Sees what waits for no worker in particular. After everything else has been seen, asks the system about threads.
void monitor::observe_queues() noexcept {
  pool_look& p = look_;
  p.idle = scheduler_.idle().sleeping() + scheduler_.idle().searching();
  const base::time_ns overdue = p.now - monitor_limits::overdue;
  p.timer_is_overdue = scheduler_.watching().is_due(overdue);
  p.poll_is_overdue = scheduler_.polling().is_overdue(overdue);
  p.events_are_wanted = scheduler_.polling().is_wanted();
  p.events_wait_for_workers = scheduler_.polling().depends_on_workers();
  p.shared = scheduler_.queues().size() + (p.starving_is_due ? scheduler_.without_stack().count() : 0);
  const bool work_waits = p.work_waits() || p.poll_is_overdue;
  for (std::size_t i = 0; i < p.workers.size(); ++i)
    if (const question what = question_about(p.workers[i], p, work_waits); what != question::none)
      ask_system(scheduler_.pool()[i], notes_[i], what, p.workers[i]);
}

// Sees whether all workers have slept since the last look, and what they keep.
void monitor::observe_caches() noexcept {
  look_.sleeps = 0;
  for (const worker* w : scheduler_.workers()) look_.sleeps += w->counters().sleeps.get();
  look_.caches_are_kept = scheduler_.caches().are_kept();
  look_.caches_are_asked_for = scheduler_.caches().are_asked_for();
}

// The worker is in another task than at the last look, or in none: on its own stack, looking for work or memory. Or it
// waits for a lock of ours. Another worker would only be in its way.
bool monitor::gets_on(const worker& w, const note& seen) noexcept {
  return w.counters().dispatched.get() != seen.dispatched || w.current() == nullptr ||
         w.state() != worker_state::active || w.waits_for_lock();
}

// question_about() says when this is called. The note remembers the answers for some looks, because asking is
// expensive.
void monitor::ask_system(worker& w, note& seen, question what, worker_look& answer) const noexcept {
  // Where the worker may be computing, that is asked first: usually the thread's state need not be asked then.
  answer.is_held = (what == question::does_it_compute && computes(w, seen, look_.now)) || is_held(w, seen, look_.now);
  answer.sleeps_in_kernel = seen.thread == thread_state::sleeps;
}

bool monitor::is_held(worker& w, note& seen, base::time_ns now) noexcept {
  const base::time_ns ask_every =
      seen.thread == thread_state::sleeps ? monitor_limits::ask_sleeping_every : monitor_limits::ask_running_every;
  if (seen.asked_at < seen.since || now - seen.asked_at >= ask_every) {
    seen.thread = state_of_thread(w.thread_id());
    seen.asked_at = now;
  }
  // gets_on() comes last: what the kernel says may be about something that the worker has begun since we looked.
  return (seen.thread != thread_state::runs || computes(w, seen, now)) && !gets_on(w, seen);
}

// Whether the thread has used a processor for the threshold since it was first found stuck. It does not matter how long
// that took, because many threads may share the processors.
bool monitor::computes(worker& w, note& seen, base::time_ns now) noexcept {
  const base::time_ns used = w.processor_time();
  if (seen.timed_at < seen.since) {
    seen.processor_time = used;
    seen.timed_at = now;
  }
  return used - seen.processor_time >= monitor_limits::stuck_after;
}

// ---- act -----------------------------------------------------------------------------------------------------------

// The order matters. What starves is queued, and what is stranded is taken, before a sleeper is notified of it. Workers
// are added before the user is told that there are too few.
monitor::respite monitor::act(const plan& p, base::time_ns now) noexcept {
  idle_caches& caches = scheduler_.caches();
  if (p.retry_starved) scheduler_.placing().retry_starved();
  if (p.stop_asking_for_caches) caches.stop_asking();
  const bool taken = take_over(p);
  if (base::check<"monitor.tell">(taken || p.notify)) scheduler_.notifying().notify();
  if (p.wake_for_those_outside) scheduler_.watching().wake_a_sleeper();
  if (p.more_workers != 0) grow(p, now);
  if (scheduler_.options().can_grow()) scheduler_.pool().join_dead();
  if (p.retired != plan::nobody) retire(p.retired);
  if (p.look_for_standstill) complaints_.look(scheduler_, p.pool, now);
  if (p.ask_for_caches) caches.ask();
  if (p.trim && caches.trim()) {
    policy_.trimmed(now, p.rest_if_trimmed);
    if (p.rest_if_trimmed) return {plan::pause::rest, base::never_ns};
  }
  return {p.then, p.nap};
}

// Marks the stuck workers, and takes what lies behind them and behind the dead ones to the global queue. Returns
// whether there was something.
bool monitor::take_over(const plan& p) noexcept {
  bool taken = false;
  for (std::size_t i = 0; i < p.workers.size(); ++i) {
    worker& w = scheduler_.pool()[i];
    const plan::for_worker& todo = p.workers[i];
    w.refresh_clock(look_.now);  // for a task that parks although its worker has not looked up for long
    if (w.is_stuck() != todo.is_stuck) w.mark_stuck(todo.is_stuck);
    if (todo.take == taken_over::nothing) continue;
    chain<task::record> rest = w.queues().take_over(todo.take == taken_over::slot, hands_);
    if (rest.empty()) continue;
    taken = true;
    WEFT_LOG(watch, "%zu tasks are taken from behind worker %d, which does not come to them", rest.size(), w.id());
    scheduler_.queues().global.push(std::move(rest));
  }
  return taken;
}

// Adds as many workers as the plan says and the system gives. The policy learns the result.
void monitor::grow(const plan& p, base::time_ns now) noexcept {
  worker_set& pool = scheduler_.pool();
  std::size_t added = 0;
  (void)set_timer_slack(usual_slack_);  // new threads inherit the slack, and workers need no precise timers
  while (added < p.more_workers && pool.has_room() && pool.add()) ++added;
  (void)set_timer_slack(monitor_limits::precise);
  const bool refused = added < p.more_workers && pool.has_room();  // without room, some worker has not quite left yet
  policy_.added(added, refused, now);
  if (scheduler_.options().verbose)
    std::fprintf(stderr, "weft: %zu of %zu workers are stuck, %zu blocked, %lld tasks wait: %zu more%s\n", p.pool.stuck,
                 p.pool.workers, p.pool.blocked, static_cast<long long>(p.pool.pressure), added,
                 refused ? " (no more threads to be had)" : "");
  if (p.pool.workers + added < policy_.growth().limit() || told_limit_) return;
  told_limit_ = true;
  std::fprintf(stderr, "weft: the pool has grown to %zu workers, its limit (runtime_options::max_workers)\n",
               p.pool.workers + added);
}

void monitor::retire(int id) noexcept {
  if (scheduler_.options().verbose) std::fprintf(stderr, "weft: worker %d has nothing to do and leaves\n", id);
  scheduler_.pool().retire(static_cast<std::size_t>(id));
}

}  // namespace weft::inline v1::sched
