#include "sched/task_runner.hpp"

#include <exception>
#include <new>
#include <source_location>

#include "base/cache_line.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "sched/scheduler.hpp"
#include "sched/upcalls.hpp"
#include "sched/worker.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {
namespace {

// How many suspension points a task may pass without parking. At the next one, the 128th, it goes to the tail (BZ-6).
constexpr std::int32_t budget_per_slice = 127;

// The phase of a task whose last turn has ended in this way. It is an addition, because every task comes by here.
constexpr task::phase phase_after(detail::ended how) noexcept {
  return static_cast<task::phase>(static_cast<std::uint8_t>(task::phase::done) + static_cast<std::uint8_t>(how));
}
static_assert(phase_after(detail::ended::done) == task::phase::done &&
              phase_after(detail::ended::cancelled) == task::phase::cancelled);

}  // namespace

task_runner::task_runner(scheduler& s, int worker) : intake(s, worker), stacks_(s.stacks(), &task_runner::fiber_main) {}

// ---- what runs next ------------------------------------------------------------------------------------------------

// Whether one more task may run without a look at the rest of the world: no tick is due and nothing urgent waits.
[[gnu::always_inline]] inline bool task_runner::goes_on() noexcept {
  return !tick_.passes() && !queues_.urgent_waits();
}

// Returns the task that the order of turns has behind the slot, ready to be switched to. It touches neither a lock nor
// the system, because the caller may be a task that parks with an object's lock held.
[[gnu::noinline]] record* task_runner::next_after_slot() noexcept {
  record* t = queues_.next_at_hand_after_slot(stacks_.has_one());
  return t == nullptr ? nullptr : with_stack(t);
}

// Returns nullptr if there is no stack at hand. The worker's own stack will provide one.
inline record* task_runner::with_stack(record* t) noexcept {
  if (!t->is_fresh() || stacks_.attach_cached(t)) [[likely]]
    return t;
  in_hand_ = t;
  return nullptr;
}

// For a task that leaves in another way than by a park. nullptr: the worker's own stack chooses.
record* task_runner::next_without_locks() noexcept {
  pass_gate();
  if (!goes_on()) return nullptr;
  record* t = queues_.next_at_hand();
  return t != nullptr ? t : next_after_slot();
}

// For a task that has ended, and for the worker's own stack. No object's lock is held, so the whole order of turns may
// be asked.
record* task_runner::next() noexcept {
  if (!gate_.is_open()) [[unlikely]] {
    open_gate();
    if (gate_.is_draining()) return nullptr;
  }
  if (in_hand_ != nullptr) return std::exchange(in_hand_, nullptr);
  if (tick_.passes()) [[unlikely]] {
    if (record* t = look_up()) return t;
    if (gate_.is_draining()) return nullptr;
  }
  return queues_.next();
}

record* task_runner::look_up() noexcept {
  if (drain_requested_.load(base::relaxed)) {
    gate_.request_drain();  // sched.Y1
    return nullptr;
  }
  const base::time_ns now = base::now();
  tick_.restart(now);
  refresh_clock(now);
  scheduler_.watching().fire(now, *this);
  const bool polls = scheduler_.polling().is_wanted();
  if (polls) scheduler_.polling().poll(now, *this);
  settle_spawned();  // the callback of a timer may have spawned tasks
  (void)forget_line_if_passed();
  constexpr std::int32_t turns_between = 16;
  constexpr std::int32_t turns_between_polls = 61;
  if (queues_.much_waits_outside())
    tick_.look_after(turns_between);
  else if (polls)
    tick_.look_after(turns_between_polls);
  if (scheduler_.without_stack().any()) [[unlikely]] {
    stacks_.drain();
    scheduler_.placing().retry_starved_if_due(now);
  }
  return queues_.next_at_look(now);
}

// ---- switches ------------------------------------------------------------------------------------------------------

