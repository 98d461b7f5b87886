#include "sched/intake.hpp"

#include <algorithm>

#include "sched/scheduler.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {
namespace {

// About the time from waking a sleeping thread until it runs.
constexpr base::time_ns worth_waking_for = 10'000;
// Waking a thread, its search, its sleep and what it disturbs cost the processors about this much.
constexpr base::time_ns worth_waking_for_events = 50'000;

}  // namespace

intake::intake(scheduler& s, int worker)
    : scheduler_(s),
      id_(worker),
      queues_(worker, s.options().queue_capacity,
              {.shared = s.queues(), .without_stack = s.without_stack(), .workers = s.pool(), .others = s.notifying()},
              counters_) {
  if (base::logs(base::topic::park)) gate_.log_parks();
}

// Queues a task behind the woken ones, and behind those that the running task has spawned before.
inline void intake::append(record* t) noexcept {
  settle_spawned();
  queues_.append(t);
}

// The running task leaves without waiting for what it has spawned, or it wakes a task whose turn comes after those.
[[gnu::noinline]] void intake::line_up_spawned() noexcept {
  const std::uint32_t newest = gate_.spawned();
  if (newest == 0) return;
  gate_.forget_spawned();
  queues_.line_up(newest);
  set_manner(manner() | line_waits);
  // A thief may have looked for them while they were in neither queue.
  tell_if(queues_.woken.size() > 1);
}

// Notifies others that more is queued than this worker comes to in a moment.
inline void intake::tell() noexcept {
  if (!scheduler_.pool().is_alone()) scheduler_.notifying().notify();
}

// The same if it is worth it. Behind a task that may block, a single queued task is worth it.
inline void intake::tell_if(bool worth_it) noexcept {
  if (worth_it || gives_way()) tell();
}

// The slot is not for this task. Either it has a dispatcher or a priority, or this worker gives way. Or spawned tasks
// have lined up, and it goes behind them. Or it is a select of several sources, which goes behind the other woken
// tasks: it takes what they bring it meanwhile without parking once more, which with four arms is most of its work.
void intake::accept_specially(record* t) noexcept {
  if (placement::sends_elsewhere(scheduler_, id_, t)) return;
  if (forget_line_if_passed() && (t->extras & task::waits_for_several) == 0) return queue_woken(t);
  WEFT_LOG(wake, "task %s behind the others of worker %d", task::label(*t).text, id_);
  gives_way() ? queue_openly(t) : queue_behind(t);
}

bool intake::forget_line_if_passed() noexcept {
  if (queues_.line_has_passed()) set_manner(static_cast<task::extra>(manner() & ~line_waits));
  return manner() == 0;
}

void intake::queue_and_log(record* t) noexcept {
  WEFT_LOG(wake, "task %s to the slot of worker %d", task::label(*t).text, id_);
  put_in_slot(t);
}

// Queues a task behind the other woken tasks.
void intake::queue_behind(record* t) noexcept {
  append(t);
  // What this worker reaches sooner than another one wakes up needs no help.
  const std::uint32_t woken = queues_.woken.size();
  const bool alone = woken == 1 && queues_.slot.empty();
  if (!alone && static_cast<base::time_ns>(woken) * tick_.duration() >= worth_waking_for) tell();
}

// A joiner goes behind the other woken tasks instead of to the LIFO slot. Those tasks are often what it joins next: a
// batch of tasks joined in order would otherwise park the joiner once per task. And its result waits in the record, not
// in this worker's cache.
void intake::accept_joiner(record* t) noexcept {
  counters_.wakes.add();
  become_runnable(t, task::run_state::none);
  if (placement::sends_elsewhere(scheduler_, id_, t)) [[unlikely]]
    return;
  const bool first = queues_.woken.empty();
  append(t);
  tell_if(!first);
}

// The task was spawned by the running task, or by a callback on this worker. It has no place in the order of turns yet
// (line_up_spawned()).
void intake::accept_fresh(record* t) noexcept {
  counters_.spawned.add();
  if (placement::sends_elsewhere(scheduler_, id_, t)) [[unlikely]]
    return;
  queue_fresh(t);
}

inline void intake::queue_fresh(record* t) noexcept {
  bool first = false;
  if (!queues_.fresh.try_push(t, first)) [[unlikely]]
    queue_overflowing(t);
  gate_.count_spawned();
  tell_if(!first);  // one short task is not worth waking a thread for
}

// The deque is full. If at least half of it was spawned by the running task, those line up and keep their order.
// Otherwise the oldest go to the global queue and from then on have their turns in the order of all tasks. A task that
// spawns more than this before it joins does not grow a tree, or does not wait for all of it.
void intake::queue_overflowing(record* fresh) noexcept {
  if (gate_.spawned() >= queues_.fresh.capacity() / 2) line_up_spawned();
  queues_.push_fresh_overflowing(fresh);
}

// The task has its turn on its lane, or steps aside for another task. Whether it has started or not, it goes where it
// would have gone without a lane.
void intake::queue(record* t) noexcept {
  if ((t->extras & task::on_lane) != 0) return queue_openly(t);
  if (t->is_fresh())
    queue_fresh(t);
  else
    manner() != 0 ? queue_openly(t) : queue_woken(t);
}

void intake::queue_openly(record* t) noexcept {
  append(t);
  if (gives_way())
    scheduler_.placing().find_replacement();
  else if (queues_.woken.size() > 1)
    tell();
}

// Called with true when a task on a lane begins to run or the running task enters a lane, and with false when it has
// left. From the outside the worker counts as blocked (elasticity.hpp), and others put nothing into its inbox
// (placement::choose_inbox()).
void intake::give_way(bool gives) noexcept {
  const auto others = static_cast<task::extra>(manner() & ~may_block);
  set_manner(static_cast<task::extra>(others | (gives ? may_block : 0)));
  if (!gives) return;
  // Nobody else would see what is in the slot.
  if (record* t = queues_.slot.take()) return queue_openly(t);
  if (queues_.has_visible_work() || scheduler_.queues().size() != 0)
    scheduler_.placing().find_replacement();
  else
    scheduler_.placing().gave_way();
}

// Takes the tasks that a timer wheel or the cancellation of a scope has woken. They are many at a time, so none of them is
// worth the slot.
void intake::accept_woken_batch(chain<record>&& batch) noexcept {
  const bool several = batch.size() > 1;
  queue_batch(std::move(batch));
  tell_if(several);
}

// A server whose worker wakes another one for every few events pays more for waking threads than for its requests.
void intake::accept_events(chain<record>&& batch) noexcept {
  const bool many = !comes_soon_to(batch.size());
  queue_batch(std::move(batch));
  tell_if(many);
}

// A task that an event wakes usually makes a system call or two. The average is not known before the worker has run
// some tasks without sleeping in between, so it does not count for more than that.
bool intake::comes_soon_to(std::size_t tasks) const noexcept {
  constexpr base::time_ns longest_turn = 10'000;
  return static_cast<base::time_ns>(tasks) * std::min(tick_.duration(), longest_turn) < worth_waking_for_events;
}

void intake::queue_batch(chain<record>&& batch) noexcept {
  counters_.wakes.add(batch.size());
  settle_spawned();
  queues_.append_those(std::move(batch), [this](record* t) {
    become_runnable(t, task::run_state::none);
    // These frames have slept for long. Their page walks and cache misses overlap here; one by one they would not.
    base::prefetch(t->first_accessed(), 2);
    return !placement::sends_elsewhere(scheduler_, id_, t);
  });
}

}  // namespace weft::inline v1::sched
