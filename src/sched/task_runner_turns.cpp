// The switch for tasks that are not ordinary ones: on a lane, with a priority, or started in the place of their
// spawner.
#include "base/static_init.hpp"
#include "sched/lane.hpp"
#include "sched/scheduler.hpp"
#include "sched/task_runner.hpp"

namespace weft::inline v1::sched {

// The lane has no turn for the task now. The task cannot wait in the lane's queue before its context is saved
// (sched.K2), so leave_turn() puts it there.
void task_runner::move(lane* to) noexcept {
  record* next = next_without_locks();
  left_.what = departure::kind::moving;
  left_.who = current();
  left_.to = to;
  switch_from(*this, current(), next);
}

// dispatcher::unconfined(): the spawned task runs in the place of its spawner, and the next stack queues the spawner.
void task_runner::start_at_once(record* t) noexcept {
  if constexpr (base::checked_build)
    base::require(base::locks_held() == 0 && base::static_initializers_running() == 0,
                  "a task is spawned to start at once where the running one must not be switched away from");
  counters_.spawned.add();
  pass_gate();
  if (!stacks_.attach_any(t)) return queue(t);  // it will starve later, like any other task
  left_.what = departure::kind::stepped_aside;
  left_.who = current();
  switch_from(*this, current(), t);
}

// The task moves to another lane, or steps aside for a task that starts at once.
void task_runner::arrive_otherwise(departure::kind how) noexcept {
  record* t = left_.who;
  if (how == departure::kind::moving || (t->extras & task::is_routed) != 0) return leave_turn(how, t);
  become_runnable(t, task::run_state::running);
  queue(t);
}

// The rest of arrive() for a task that is on a lane, goes to one, or has a queue of its own by its priority.
void task_runner::leave_turn(departure::kind how, record* t) noexcept {
  lane* const from = t->dispatcher();
  if (from != nullptr) from->add_reference();  // sched.L4: the lane may be gone with the task
  bool runnable = true;
  if (how == departure::kind::parking) {
    t->running.store(task::run_state::none, base::relaxed);
    runnable = !t->word.commit_park();
    left_.release_lock();
    if (runnable) become_runnable(t, task::run_state::none);
  } else {
    if (how == departure::kind::moving) {
      t->dispatcher() = left_.to;
      t->extras |= task::on_lane;
    }
    become_runnable(t, task::run_state::running);
  }
  if (from != nullptr) placement::hand_on_turn(*from);
  if (runnable) placement::route(t);
  if (from != nullptr) from->drop_reference();
}

}  // namespace weft::inline v1::sched
