#include "sched/monitor.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {
namespace {

// A timer that is due this long has nobody who comes to it.
constexpr base::time_ns overdue = 100'000;
// How often the kernel is asked about a thread, by its last answer.
constexpr base::time_ns ask_sleeping_every = 10'000'000;
constexpr base::time_ns ask_running_every = 2'000'000;
// A look that comes this late says nothing about workers.
constexpr base::time_ns was_stopped_after = 100'000'000;
// After a thread could not be had.
constexpr base::time_ns growth_pause = 100'000'000;
// Timer slack, in nanoseconds, of a thread whose naps are short.
constexpr unsigned long precise = 1;
// Of what is queued behind a stuck worker, at one look: a fork tree should stay where it is if it can.
constexpr std::size_t most_taken = 32;

}  // namespace

monitor::monitor(scheduler& s, std::size_t base_workers, std::size_t limit, std::size_t queue_capacity)
    : scheduler_(s),
      elasticity_(base_workers, limit),
      notes_(limit),
      hands_(static_cast<std::uint32_t>(queue_capacity)),
      members_(base_workers) {}

void monitor::start() {
  thread_ = start_thread([this] { run(); });
}

void monitor::stop() noexcept {
  // scheduler::stopping_ is stored before we look at the state; mirror: the fence in rest().
  base::fence_seq_cst();
  hurry();
  if (thread_.joinable()) thread_.join();
}

void monitor::hurry() noexcept {
  // relaxed: the monitor looks at everything anew, and what it needs to see was fenced by the caller.
  if (state_.exchange(awake, base::relaxed) != awake) base::futex_wake(&state_, 1);
}

void monitor::run() noexcept {
  (void)::pthread_setname_np(::pthread_self(), "weft-monitor");
  usual_slack_ = set_timer_slack(precise);
  while (!scheduler_.stopping()) {
    if (!look(base::now()))
      rest();
    else if (idle_since_ != 0 && is_alert(last_look_) && nap_ > alert_nap)
      rest(base::now() + nap_);
    else
      nap();
  }
}

// Whoever leaves the idle set meanwhile does not end it: the bound of M1 is its length.
void monitor::nap() noexcept {
  const std::uint32_t how = nap_ <= careful_nap ? napping : dozing;
  state_.store(how, base::relaxed);
  base::futex_wait(state_, how, base::now() + nap_);
  state_.store(awake, base::relaxed);
}

// Until a worker leaves the idle set.
void monitor::rest(base::time_ns until) noexcept {
  state_.store(resting, base::relaxed);
  // M1. Mirrors: the fences in ensure_awake() and stop().
  base::step<"monitor.rest.fence">([] { base::fence_seq_cst(); });
  while (!base::check<"monitor.rest">(scheduler_.someone_works()) && !scheduler_.stopping() &&
         state_.load(base::relaxed) == resting &&
         (until == base::never_ns ? !base::check<"monitor.keeps">(scheduler_.somebody_keeps()) : base::now() < until))
    base::futex_wait(state_, resting, until);
  state_.store(awake, base::relaxed);
}

// False: there is nothing to look at until somebody works again.
bool monitor::look(base::time_ns now) noexcept {
  if (scheduler_.is_starving()) {
    scheduler_.retry_starved_if_due(now);
    scheduler_.notify();
  }
  // The process was stopped, or the machine is overloaded: who was not seen to move had no chance to.
  if (now - last_look_ > was_stopped_after) {
    for (note& n : notes_) n.since = now;
    nap_ = shortest_nap;  // nor did anybody advance as far as we know
  }
  last_look_ = now;
  if (!scheduler_.someone_works()) return look_at_sleepers(now);
  if (idle_since_ != 0) nap_ = shortest_nap;
  idle_since_ = 0;
  scheduler_.stop_asking();
  look_at_workers(now);
  return true;
}

