#include "sched/worker.hpp"

#include <cstring>
#include <source_location>

#include "base/cache_line.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "context/annotate.hpp"
#include "sched/scheduler.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {
namespace {

// After this many tasks from the LIFO slot in a row the ring gets its turn (BZ-1).
constexpr std::uint8_t slot_runs_limit = 3;
// Turns of woken tasks, each with those that the slot brought, after which a fresh one has its own.
constexpr std::uint8_t most_passed_over = 4;
// Suspension points that a task may pass without parking; at the next, the 128th, it goes to the tail (BZ-6).
constexpr std::int32_t budget_per_slice = 127;

// With a thousand tasks neither records nor frames are in L1, and each frame has a page of its own. Far enough ahead that both have
// come when their turn has: first the record, which says where the frames are.
inline void prefetch_behind(const ring<record>& woken) noexcept {
  const auto [soon, later] = woken.upcoming(2, 5);
  if (soon != nullptr)
    if (const void* frames = soon->sp.load(base::relaxed))
      base::prefetch(frames, 4);  // none: it has ended, or not begun
  if (later != nullptr) base::prefetch(later, 1);
}

}  // namespace

// ---- what runs next ------------------------------------------------------------------------------------------------

// Fresh tasks whose spawner waits for them come after woken ones, which may soon give back what they hold, but not for ever after. The
// newest, because the oldest would open a fork tree at its root; that one has its turn at a tick.
inline record* worker::overdue_fresh() noexcept {
  if (passed_over_ < most_passed_over) [[likely]] {
    ++passed_over_;
    return nullptr;
  }
  if (scheduler_.is_starving()) [[unlikely]]  // for stacks, which woken ones will give back
    return nullptr;
  return newest_fresh();
}

inline record* worker::newest_fresh() noexcept {
  passed_over_ = 0;
  return fresh_.pop();
}

// One more task without a look at the rest of the world: no tick is due, nothing urgent waits, and the worker stays.
[[gnu::always_inline]] inline bool worker::goes_on() noexcept {
  return !tick_.passes() && !drain_requested_.load(base::relaxed) && scheduler_.urgent().size() == 0;
}

// Woken, and so it has a stack.
[[gnu::always_inline]] inline record* worker::next_from_slot() noexcept {
  if (slot_runs_ >= slot_runs_limit) return nullptr;
  record* t = slot_.take();
  if (t != nullptr) ++slot_runs_;
  return t;
}

// After what the slot has. Without touching any lock or the system: for a task that parks with an object's lock held.
[[gnu::noinline]] record* worker::next_in_turn() noexcept {
  slot_runs_ = 0;
  record* t = overdue_fresh();
  if (t == nullptr && (t = woken_.pop()) != nullptr) prefetch_behind(woken_);
  if (t == nullptr) t = slot_.take();
  if (t == nullptr && stacks_.size() != 0) t = newest_fresh();
  return t == nullptr ? nullptr : with_stack(t);
}

// nullptr: there is none at hand, and the worker's own stack will see to it.
inline record* worker::with_stack(record* t) noexcept {
  if (t->is_started() || attach_cached(t)) [[likely]]
    return t;
  in_hand_ = t;
  return nullptr;
}

record* worker::next_without_locks() noexcept {
  settle_spawned();
  if (!goes_on()) return nullptr;
  record* t = next_from_slot();
  return t != nullptr ? t : next_in_turn();
}

record* worker::next_local() noexcept {
  settle_spawned();
  if (drain_requested_.load(base::relaxed)) return nullptr;
  if (in_hand_ != nullptr) return std::exchange(in_hand_, nullptr);
  if (tick_.passes()) [[unlikely]]
    if (record* t = maintain()) return t;
  if (scheduler_.urgent().size() != 0) [[unlikely]]
    if (record* t = from_urgent()) return t;
  if (slot_runs_ < slot_runs_limit)
    if (record* t = slot_.take()) {
      ++slot_runs_;
      return t;
    }
  slot_runs_ = 0;
  if (record* t = overdue_fresh()) return t;
  if (record* t = woken_.pop()) {
    prefetch_behind(woken_);
    return t;
  }
  if (record* t = slot_.take()) return t;
  if (!inbox_.empty()) [[unlikely]]
    if (record* t = from_inbox()) return t;
  if (record* t = newest_fresh()) return t;
  return from_global();
}