// Called on another stack than the one that is given away (sched.K3).
void task_runner::give_stack(context::stack* s) noexcept {
  const bool others_wait = scheduler_.without_stack().any();
  stacks_.give_back(s, !others_wait);
  if (others_wait) [[unlikely]]
    scheduler_.placing().retry_starved();
}

// On the worker's own stack, when there is no stack for a fresh task. The task waits until a stack is freed. If nobody
// holds one, none will be freed, and the task ends with bad_alloc.
void task_runner::starve(record* t) noexcept {
  const auto [attached, others_hold_some] = stacks_.attach_last(t);
  if (attached) return queue(t);
  if (!others_hold_some) {
    t->ops->fail(t->body, std::make_exception_ptr(std::bad_alloc()));
    scheduler::end_task(t, task::phase::done);
    placement::leave_lane(t);
    drop_reference(t);
    counters_.finished.add_published();
    return;
  }
  // The task gives its turn back, because whoever gets the turn may hold the stack for which this task waits.
  if ((t->extras & task::on_lane) != 0) placement::hand_on_turn(*t->dispatcher());
  scheduler_.without_stack().put(t, base::now());
  for (worker* w : scheduler_.workers())
    if (w != this) w->wake();  // sleepers give what they keep
}

// `t` becomes the running task of this worker (sched.K1). The caller switches to it next.
[[gnu::always_inline]] inline void task_runner::adopt(record* t) noexcept {
  if constexpr (base::checked_build) {
    task::expect_runnable(*t, "RUNNING");
    base::require(((t->extras & task::on_lane) != 0) == (t->dispatcher() != nullptr),
                  "a task has a dispatcher that is not its own");
    base::require(gate_.spawned() == 0,
                  "a task has left the tasks that it spawned without a place in the order of turns");
  }
  t->running.store(task::run_state::running, base::relaxed);
  current_.store(t, base::relaxed);
  if (((t->extras | manner()) & (task::on_lane | task::has_exceptions)) != 0) [[unlikely]]
    adopt_specially(t);
  budget_ = budget_per_slice;
  counters_.dispatched.add();
}

void task_runner::adopt_specially(record* t) noexcept {
  if ((t->extras & task::has_exceptions) != 0) exceptions_.restore(t);
  const bool on_lane = (t->extras & task::on_lane) != 0;
  if (on_lane || gives_way()) give_way(on_lane);
}

// Finishes the switch for the stack that was just left, whose context is saved now. The rare calls are the last thing
// it does, so it saves hardly a register, and neither does the function that switches.
[[gnu::always_inline]] inline void task_runner::arrive() noexcept {
  const departure::kind how = left_.what;
  record* t = left_.who;
  if (how == departure::kind::parking) [[likely]] {
    counters_.parks.add();
    if ((t->extras & task::on_lane) != 0) [[unlikely]]
      return leave_turn(how, t);
    // This comes before the commit, because after it the task may belong to somebody else.
    t->running.store(task::run_state::none, base::relaxed);
    // From the commit on a claim may succeed. The context is saved, and the winner may run the task on another worker
    // at once.
    if (!t->word.commit_park()) [[unlikely]]
      return arrive_woken(t);
    left_.release_lock();
  } else if (how == departure::kind::yielded) {
    if ((t->extras & task::is_routed) != 0) [[unlikely]]
      return leave_turn(how, t);
    become_runnable(t, task::run_state::running);
    if (placement::migrates(scheduler_, id_, t)) return;
    if (gives_way() || !queues_.woken.try_push(t)) [[unlikely]]  // the next task may block, or the ring is full
      return queue_openly(t);
  } else if (how == departure::kind::finished) {
    give_stack(left_.vacated);
  } else if (how != departure::kind::none) {
    arrive_otherwise(how);
  }
}

// A waker came while the task was PARKING, and left wake-pending. So this stack queues the task.
void task_runner::arrive_woken(record* t) noexcept {
  left_.release_lock();
  accept_woken(t);
}

