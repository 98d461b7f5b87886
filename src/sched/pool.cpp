// The set of workers, which grows and shrinks while everybody reads it, and what they keep for themselves. Only the constructor, the
// monitor and the end change the set.
//
// P1. A worker's slot is filled once and stays: readers see the first `created_` of them, each with a complete worker. One that has
//     died keeps its inbox and timers reachable, and its slot is used again.                  test sched/elastic_*
#include <exception>

#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {

void scheduler::make_worker() {
  const std::size_t n = created_.load(base::relaxed);
  workers_[n] = std::make_unique<worker>(*this, static_cast<int>(n));
  worker_pointers_[n] = workers_[n].get();
  // Publishes the worker; pairs with the acquire in workers().
  created_.store(n + 1, base::release);
}

void scheduler::count_live(int change) noexcept {
  const std::size_t before = live_workers_.fetch_add(static_cast<std::size_t>(change), base::relaxed);
  idle_.set_workers(before + static_cast<std::size_t>(change));
}

worker* scheduler::dead_worker() const noexcept {
  for (worker* w : workers())
    if (w->state() == worker_state::dead) return w;
  return nullptr;
}

bool scheduler::has_room() const noexcept { return worker_count() < workers_.size() || dead_worker() != nullptr; }

// The monitor, if there is room. False: no memory, or no thread.
bool scheduler::add_worker() noexcept {
  worker* added = dead_worker();
  try {
    if (added == nullptr) {
      make_worker();
      added = workers().back();
    }
    count_live(1);
    added->start();
    return true;
  } catch (const std::exception&) {
    if (added == nullptr) return false;
    count_live(-1);
    added->request_drain();  // nothing is to be sent to it
    added->state_.store(worker_state::dead, base::relaxed);
    return false;
  }
}

void scheduler::retire(std::size_t worker) noexcept {
  worker_pointers_[worker]->request_drain();
  worker_pointers_[worker]->wake();
}

// Its inbox stays reachable for all. What came in while it drained has nobody else to look for it.
void scheduler::worker_died(worker& w) noexcept {
  count_live(-1);
  w.state_.store(worker_state::dead, base::release);  // pairs with the acquire in somebody_keeps()
  // Dead before we look at the queues; mirror: the fence of wake_one() and wake_exactly(), after the push.
  base::step<"drain.fence">([] { base::fence_seq_cst(); });
  if (base::check<"drain.left_behind">(w.has_visible_work())) notify();
}

bool scheduler::somebody_keeps() const noexcept {
  for (const worker* w : workers())
    // acquire pairs with the release in worker_died() and in worker::give_caches(): what it gave is in the pools.
    if (w->state_.load(base::acquire) != worker_state::dead && w->keeps_caches_.load(base::acquire)) return true;
  return false;
}

// Until trim() or stop_asking() sleepers give what they keep. The wakes publish it; one that keeps something again is asked again.
void scheduler::ask_for_caches() noexcept {
  asks_.store(true, base::relaxed);
  for (worker* w : workers())
    if (w->keeps_caches_.load(base::relaxed)) w->wake();
}

// What is cached beyond the limits goes back to the system. False: not all of it, because somebody walks over the records.
bool scheduler::trim() noexcept {
  stop_asking();
  stacks_.trim();
  return records_->trim().has_value();
}

}  // namespace weft::inline v1::sched