// The tick: timers, then the oldest of something that the usual order may have kept waiting, in turns.
record* worker::maintain() noexcept {
  const base::time_ns now = base::now();
  tick_.restart(now);
  scheduler_.fire_timers(now, *this);
  settle_spawned();  // what a callback spawned that a timer called
  (void)forget_line_if_passed();
  // More than one share waits outside, or the ring has no room for one. The ring fills up with those then, so that whoever spawns them
  // waits behind them; and if it stays full of tasks that came later, those outside have a turn in sixteen nevertheless.
  constexpr std::int32_t turns_between = 16;
  constexpr std::size_t share = global_queue<record>::max_batch;
  const std::size_t outside = scheduler_.global().size();
  if (outside > share || (outside != 0 && woken_.size() + share > woken_.capacity())) tick_.look_after(turns_between);
  if (scheduler_.is_starving()) [[unlikely]] {
    stacks_.drain();
    scheduler_.retry_starved_if_due(now);
  }
  // Not at every tick the oldest fresh task: each time a fork tree grows another branch at its root, whose stacks stay until it is
  // done.
  constexpr base::time_ns oldest_fresh_every = 1'000'000;
  constexpr std::uint32_t background_every = 16;
  if (++ticks_ % background_every == background_every - 1 && scheduler_.background().size() != 0)
    if (record* t = from_background()) return t;
  // And at one in four at most: with long tasks each comes a millisecond after the last.
  if (ticks_ % 4 == 1 && now - oldest_started_ >= oldest_fresh_every) {
    oldest_started_ = now;
    if (record* t = fresh_.steal()) return t;
  }
  if (ticks_ % 2 == 0)
    if (record* t = from_inbox()) return t;
  if (record* t = from_global()) return t;
  return from_inbox();
}

// ---- switches ------------------------------------------------------------------------------------------------------

void worker::attach(record* t, context::stack* s) noexcept {
  t->stack = s;
  s->owner = t;
  s->annotations.start_on(*s);
  t->sp.store(context::prepare(s->top(), &worker::fiber_main), base::relaxed);
}

bool worker::attach_cached(record* t) noexcept {
  if (stacks_.size() == 0 || t->stack_size != 0) return false;
  attach(t, stacks_.take());
  return true;
}

// May ask the system. False: there is none.
bool worker::attach_any(record* t) noexcept {
  context::stack* s = t->stack_size == 0 ? stacks_.take() : scheduler_.stacks().acquire(t->stack_size);
  if (s == nullptr) [[unlikely]]
    return false;
  attach(t, s);
  return true;
}

void worker::give_stack(context::stack* s) noexcept {
  s->annotations.end();
  if (scheduler_.is_starving()) [[unlikely]] {
    scheduler_.stacks().release(s);
    scheduler_.retry_starved();
    return;
  }
  if (!stacks_.put(s)) scheduler_.stacks().release(s);
}

// `t` becomes the running task of this worker: K1. The caller switches to it next.
[[gnu::always_inline]] inline void worker::adopt(record* t) noexcept {
  if constexpr (base::checked_build) {
    task::expect_runnable(*t, "RUNNING");
    base::require(((t->extras & task::on_lane) != 0) == (t->dispatcher != nullptr),
                  "a task has a dispatcher that is not its own");
    base::require((spawned_ & ~logs_parks) == 0,
                  "a task has left the tasks that it spawned without a place in the order of turns");
  }
  t->running.store(task::run_state::running, base::relaxed);
  current_.store(t, base::relaxed);
  if (((t->extras | manner_.load(base::relaxed)) & (task::on_lane | task::has_exceptions)) != 0) [[unlikely]]
    adopt_specially(t);
  budget_ = budget_per_slice;
  counters_.dispatched.add();
}

void worker::adopt_specially(record* t) noexcept {
  if ((t->extras & task::has_exceptions) != 0) {
    *exceptions_ = t->exceptions;
    t->extras = static_cast<task::extra>(t->extras & ~task::has_exceptions);
  }
  const bool on_lane = (t->extras & task::on_lane) != 0;
  if (on_lane || gives_way()) give_way(on_lane);
}