// Switches from the running task to `next`. Returns when somebody switches to `self` again.
[[gnu::always_inline]] inline void task_runner::switch_between(task_runner& on, record* self, record* next) noexcept {
  on.exceptions_.save(self);
  on.adopt(next);
  void* handed_over = switch_stacks(task::as_fiber(*self), task::as_fiber(*next), &on);
  static_cast<task_runner*>(handed_over)->arrive();
}

// The same, or to the worker's own stack if `next` is nullptr.
void task_runner::switch_from(task_runner& on, record* self, record* next) noexcept {
  if (next != nullptr) return switch_between(on, self, next);
  on.exceptions_.save(self);
  on.none_current();
  void* handed_over = switch_stacks(task::as_fiber(*self), on.own_stack_, &on);
  static_cast<task_runner*>(handed_over)->arrive();
}

// Switches from the worker's own stack to a task. Returns when nothing local is left to run.
void task_runner::run(record* t) noexcept {
  if (t->is_fresh() && !stacks_.attach_any(t)) [[unlikely]]
    return starve(t);
  adopt(t);
  left_.what = departure::kind::none;
  switch_stacks(own_stack_, task::as_fiber(*t), this);
  arrive();
}

void task_runner::yield() noexcept {
  const bool in_turn = goes_on();
  record* next = nullptr;
  // Usually the next task of the ring follows. Then nothing is called here but the switch, and hardly a register is
  // saved.
  if (in_turn && gate_.is_open() && queues_.only_ring_counts()) [[likely]] {
    next = queues_.next_in_ring();
    if (next != nullptr && !next->is_fresh()) [[likely]] {
      queues_.prefetch_behind();
      left_.what = departure::kind::yielded;
      left_.who = current();
      return switch_between(*this, current(), next);
    }
  }
  yield_otherwise(in_turn, next);
}

// `next` is nullptr, or a fresh task that was already taken from the ring.
[[gnu::noinline]] void task_runner::yield_otherwise(bool in_turn, record* next) noexcept {
  pass_gate();
  if (next != nullptr) {
    next = with_stack(next);
  } else if (in_turn) {
    next = queues_.next_at_hand();
    if (next == nullptr) next = next_after_slot();
    if (next == nullptr && in_hand_ == nullptr && queues_.inbox.empty() && scheduler_.queues().size() == 0 &&
        !gives_way() && !placement::can_migrate(scheduler_.pool())) {
      budget_ = budget_per_slice;
      return;
    }
  }
  left_.what = departure::kind::yielded;
  left_.who = current();
  switch_from(*this, current(), next);
}

// ---- the suspension gate -------------------------------------------------------------------------------------------

[[gnu::noinline]] void task_runner::open_gate() noexcept {
  line_up_spawned();
  if (gate_.is_draining()) tick_.look_after(0);  // nobody is chosen without a look, and the look chooses nobody
}

[[gnu::noinline]] void task_runner::open_gate_to_park() noexcept {
  open_gate();
  if (!gate_.logs_parks()) return;
  [[maybe_unused]] const record& self = *current();
  [[maybe_unused]] const std::source_location where = self.waits_at.load(base::relaxed);
  WEFT_LOG(park, "task %s parks for %s at %s:%u", task::label(self).text,
           task::wait_text({self.waits_for.load(base::relaxed), self.waits_on().load(base::relaxed)}).text,
           where.file_name(), where.line());
}

void task_runner::park(task_runner& on, void (*unlock)(void*) noexcept, void* locked) noexcept {
  record* const self = on.current();
  on.left_.what = departure::kind::parking;
  on.left_.who = self;
  on.left_.unlock = unlock;
  on.left_.locked = locked;
  const bool in_turn = on.goes_on();
  record* next = in_turn ? on.queues_.next_at_hand() : nullptr;
  if (next == nullptr && in_turn) next = on.next_after_slot();
  // A task from the slot and one from behind it are switched to in this one place. The task that is switched to has
  // usually left from here as well, so the processor predicts its next returns correctly.
  if (next != nullptr) [[likely]]
    switch_between(on, self, next);
  else
    switch_from(on, self, nullptr);
}

