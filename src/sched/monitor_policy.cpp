#include "sched/monitor_policy.hpp"

#include <algorithm>

namespace weft::inline v1::sched {

using limits = monitor_limits;

bool pool_look::work_waits() const noexcept {
  return shared != 0 || timer_is_overdue || std::any_of(workers.begin(), workers.end(), [](const worker_look& w) {
           return w.has_visible_work || (w.is_stuck() && w.has_slot);
         });
}

namespace {

// Whether a stuck worker is a reason to be alert, provided that its task does hold it.
bool is_alarming(const worker_look& w, bool work_waits) noexcept {
  return w.is_stuck() && !w.gives_way && (work_waits || w.same_task_for >= limits::alarming_after);
}

}  // namespace

question question_about(const worker_look& w, const pool_look& p, bool work_waits) noexcept {
  if (!w.is_stuck()) return question::none;
  if (work_waits && p.idle == 0) return question::is_it_held;  // the answer decides whether the pool grows
  // What waits behind the worker goes to an idle one now. After that the worker need not be stuck any more, so a second
  // look would not tell.
  const bool is_rescued = p.idle != 0 && (w.has_visible_work || w.has_slot);
  return is_alarming(w, work_waits) && !is_rescued ? question::does_it_compute : question::none;
}

monitor_policy::monitor_policy(const settings& of) : of_(of), elasticity_(of.workers, of.most), members_(of.workers) {
  plan_.workers.reserve(of.most);
}

const plan& monitor_policy::decide(const pool_look& p) noexcept {
  std::vector<plan::for_worker> reused = std::move(plan_.workers);
  reused.assign(p.workers.size(), {});  // within its capacity
  plan_ = plan{};
  plan_.workers = std::move(reused);
  // These come before a sleeper is notified, so that it finds them.
  plan_.retry_starved = p.starving_is_due;
  plan_.notify = p.somebody_starves;
  if (p.comes_late) nap_ = limits::shortest_nap;  // the look does not say whether anybody advanced either
  if (p.someone_works)
    decide_beside_workers(p);
  else
    decide_while_all_sleep(p);
  // While alert, the monitor has to learn of a worker that goes to work, once its naps are longer than it may be late.
  if (idle_since_ != 0 && is_alert(p.now) && nap_ > limits::alert_nap) plan_.then = plan::pause::rest_for_a_while;
  plan_.nap = nap_;
  return plan_;
}

// ---- somebody works ------------------------------------------------------------------------------------------------

void monitor_policy::decide_beside_workers(const pool_look& p) noexcept {
  if (idle_since_ != 0) nap_ = limits::shortest_nap;
  idle_since_ = 0;
  plan_.stop_asking_for_caches = true;
  sight s = count(p);
  judge(p, s);
  plan_.pool = s;
  plan_.look_for_standstill = true;
  plan_.notify = plan_.notify || p.shared != 0 || (s.some_stuck && s.some_wait);
  plan_.wake_for_those_outside = base::check<"monitor.timers">(p.timer_is_overdue || p.poll_is_overdue);
  std::size_t more = of_.can_grow() ? elasticity_.decide(s) : 0;
  // Nobody knows whether an event has come. One worker is enough to see to it, and it stays while it is the only idle one.
  if (more == 0 && p.poll_is_overdue && nobody_comes(s)) more = 1;
  if (p.now >= no_growth_before_) plan_.more_workers = more;
  nap_ = nap_beside_workers(p, s);
  (void)choose_retired(p, s.blocked);
}

// All are kept by their tasks, and another one may be added.
bool monitor_policy::nobody_comes(const sight& s) const noexcept {
  return of_.can_grow() && s.idle == 0 && s.stuck + s.blocked == s.workers && s.workers < of_.most;
}

monitor_policy::sight monitor_policy::count(const pool_look& p) const noexcept {
  sight s;
  s.workers = members_;
  s.idle = p.idle;
  for (const worker_look& w : p.workers) {
    if (w.is_stuck()) ++s.stuck;
    // A worker that gives way has nothing behind it of which others were not notified.
    s.some_give_way = s.some_give_way || w.gives_way;
    s.all_advance = s.all_advance && (w.same_task_for == 0 || w.gives_way);
    s.some_wait = s.some_wait || w.has_visible_work || (w.is_stuck() && w.has_slot);
    s.pressure += w.queued;
  }
  s.some_stuck = s.stuck != 0;
  s.pressure += static_cast<std::int64_t>(p.shared) + (p.timer_is_overdue ? 1 : 0);
  s.work_waits = p.work_waits();
  return s;
}

// Decides for each stuck worker whether its task holds it, on a processor or blocked, or the system has put its thread
// aside. In the latter case the worker will continue by itself, and more threads would only make it worse. Decides also
// what is taken from behind the worker.
void monitor_policy::judge(const pool_look& p, sight& s) noexcept {
  // Thieves reach everything but the slot, if there are thieves. Busy workers look at the global queue now and then.
  const bool only_slots = s.idle != 0 || s.stuck == s.workers;
  for (std::size_t i = 0; i < p.workers.size(); ++i) {
    const worker_look& w = p.workers[i];
    plan::for_worker& todo = plan_.workers[i];
    const bool stuck = w.is_stuck();
    const bool held = stuck && w.is_held;
    todo.is_stuck = stuck;
    if (base::check<"monitor.alert">(held && is_alarming(w, s.work_waits))) alert_until_ = p.now + limits::stay_alert;
    const bool blocked = (held && w.sleeps_in_kernel) || w.gives_way;
    if (blocked) ++s.blocked;
    if (stuck && (blocked || !held)) --s.stuck;
    // If this is the only worker and no other will be added, what is taken would only lose its place.
    const bool someone_comes = s.workers > 1 || (held && of_.can_grow());
    if (stuck && of_.stealing && someone_comes) todo.take = only_slots || !held ? taken_over::slot : taken_over::all;
    // Tasks that came to the worker while it left.
    if (w.is_dead && w.has_visible_work) todo.take = taken_over::all;
  }
}

// sched.M2: the nap grows only if nothing was seen behind which work could be stranded.
base::time_ns monitor_policy::nap_beside_workers(const pool_look& p, const sight& s) const noexcept {
  const base::time_ns longer = 2 * nap_;
  if (is_alert(p.now) || (p.somebody_starves && !p.starving_is_due)) {
    const bool something_to_watch = s.stuck + s.blocked != 0 || (s.work_waits && s.idle == 0);
    return something_to_watch ? limits::shortest_nap : std::min(longer, limits::alert_nap);
  }
  if (base::check<"monitor.stands_still">(!s.all_advance)) {
    // Workers that the system has put aside do not count as stuck: the machine is busy enough.
    const bool only_put_aside = s.stuck + s.blocked == 0 && nap_ <= limits::careful_nap;
    return only_put_aside ? std::min(longer, limits::careful_nap) : limits::shortest_nap;
  }
  if (base::check<"monitor.all_give_way">(s.some_give_way && s.idle == 0)) return limits::shortest_nap;
  // An idle worker does not see what lies behind a busy one, nor events for which only workers that are awake poll.
  const bool depends = base::check<"monitor.depends">(s.idle != 0 && (s.pressure > 0 || p.events_wait_for_workers));
  return std::min(longer, depends ? limits::careful_nap : limits::longest_nap);
}

void monitor_policy::added(std::size_t workers, bool refused, base::time_ns now) noexcept {
  elasticity_.counters().grown.add(workers);
  members_ += workers;
  if (!refused) return;
  elasticity_.counters().failed.add();
  no_growth_before_ = now + limits::growth_pause;
}

// ---- all sleep -----------------------------------------------------------------------------------------------------

void monitor_policy::decide_while_all_sleep(const pool_look& p) noexcept {
  if (idle_since_ == 0) idle_since_ = p.now;
  const bool quiet = is_quiet(p);
  const base::time_ns idle_for = p.now - idle_since_;
  const bool one_leaves = choose_retired(p, 0);
  if (one_leaves) {
    nap_ = limits::shortest_nap;  // others may follow
  } else if (is_alert(p.now)) {
    // The monitor rests and is woken, but not at once: a worker that works every millisecond should not have to wake it
    // each time.
    nap_ = idle_for >= limits::back_off_after ? std::min(2 * nap_, limits::longest_idle_rest) : limits::shortest_nap;
  } else {
    nap_ = std::min(2 * nap_, limits::longest_idle_nap);
  }
  if (elasticity_.has_too_many(members_, 0) || idle_for < limits::rest_after) return;
  // The looks miss workers that work for some microseconds now and then. Such a worker keeps something each time, so it
  // is not asked too often.
  if (!quiet && p.now - trimmed_at_ < limits::trim_every) return;
  // What a sleeper gives after the trim would stay in the pools, and a record in its cache would keep the slab from
  // which it comes. So the sleepers give first.
  if (p.caches_are_kept) {
    if (!p.caches_are_asked_for) nap_ = limits::alert_nap;
    plan_.ask_for_caches = true;
    return;
  }
  plan_.trim = true;
  plan_.rest_if_trimmed = quiet;
}

// Whether nobody has worked for a while. The looks alone do not tell, because most tasks are over before the next look.
bool monitor_policy::is_quiet(const pool_look& p) noexcept {
  if (p.sleeps != sleeps_) quiet_since_ = p.now;
  sleeps_ = p.sleeps;
  return p.now - quiet_since_ >= limits::rest_after;
}

void monitor_policy::trimmed(base::time_ns now, bool rests) noexcept {
  trimmed_at_ = now;
  if (rests) nap_ = limits::shortest_nap;  // for whoever ends the rest
}

// Chooses one worker beyond the pool's size at each look, if it has slept for a while. Returns whether one is to leave.
bool monitor_policy::choose_retired(const pool_look& p, std::size_t blocked) noexcept {
  if (!of_.can_grow() || !elasticity_.has_too_many(members_, blocked)) return false;
  if (p.someone_works && p.events_are_wanted && p.idle == 1) return false;  // the others may all be kept by their tasks
  for (std::size_t i = p.workers.size(); i-- > 0;) {
    const worker_look& w = p.workers[i];
    if (w.asleep_for < 0 || w.asleep_for < of_.keep_alive || w.is_leaving) continue;
    plan_.retired = static_cast<int>(i);
    --members_;
    elasticity_.counters().retired.add();
    return true;
  }
  return false;
}

}  // namespace weft::inline v1::sched
