// Where a runnable task goes that is not an ordinary one: to its dispatcher's lane first, then to the queue of its priority.
#include "sched/lane.hpp"
#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

// RUNNABLE, and routed.
void scheduler::route(record* t) noexcept {
  if ((t->extras & task::on_lane) == 0 || t->dispatcher->enter(t)) place(t);
}

// It has its turn, if it needs one.
void scheduler::place(record* t) noexcept {
  if ((t->extras & (task::is_urgent | task::is_background)) != 0) {
    scheduler& s = *t->owner;
    const guest inside(s);
    ((t->extras & task::is_urgent) != 0 ? s.urgent_ : s.background_).push(t);
    s.notify();
    return;
  }
  worker* w = this_worker();
  if (w == nullptr || &w->owner() != t->owner) return t->owner->inject(t);
  w->queue(t);
}

void scheduler::hand_on_turn(lane& l) noexcept {
  if (record* next = l.leave()) place(next);
}

// The running task leaves its lane for another one, or for none. It may wait for its turn there, and come back on another worker.
void scheduler::move_to(worker& on, lane* to) noexcept {
  record* t = on.current();
  lane* const from = t->dispatcher;
  if (from == to) return;
  if (to != nullptr && !to->try_enter()) return on.move(to);
  t->dispatcher = to;
  t->extras = static_cast<task::extra>(to != nullptr ? t->extras | task::on_lane : t->extras & ~task::on_lane);
  on.give_way(to != nullptr);
  if (from != nullptr) hand_on_turn(*from);
}

// For a worker whose task may block from now on, while work waits behind it.
void scheduler::find_replacement() noexcept {
  notify();  // with its fence: whoever goes to sleep now sees the work, or is seen
  if (nobody_is_idle()) monitor_->hurry();
}

// The same while nothing waits yet. What comes from outside, or a timer, would find nobody if all are busy or blocked, and the monitor
// would not look for a while: it has to be woken. Without a fence, because a turn on a lane takes some nanoseconds: if this misses a
// monitor that lies down in the same moment, the work waits for one of its naps.
void scheduler::gave_way() noexcept {
  if (base::check<"monitor.dozes">(monitor_->dozes()) && nobody_is_idle()) monitor_->hurry();
}

}  // namespace weft::inline v1::sched