bool monitor::look_at_sleepers(base::time_ns now) noexcept {
  if (idle_since_ == 0) {
    idle_since_ = now;
    for (worker* w : scheduler_.workers()) w->set_stuck(false);
  }
  const bool quiet = is_quiet(now);
  const bool one_leaves = retire_sleepers(now, 0);
  const bool too_many = elasticity_.has_too_many(members_, 0);
  if (one_leaves) {
    nap_ = shortest_nap;  // others may follow
  } else if (is_alert(now)) {
    // It rests, to be woken, but not at once: whoever works every millisecond should not have to wake it each time.
    nap_ = now - idle_since_ >= back_off_after ? std::min(2 * nap_, longest_idle_rest) : shortest_nap;
  } else {
    nap_ = std::min(2 * nap_, longest_idle_nap);
  }
  if (too_many || now - idle_since_ < rest_after) return true;
  // Those who work for some microseconds now and then are not seen to, and keep something each time: not too often for them.
  if (!quiet && now - trimmed_at_ < trim_every) return true;
  // What a sleeper gives after the trim would stay. A record in its cache would keep the slab it is from.
  if (scheduler_.somebody_keeps()) {
    if (!scheduler_.asks()) nap_ = alert_nap;
    scheduler_.ask_for_caches();
    return true;
  }
  if (!scheduler_.trim()) return true;
  trimmed_at_ = now;
  if (!quiet) return true;
  nap_ = shortest_nap;  // for whoever ends the rest
  return false;
}

// Nobody has worked for a while. The looks alone do not tell: most tasks are over before the next one.
bool monitor::is_quiet(base::time_ns now) noexcept {
  std::uint64_t sleeps = 0;
  for (const worker* w : scheduler_.workers()) sleeps += w->counters().sleeps.get();
  if (sleeps != sleeps_) quiet_since_ = now;
  sleeps_ = sleeps;
  return now - quiet_since_ >= rest_after;
}

void monitor::look_at_workers(base::time_ns now) noexcept {
  const sight s = sample(now);
  const std::size_t more = scheduler_.is_elastic() ? elasticity_.decide(s) : 0;
  if (more != 0 && now >= no_growth_before_) grow(more, s, now);
  nap_ = next_nap(s, now);
  (void)retire_sleepers(now, s.blocked);
  complaints_.look(scheduler_, s, now);
}

// M2: it grows only if nothing was seen behind which work could be stranded.
base::time_ns monitor::next_nap(const sight& s, base::time_ns now) const noexcept {
  const base::time_ns longer = 2 * nap_;
  if (is_alert(now) || scheduler_.is_starving()) {
    const bool something_to_watch = s.stuck + s.blocked != 0 || (s.work_waits && s.idle == 0);
    return something_to_watch ? shortest_nap : std::min(longer, alert_nap);
  }
  if (base::check<"monitor.stands_still">(!s.all_advance)) {
    // Those that the system has put aside are not among the stuck: the machine is busy enough.
    const bool only_put_aside = s.stuck + s.blocked == 0 && nap_ <= careful_nap;
    return only_put_aside ? std::min(longer, careful_nap) : shortest_nap;
  }
  if (base::check<"monitor.all_give_way">(s.some_give_way && s.idle == 0)) return shortest_nap;
  // Who is idle does not see what lies behind one who is busy.
  const bool depends = base::check<"monitor.depends">(s.idle != 0 && s.pressure > 0);
  return std::min(longer, depends ? careful_nap : longest_nap);
}

monitor::note& monitor::note_of(const worker& w) noexcept { return notes_[static_cast<std::size_t>(w.id())]; }

// It is in another task than the last time, or in none: on its own stack, looking for work or memory. Or it waits for a lock of ours.
// Another worker would only be in its way.
bool monitor::gets_on(const worker& w, const note& seen) noexcept {
  return w.counters().dispatched.get() != seen.dispatched || w.current() == nullptr ||
         w.state() != worker_state::active || w.waits_for_lock_.load(base::relaxed);
}

// In one task, for the threshold.
bool monitor::is_stuck(const worker& w, note& seen, base::time_ns now) noexcept {
  if (gets_on(w, seen)) {
    seen.dispatched = w.counters().dispatched.get();
    seen.since = now;
    seen.thread = thread_state::runs;
  }
  return now - seen.since >= stuck_after;
}