// Exceptions in flight go with the task. Mostly there are none, and then this thread's stay as they are.
[[gnu::always_inline]] inline void worker::save_exceptions(record* self) noexcept {
  if (exceptions_->caught != nullptr || exceptions_->uncaught != 0) [[unlikely]]
    take_exceptions(self);
}

void worker::take_exceptions(record* self) noexcept {
  self->exceptions = std::exchange(*exceptions_, {});
  self->extras |= task::has_exceptions;
}

// Finishes the switch for the stack just left, which is saved now. Nothing is needed after its calls, which are rare: so it saves hardly a
// register, and neither does who switches.
[[gnu::always_inline]] inline void worker::arrive() noexcept {
  const departure::kind how = left_.what;
  record* t = left_.who;
  if (how == departure::kind::parking) [[likely]] {
    counters_.parks.add();
    if ((t->extras & task::on_lane) != 0) [[unlikely]]
      return leave_turn(how, t);
    t->running.store(task::run_state::none,
                     base::relaxed);  // before the commit: after it the task may be somebody else's
    if (!t->word.commit_park()) [[unlikely]]
      return arrive_woken(t);
    unlock_departed();  // the object may be gone after this, and so may the task
  } else if (how == departure::kind::yielded) {
    if ((t->extras & task::is_routed) != 0) [[unlikely]]
      return leave_turn(how, t);
    become_runnable(t, task::run_state::running);
    if constexpr (force_migration) return scheduler_.inject_elsewhere(*this, t);
    if (gives_way() || !woken_.try_push(t)) [[unlikely]]  // the next one does, or the ring is full
      return queue_openly(t);
  } else if (how == departure::kind::finished) {
    give_stack(left_.stack);
  } else if (how != departure::kind::none) {
    arrive_otherwise(how);
  }
}

// Somebody wanted to wake it while it went to sleep.
void worker::arrive_woken(record* t) noexcept {
  unlock_departed();
  accept_woken(t);
}

// From the running task to `next`. Comes back when somebody switches to `self` again.
[[gnu::always_inline]] inline void worker::switch_between(worker& on, record* self, record* next) noexcept {
  on.save_exceptions(self);
  on.adopt(next);
  void* handed_over = context::switch_flow(self->sp_address(), self->stack->annotations, next->sp.load(base::relaxed),
                                           next->stack->annotations, &on);
  static_cast<worker*>(handed_over)->arrive();
}

// The same, or to the worker's own stack.
void worker::switch_from(worker& on, record* self, record* next) noexcept {
  if (next != nullptr) return switch_between(on, self, next);
  on.save_exceptions(self);
  on.none_current();
  void* handed_over = context::switch_flow(self->sp_address(), self->stack->annotations, on.sp_, on.flow_, &on);
  static_cast<worker*>(handed_over)->arrive();
}

// From the worker's own stack to a task; back when nothing local is left to run.
void worker::run(record* t) noexcept {
  if (!t->is_started() && !attach_any(t)) [[unlikely]]
    return scheduler_.starve(*this, t);
  adopt(t);
  left_.what = departure::kind::none;
  context::switch_flow(&sp_, flow_, t->sp.load(base::relaxed), t->stack->annotations, this);
  arrive();
}

void worker::yield() noexcept {
  const bool in_turn = goes_on();
  record* next = nullptr;
  // Mostly the next one of the ring: then nothing is called here but the switch, and hardly a register saved.
  if (in_turn && fresh_.is_surely_empty() && (slot_.empty() || slot_runs_ >= slot_runs_limit)) [[likely]] {
    slot_runs_ = 0;
    next = woken_.pop();
    if (next != nullptr && next->is_started()) [[likely]] {
      prefetch_behind(woken_);
      left_.what = departure::kind::yielded;
      left_.who = current();
      return switch_between(*this, current(), next);
    }
  }
  yield_otherwise(in_turn, next);
}

// `next`: taken from the ring already, and not yet started.
[[gnu::noinline]] void worker::yield_otherwise(bool in_turn, record* next) noexcept {
  settle_spawned();
  if (next != nullptr) {
    next = with_stack(next);
  } else if (in_turn) {
    next = next_from_slot();
    if (next == nullptr) next = next_in_turn();
    if (next == nullptr && in_hand_ == nullptr && inbox_.empty() && scheduler_.shared_work() == 0 && !gives_way() &&
        !(force_migration && !scheduler_.is_alone())) {
      budget_ = budget_per_slice;
      return;
    }
  }
  left_.what = departure::kind::yielded;
  left_.who = current();
  switch_from(*this, current(), next);
}

