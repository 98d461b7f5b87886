// What comes to a worker's queues: tasks that it wakes or spawns, or that it fetches where all of them look.
#include <algorithm>

#include "base/cache_line.hpp"
#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "sched/worker.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {
namespace {

// About what it takes until a sleeping thread runs.
constexpr base::time_ns worth_waking_for = 10'000;

}  // namespace

inline void worker::spill(chain<record>& overflow) noexcept {
  if (!overflow.empty()) [[unlikely]]
    scheduler_.take_overflow(*this, std::move(overflow));
}

inline void worker::append(record* t) noexcept {
  settle_spawned();
  if (!woken_.try_push(t)) [[unlikely]]
    append_overflowing(t);
}

void worker::append_overflowing(record* t) noexcept {
  chain<record> overflow;
  woken_.push(t, overflow);
  spill(overflow);
}

// The running task leaves without waiting for what it has spawned, or wakes somebody who comes after that. What the ring has no room
// for goes behind everything else.
[[gnu::noinline]] void worker::line_up_spawned() noexcept {
  const std::uint32_t spawned = spawned_ & ~logs_parks;
  if (spawned == 0) return;
  spawned_ &= logs_parks;
  chain<record> overflow;
  fresh_.pop_newest(spawned, [&](record* t) { woken_.push(t, overflow); });
  spill(overflow);
  line_end_ = woken_.end();
  manner_.store(manner_.load(base::relaxed) | line_waits, base::relaxed);
  // Somebody may have looked for them while they were in neither queue.
  tell_if(woken_.size() > 1);
}

// More was queued than this worker comes to in a moment. For less nobody is woken: if it does not come to it, the monitor notices.
inline void worker::tell() noexcept {
  if (!scheduler_.is_alone()) scheduler_.notify();
}

// The same, but behind a task that may block even one is too many.
inline void worker::tell_if(bool worth_it) noexcept {
  if (worth_it || gives_way()) tell();
}

// It has a dispatcher or a priority, or this worker gives way. Or spawned tasks have lined up, and it goes behind them. Or it is a select
// of several sources, which goes behind the other woken tasks: what they bring it meanwhile it takes without parking once more, which
// with four arms is most of its work.
void worker::accept_specially(record* t) noexcept {
  if ((t->extras & task::is_routed) != 0) return scheduler::route(t);
  if constexpr (force_migration) return scheduler_.inject_elsewhere(*this, t);
  if (forget_line_if_passed() && (t->extras & task::waits_for_several) == 0) return queue_woken(t);
  WEFT_LOG(wake, "task %s behind the others of worker %d", task::label(*t).text, id_);
  gives_way() ? queue_openly(t) : queue_behind(t);
}

// True: woken tasks may use the slot.
bool worker::forget_line_if_passed() noexcept {
  if (woken_.has_passed(line_end_))
    manner_.store(static_cast<task::extra>(manner_.load(base::relaxed) & ~line_waits), base::relaxed);
  return manner_.load(base::relaxed) == 0;
}

void worker::queue_and_log(record* t) noexcept {
  WEFT_LOG(wake, "task %s to the slot of worker %d", task::label(*t).text, id_);
  put_in_slot(t);
}

// Behind the other woken tasks.
void worker::queue_behind(record* t) noexcept {
  append(t);
  // What this worker comes to sooner than another one wakes up needs no help.
  const bool alone = woken_.size() == 1 && slot_.empty();
  if (!alone && static_cast<base::time_ns>(woken_.size()) * tick_.duration() >= worth_waking_for) tell();
}

// A joiner goes behind the other woken tasks instead of to the LIFO slot: those are often what it joins next (a batch of tasks
// joined in order would otherwise park once per task), and its result waits in the record, not in this worker's cache.
void worker::accept_joiner(record* t) noexcept {
  counters_.wakes.add();
  become_runnable(t, task::run_state::none);
  if ((t->extras & task::is_routed) != 0) [[unlikely]]
    return scheduler::route(t);
  if constexpr (force_migration) return scheduler_.inject_elsewhere(*this, t);
  const bool first = woken_.empty();
  append(t);
  tell_if(!first);
}