// One look at every worker. What lies behind a stuck one is given to others on the way (M2).
monitor::sight monitor::sample(base::time_ns now) noexcept {
  sight s;
  s.workers = members_;
  s.idle = scheduler_.idle().sleeping() + scheduler_.idle().searching();
  bool waits = false;
  for (worker* w : scheduler_.workers()) {
    note& seen = note_of(*w);
    const bool stuck = is_stuck(*w, seen, now);
    w->set_stuck(stuck);
    if (stuck) ++s.stuck;
    // One that gives way has nothing behind it that others were not told of.
    s.some_give_way = s.some_give_way || w->gives_way();
    s.all_advance = s.all_advance && (seen.since == now || w->gives_way());
    waits = waits || w->has_visible_work() || (stuck && !w->slot_.empty());
    s.pressure += w->queued();
  }
  const bool due = scheduler_.timer_due(now - overdue);
  const std::size_t shared = scheduler_.shared_work();
  s.pressure += static_cast<std::int64_t>(shared) + (due ? 1 : 0);
  s.work_waits = waits || due || shared != 0;
  const bool some_stuck = s.stuck != 0;
  const bool taken = look_behind_stuck(s, now);
  if (base::check<"monitor.tell">(taken || shared != 0 || (some_stuck && waits))) scheduler_.notify();
  if (base::check<"monitor.timers">(due)) scheduler_.wake_for_timers();
  return s;
}

// Tells in the sample what the stuck ones do, and takes over what lies behind them and behind the dead. True: there was something.
bool monitor::look_behind_stuck(pool_sample& s, base::time_ns now) noexcept {
  // Thieves reach everything but the slot, if there are any. Those who are busy look at the global queue now and then.
  const bool only_slots = s.idle != 0 || s.stuck == s.workers;
  bool taken = false;
  for (worker* w : scheduler_.workers()) {
    const bool held = classify(*w, s, now);
    // Of the only worker, if no other will be added, it would only lose its place.
    const bool someone_comes = s.workers > 1 || (held && scheduler_.is_elastic());
    if (w->is_stuck() && scheduler_.stealing() && someone_comes) taken = take_over(*w, only_slots || !held) || taken;
    // What came to it while it left.
    if (w->state() == worker_state::dead && w->has_visible_work()) taken = take_over(*w, false) || taken;
  }
  return taken;
}

// A stuck worker uses a processor, or its thread is blocked: its task holds it. Or the system has put the thread aside; more threads
// would only make that worse, and it will go on by itself. The kernel is asked only when that may decide something: whether the pool
// grows, or whether the monitor is alert from now on.
bool monitor::classify(worker& w, pool_sample& s, base::time_ns now) noexcept {
  note& seen = note_of(w);
  const bool stuck = w.is_stuck();
  const bool nobody_comes = s.work_waits && s.idle == 0;
  const bool alarming = stuck && !w.gives_way() && (s.work_waits || now - seen.since >= alarming_after);
  // What waits behind it goes to an idle one now, and after that it need not be stuck any more: no second look would tell.
  const bool is_rescued = s.idle != 0 && (w.has_visible_work() || !w.slot_.empty());
  bool held = stuck;
  if (stuck && nobody_comes)
    held = is_held(w, seen, now);
  else if (alarming && !is_rescued)
    held = computes(w, seen, now) || is_held(w, seen, now);  // mostly without a question to the kernel
  if (base::check<"monitor.alert">(alarming && held)) alert_until_ = now + stay_alert;
  const bool blocked = (held && seen.thread == thread_state::sleeps) || w.gives_way();
  if (blocked) ++s.blocked;
  if (stuck && (blocked || !held)) --s.stuck;
  return held;
}

