// A worker and tasks that are not ordinary ones: on a lane, with a priority, or started in the place of their spawner.
#include "base/static_init.hpp"
#include "sched/lane.hpp"
#include "sched/scheduler.hpp"
#include "sched/worker.hpp"

namespace weft::inline v1::sched {

void worker::move(lane* to) noexcept {
  record* next = next_without_locks();
  left_.what = departure::kind::moving;
  left_.who = current();
  left_.to = to;
  switch_from(*this, current(), next);
}

void worker::start_at_once(record* t) noexcept {
  if constexpr (base::checked_build)
    base::require(base::locks_held() == 0 && base::static_initializers_running() == 0,
                  "a task is spawned to start at once where the running one must not be switched away from");
  counters_.spawned.add();
  settle_spawned();
  if (!attach_any(t)) return queue(t);  // it starves later, as any other
  left_.what = departure::kind::stepped_aside;
  left_.who = current();
  switch_from(*this, current(), t);
}

void worker::give_way(bool gives) noexcept {
  const auto others = static_cast<task::extra>(manner_.load(base::relaxed) & ~may_block);
  manner_.store(static_cast<task::extra>(others | (gives ? may_block : 0)), base::relaxed);
  if (!gives) return;
  if (record* t = slot_.take()) return queue_openly(t);
  if (has_visible_work() || scheduler_.shared_work() != 0)
    scheduler_.find_replacement();
  else
    scheduler_.gave_way();
}

// It moves to another lane, or steps aside for a task that starts at once.
void worker::arrive_otherwise(departure::kind how) noexcept {
  record* t = left_.who;
  if (how == departure::kind::moving || (t->extras & task::is_routed) != 0) return leave_turn(how, t);
  become_runnable(t, task::run_state::running);
  queue(t);
}

// The rest of arrive() for a task that is on a lane, goes to one, or has a queue by its priority.
void worker::leave_turn(departure::kind how, record* t) noexcept {
  lane* const from = t->dispatcher;
  if (from != nullptr) from->add_reference();  // L4: it may be gone with the task
  bool runnable = true;
  if (how == departure::kind::parking) {
    t->running.store(task::run_state::none, base::relaxed);
    runnable = !t->word.commit_park();
    unlock_departed();
    if (runnable) become_runnable(t, task::run_state::none);
  } else {
    if (how == departure::kind::moving) {
      t->dispatcher = left_.to;
      t->extras |= task::on_lane;
    }
    become_runnable(t, task::run_state::running);
  }
  if (from != nullptr) scheduler::hand_on_turn(*from);
  if (runnable) scheduler::route(t);
  if (from != nullptr) from->drop_reference();
}

}  // namespace weft::inline v1::sched