void worker::accept_fresh(record* t) noexcept {
  counters_.spawned.add();
  if ((t->extras & task::is_routed) != 0) [[unlikely]]
    return scheduler::route(t);
  if constexpr (force_migration) return scheduler_.inject_elsewhere(*this, t);
  queue_fresh(t);
}

inline void worker::queue_fresh(record* t) noexcept {
  bool first = false;
  if (!fresh_.try_push(t, first)) [[unlikely]]
    queue_overflowing(t);
  ++spawned_;
  tell_if(!first);  // one short task is not worth waking a thread for
}

// The running task's own line up, and keep their order. Otherwise the oldest go to the global queue, and have their turns in the order of
// all from then on: who spawns more than this before it joins does not grow a tree, or does not wait for all of it.
void worker::queue_overflowing(record* fresh) noexcept {
  if ((spawned_ & ~logs_parks) >= fresh_.capacity() / 2) line_up_spawned();
  chain<record> overflow;
  fresh_.push(fresh, overflow);
  spill(overflow);
}

// In the order of their turns, started or not.
void worker::queue(record* t) noexcept {
  if ((t->extras & task::on_lane) != 0) return queue_openly(t);
  if (t->is_started())
    manner_.load(base::relaxed) != 0 ? queue_openly(t) : queue_woken(t);
  else
    queue_fresh(t);
}

// Where thieves see it, and told.
void worker::queue_openly(record* t) noexcept {
  append(t);
  if (gives_way())
    scheduler_.find_replacement();
  else if (woken_.size() > 1)
    tell();
}

void worker::accept_woken_batch(chain<record>&& batch) noexcept {
  counters_.wakes.add(batch.size());
  settle_spawned();
  const bool several = batch.size() > 1;
  chain<record> overflow;
  while (record* t = batch.pop_front()) {
    become_runnable(t, task::run_state::none);
    // Frames that slept for long: their page walks and misses overlap here, one by one they would not.
    base::prefetch(t->sp.load(base::relaxed), 2);
    if ((t->extras & task::is_routed) != 0) [[unlikely]]
      scheduler::route(t);
    else if constexpr (force_migration)
      scheduler_.inject_elsewhere(*this, t);
    else
      woken_.push(t, overflow);
  }
  spill(overflow);
  tell_if(several);
}

void worker::accept_batch(chain<record>&& batch) noexcept {
  const bool several = batch.size() > 1;
  chain<record> overflow;
  while (record* t = batch.pop_front()) woken_.push(t, overflow);
  spill(overflow);
  if (several) tell();
}

record* worker::from_inbox() noexcept {
  if (inbox_.empty()) return nullptr;
  WEFT_LOG(inbox, "worker %d empties its inbox", id_);
  chain<record> all = inbox_.take_all();
  record* first = all.pop_front();
  if (!all.empty()) accept_batch(std::move(all));
  return first;
}

// A share of the global queue, as far as the ring has room: what does not fit would lose its place.
record* worker::from_global() noexcept {
  const std::size_t room = woken_.capacity() - std::min(woken_.size(), woken_.capacity());
  const std::size_t most = std::min(room + 1, global_queue<record>::max_batch);
  chain<record> share = scheduler_.global().take_share(scheduler_.live_workers(), most);
  record* first = share.pop_front();
  if (!share.empty()) accept_batch(std::move(share));
  return first;
}

// One urgent task; after some in a row the others get their turn.
record* worker::from_urgent() noexcept {
  constexpr std::uint8_t most_in_a_row = 8;
  if (++urgent_runs_ <= most_in_a_row)
    if (record* t = scheduler_.urgent().take_share(1, 1).pop_front()) return t;
  urgent_runs_ = 0;
  return nullptr;
}

record* worker::from_background() noexcept { return scheduler_.background().take_share(1, 1).pop_front(); }

}  // namespace weft::inline v1::sched