bool monitor::is_held(worker& w, note& seen, base::time_ns now) noexcept {
  const base::time_ns ask_every = seen.thread == thread_state::sleeps ? ask_sleeping_every : ask_running_every;
  if (seen.asked_at < seen.since || now - seen.asked_at >= ask_every) {
    seen.thread = state_of_thread(w.thread_id());
    seen.asked_at = now;
  }
  // In this order: what the kernel says may be about something that it does since we looked.
  return (seen.thread != thread_state::runs || computes(w, seen, now)) && !gets_on(w, seen);
}

// It has used a processor for the threshold since it was first found stuck, however long that took: it may be one of many.
bool monitor::computes(worker& w, note& seen, base::time_ns now) noexcept {
  const base::time_ns used = processor_time(w.thread_);
  if (seen.timed_at < seen.since) {
    seen.processor_time = used;
    seen.timed_at = now;
  }
  return used - seen.processor_time >= stuck_after;
}

// What is queued on `from`, or only what is in its slot, to the global queue. True: there was something.
bool monitor::take_over(worker& from, bool only_slot) noexcept {
  chain<task::record> rest;
  base::step<"monitor.slot">([&] {
    if (record* t = from.slot_.steal()) rest.push_back(t);
  });
  if (!only_slot) {
    if (record* t = from.woken_.steal_into(hands_)) {
      rest.push_back(t);
      while (record* other = hands_.pop()) rest.push_back(other);
    }
    for (std::size_t i = 0; i < most_taken; ++i)
      if (record* t = from.fresh_.steal()) rest.push_back(t);
    rest.append(from.inbox_.take_all());
  }
  if (rest.empty()) return false;
  WEFT_LOG(watch, "%zu tasks are taken from behind worker %d, which does not come to them", rest.size(), from.id());
  scheduler_.global().push(std::move(rest));
  return true;
}

void monitor::grow(std::size_t by, const pool_sample& s, base::time_ns now) noexcept {
  std::size_t added = 0;
  (void)set_timer_slack(usual_slack_);  // they are no watchers
  while (added < by && scheduler_.has_room() && scheduler_.add_worker()) ++added;
  (void)set_timer_slack(precise);
  elasticity_.counters().grown.add(added);
  members_ += added;
  const bool refused = added < by && scheduler_.has_room();  // else somebody has not quite left yet
  if (refused) {
    elasticity_.counters().failed.add();
    no_growth_before_ = now + growth_pause;
  }
  if (scheduler_.options().verbose)
    std::fprintf(stderr, "weft: %zu of %zu workers are stuck, %zu blocked, %lld tasks wait: %zu more%s\n", s.stuck,
                 s.workers, s.blocked, static_cast<long long>(s.pressure), added,
                 refused ? " (no more threads to be had)" : "");
  if (s.workers + added < elasticity_.limit() || told_limit_) return;
  told_limit_ = true;
  std::fprintf(stderr, "weft: the pool has grown to %zu workers, its limit (runtime_options::max_workers)\n",
               s.workers + added);
}

// Those beyond the pool's size, one at a look, once they have slept for a while. True: one was told to leave.
bool monitor::retire_sleepers(base::time_ns now, std::size_t blocked) noexcept {
  if (!scheduler_.is_elastic()) return false;
  const bool too_many = elasticity_.has_too_many(members_, blocked);
  worker* last = nullptr;
  for (worker* w : scheduler_.workers()) {
    note& seen = note_of(*w);
    const std::uint64_t sleeps = w->counters().sleeps.get();
    if (w->state() == worker_state::dead) w->join();
    if (w->state() != worker_state::sleep || sleeps != seen.sleeps) {
      seen.sleeps = sleeps;
      seen.asleep_since = now;
    } else if (now - seen.asleep_since >= scheduler_.options().keep_alive && !w->is_leaving()) {
      last = w;
    }
  }
  if (!too_many || last == nullptr) return false;
  if (scheduler_.options().verbose) std::fprintf(stderr, "weft: worker %d has nothing to do and leaves\n", last->id());
  --members_;
  elasticity_.counters().retired.add();
  scheduler_.retire(static_cast<std::size_t>(last->id()));
  return true;
}

}  // namespace weft::inline v1::sched
