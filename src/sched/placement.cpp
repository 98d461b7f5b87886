#include "sched/placement.hpp"

#include "base/log.hpp"
#include "sched/monitor.hpp"
#include "sched/scheduler.hpp"
#include "sched/worker.hpp"
#include "task/name.hpp"

namespace weft::inline v1::sched {

// ---- any thread ----------------------------------------------------------------------------------------------------

void placement::schedule(record* t) noexcept {
  worker* w = this_worker();
  if (w != nullptr && &w->owner() == t->owner) return w->accept_woken(t);
  become_runnable(t, task::run_state::none);
  if ((t->extras & task::is_routed) != 0) return route(t);
  t->owner->placing().inject(t);
}

void placement::schedule_joiner(record* t) noexcept {
  worker* w = this_worker();
  if (w != nullptr && &w->owner() == t->owner) return w->accept_joiner(t);
  schedule(t);
}

void placement::schedule_all(chain<record>&& claimed) noexcept {
  worker* w = this_worker();
  if (w != nullptr && !claimed.empty() && &w->owner() == claimed.front()->owner)
    return w->accept_woken_batch(std::move(claimed));
  while (record* t = claimed.pop_front()) schedule(t);
}

void placement::spawned_outside(record* t) noexcept {
  if ((t->extras & task::is_routed) != 0) return route(t);
  t->owner->placing().inject(t);
}

// ---- lanes and priorities ------------------------------------------------------------------------------------------

void placement::route(record* t) noexcept {
  // If the task has to wait for its turn, whoever leaves the lane places it (sched.L3).
  if ((t->extras & task::on_lane) == 0 || t->dispatcher()->enter(t)) place(t);
}

// Queues a task that has its turn, if it needs one.
void placement::place(record* t) noexcept {
  scheduler& home = *t->owner;
  if ((t->extras & (task::is_urgent | task::is_background)) != 0) {
    placement& self = home.placing();
    const closing::guest inside(self.of_.ending);
    ((t->extras & task::is_urgent) != 0 ? self.of_.queues.urgent : self.of_.queues.background).push(t);
    self.of_.notifying.notify();
    return;
  }
  worker* w = this_worker();
  if (w == nullptr || &w->owner() != &home) return home.placing().inject(t);
  w->queue(t);
}

void placement::hand_on_turn(lane& l) noexcept {
  if (record* next = l.leave()) place(next);
}

void placement::move_to(worker& on, lane* to) noexcept {
  record* t = on.current();
  lane* const from = t->dispatcher();
  if (from == to) return;
  // The task has to wait for its turn. The worker switches away from it and queues it in the lane after the switch.
  if (to != nullptr && !to->try_enter()) return on.move(to);
  t->dispatcher() = to;
  t->extras = static_cast<task::extra>(to != nullptr ? t->extras | task::on_lane : t->extras & ~task::on_lane);
  on.give_way(to != nullptr);
  if (from != nullptr) hand_on_turn(*from);
}

// ---- inboxes -------------------------------------------------------------------------------------------------------

void placement::inject_elsewhere(scheduler& home, int from, record* t) noexcept {
  // The choice begins at the next worker, so that `from` is the last choice.
  home.placing().inject_to(static_cast<std::uint32_t>(from) + 1, t);
}

// Prefers the inbox of a worker that will come to it soon: one that is not stuck and whose task has not said that it
// may block. Otherwise chooses one that will come to it at all.
std::uint32_t placement::choose_inbox(std::uint32_t first) const noexcept {
  const auto n = static_cast<std::uint32_t>(of_.workers.created());
  first %= n;
  std::uint32_t stuck = n;
  for (std::uint32_t i = first; i < first + n; ++i) {
    const worker& w = of_.workers[i % n];
    if (w.is_leaving()) continue;
    if (!w.is_stuck() && !w.gives_way()) return i % n;
    if (stuck == n) stuck = i % n;
  }
  return stuck != n ? stuck : first;
}

void placement::inject_to(std::uint32_t first_choice, record* t) noexcept {
  const closing::guest inside(of_.ending);
  const std::uint32_t to = choose_inbox(first_choice);
  WEFT_LOG(inbox, "task %s to the inbox of worker %u", task::label(*t).text, to);
  worker& chosen = of_.workers[to];
  chosen.queues().inbox.push(t);
  // From here on the task may have run and ended. The guest keeps the scheduler alive.
  if (!of_.stealing) {
    // After the fence in notify_only(): either we see that the worker has died, or the worker sees the task in
    // worker::die().
    if (!of_.notifying.notify_only(to) && base::check<"drain.dead">(chosen.is_dead())) of_.notifying.notify();
    return;
  }
  of_.notifying.notify(static_cast<int>(to));
  // All workers may block, or this one has said so since we chose it.
  if (chosen.gives_way()) [[unlikely]]
    find_replacement();
}

// ---- behind tasks that may block -----------------------------------------------------------------------------------

// Events would have to wait for this worker, unless a sleeper takes its place in the driver.
void placement::see_to_events() noexcept {
  if (of_.polling.depends_on_workers()) of_.watching.wake_a_sleeper();
}

void placement::find_replacement() noexcept {
  see_to_events();
  of_.notifying.notify();  // its fence: a worker that goes to sleep now sees the work, or is seen
  if (nobody_is_idle()) of_.monitoring.hurry();
}

// A worker's task may block from now on. If all workers are busy or blocked, a timer or a task from outside would find
// nobody, and the monitor would not look for a while. So the monitor is woken. There is no fence, because a turn on a
// lane takes only some nanoseconds. If this misses a monitor that lies down at the same moment, the work waits for one
// of its naps.
void placement::gave_way() noexcept {
  see_to_events();
  if (base::check<"monitor.dozes">(of_.monitoring.dozes()) && nobody_is_idle()) of_.monitoring.hurry();
}

// ---- tasks that had no stack ---------------------------------------------------------------------------------------

void placement::retry_starved_if_due(base::time_ns now) noexcept {
  if (of_.without_stack.is_due(now)) retry_starved();
}

void placement::retry_starved() noexcept {
  chain<record> again = of_.without_stack.take_all();
  chain<record> ordinary;
  while (record* t = again.pop_front())
    // Tasks on a lane gave their turn back when they began to starve, and need one again.
    if ((t->extras & task::is_routed) != 0)
      route(t);
    else
      ordinary.push_back(t);
  of_.queues.global.push(std::move(ordinary));
}

}  // namespace weft::inline v1::sched