// ---- the base of a fiber's stack -----------------------------------------------------------------------------------

// Every stack begins here: see prepare() in stack_supply.hpp. This function never returns to the frames below it.
void task_runner::fiber_main(void* runner) noexcept {
  task_runner* w = static_cast<task_runner*>(runner);
  entered_stack_of(task::as_fiber(*w->current()));
  w->arrive();
  run_tasks(w);
}

// Destroys what the user left behind, and wakes those who wait for the end. User code may run, and may move us to
// another worker.
[[gnu::always_inline]] inline void task_runner::finish(record* t, detail::ended how) noexcept {
  t->shields = 1;  // destructors of what the task leaves behind may block, and must not throw
  if (t->ops->destroy_closure != nullptr) t->ops->destroy_closure(t->body);
  scheduler::end_task(t, phase_after(how));
  if constexpr (task::counts_locks)
    if (t->locks != 0) report_held_lock(*t);
}

// Gives the current task a turn, and after it any fresh task that comes next, on the same stack: without a switch or a
// page fault. A turn has three ends (sched.K7). The suspension of a fiber is not one of them, because a fiber switches
// away inside its turn and comes back into it.
void task_runner::run_tasks(task_runner* w) noexcept {
  for (;;) {
    record* t = w->current();
    const detail::ended how = t->ops->run(t->body);
    if (this_worker() == nullptr) [[unlikely]]
      scheduler::refuse_forked_return();
    context::stack* left = nullptr;
    record* next;
    if (how == detail::ended::suspended) [[unlikely]] {
      w = this_worker();
      next = w->suspend_current(left);
    } else {
      finish(t, how);
      w = this_worker();
      next = w->end_current(left);
    }
    if (next == nullptr || !next->is_fresh() || !w->stacks_.may_take_over(next, *left)) leave(*w, next, left);
    stack_supply::take_over(next, left);
    w->adopt(next);
    context::reset_control_words();  // last, so that nothing has to be kept across this call
  }
}

// The ended task leaves this worker. We are still on its stack: `left` is for the next task here, or the next stack
// gives it away (sched.K3). The record may belong to somebody else once our reference is gone, so what needs it comes
// before that. The count comes last and publishes all of it: whoever closes the runtime takes it down when the sums are
// equal (closing.hpp).
record* task_runner::end_current(context::stack*& left) noexcept {
  record* t = current();
  left = stack_supply::detach(t);
  none_current();
  exceptions_.forget();
  placement::leave_lane(t);
  drop_reference(t);
  counters_.finished.add_published();
  return next();
}

// The task has noted its departure (left_) and returned from its frame. So nothing of it is on this stack, and this
// stack can do for the task what otherwise the next one does after the switch. From arrive() on, somebody else may give
// the task its next turn.
record* task_runner::suspend_current(context::stack*& left) noexcept {
  record* t = current();
  exceptions_.save(t);
  left = stack_supply::detach(t);
  none_current();
  arrive();
  return next();
}

// Leaves a stack to which nobody comes back. arrive() gives it away on the next stack.
void task_runner::leave(task_runner& w, record* next, context::stack* left) noexcept {
  if (next != nullptr && next->is_fresh() && !w.stacks_.attach_cached(next)) {
    w.in_hand_ = next;
    next = nullptr;
  }
  w.left_.what = departure::kind::finished;
  w.left_.vacated = left;
  if (next == nullptr) leave_stack(*left, w.own_stack_, &w);
  w.adopt(next);
  leave_stack(*left, task::as_fiber(*next), &w);
}

}  // namespace weft::inline v1::sched