// The one place that all parks pass.
void worker::before_parking() noexcept {
  line_up_spawned();
  if ((spawned_ & logs_parks) == 0) return;
  [[maybe_unused]] const record& self = *current();
  [[maybe_unused]] const std::source_location where = self.waits_at.load(base::relaxed);
  [[maybe_unused]] const char* what = self.waits_for.load(base::relaxed);
  [[maybe_unused]] const bool joins = std::strcmp(what, "join") == 0;
  WEFT_LOG(park, "task %s parks for %s%s%s at %s:%u", task::label(self).text, what, joins ? " of " : "",
           joins ? task::label(*static_cast<const record*>(self.waits_on.load(base::relaxed))).text : "",
           where.file_name(), where.line());
}

void worker::park(worker& on, void (*unlock)(void*) noexcept, void* locked) noexcept {
  record* const self = on.current();
  if (on.spawned_ != 0) [[unlikely]]
    on.before_parking();
  on.left_.what = departure::kind::parking;
  on.left_.who = self;
  on.left_.unlock = unlock;
  on.left_.locked = locked;
  const bool in_turn = on.goes_on();
  record* next = in_turn ? on.next_from_slot() : nullptr;
  if (next == nullptr && in_turn) next = on.next_in_turn();
  // In one place: whom it switches to left from here as well, and so the processor knows where the next returns go.
  if (next != nullptr) [[likely]]
    switch_between(on, self, next);
  else
    switch_from(on, self, nullptr);
}

// ---- the base of a fiber's stack -----------------------------------------------------------------------------------

void worker::fiber_main(void* worker_pointer) noexcept {
  worker* w = static_cast<worker*>(worker_pointer);
  context::entered(w->current()->stack->annotations);
  w->arrive();
  run_tasks(w);
}

// Runs the current task, and after it any fresh one that comes next, on the same stack: no switch, no page fault.
void worker::run_tasks(worker* w) noexcept {
  for (;;) {
    record* t = w->current();
    const task::phase how = t->ops->run(t->body) == detail::ended::done ? task::phase::done : task::phase::cancelled;
    if (this_worker() == nullptr) [[unlikely]]
      scheduler::refuse_forked_return();
    t->shields = 1;  // destructors of what the task leaves behind may block, and must not throw
    if (t->ops->destroy_closure != nullptr) t->ops->destroy_closure(t->body);
    scheduler::end_task(t, how);
    if constexpr (task::counts_locks)
      if (t->locks != 0) report_held_lock(*t);
    w = this_worker();  // user code may have run, and moved us
    context::stack* left = nullptr;
    record* next = w->end_current(left);
    if (next == nullptr || next->is_started() || !context::stacks_may_be_shared || next->stack_size != 0 ||
        left->size != w->scheduler_.stacks().default_size())
      leave(*w, next, left);
    context::reset_control_words();
    next->stack = left;
    left->owner = next;
    w->adopt(next);
  }
}

record* worker::end_current(context::stack*& left) noexcept {
  record* t = current();
  left = t->stack;
  left->owner = nullptr;
  t->stack = nullptr;
  t->sp.store(nullptr, base::relaxed);
  none_current();
  *exceptions_ = {};
  scheduler::leave_lane(t);
  drop_reference(t);
  counters_.finished.add_published();
  return next_local();
}

void worker::leave(worker& w, record* next, context::stack* left) noexcept {
  if (next != nullptr && !next->is_started() && !w.attach_cached(next)) {
    w.in_hand_ = next;
    next = nullptr;
  }
  w.left_.what = departure::kind::finished;
  w.left_.stack = left;
  void* never_resumed = nullptr;
  if (next != nullptr) {
    w.adopt(next);
    context::switch_flow(&never_resumed, left->annotations, next->sp.load(base::relaxed), next->stack->annotations, &w,
                         true);
  } else {
    context::switch_flow(&never_resumed, left->annotations, w.sp_, w.flow_, &w, true);
  }
  __builtin_unreachable();
}

}  // namespace weft::inline v1::sched
