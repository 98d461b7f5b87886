#include "sched/scheduler.hpp"

#include "base/check.hpp"
#include "base/log.hpp"
#include "base/static_init.hpp"
#include "explore/engine.hpp"

namespace weft::inline v1 {
namespace base {

atomic<std::uint32_t> logged_topics{0};
void log_line(const char*, ...) noexcept {}
int static_initializers_running() noexcept { return 0; }

}  // namespace base

namespace sched {
namespace {

// By virtual thread. An execution that was given up leaves its entries behind.
struct {
  worker* on;
  std::uint64_t execution;
} current_workers[explore::max_threads];

}  // namespace

scheduler& the_scheduler() noexcept {
  static scheduler s;
  return s;
}
scheduler& worker::owner() const noexcept { return the_scheduler(); }

model_task::model_task(bool with_handle) noexcept : fiber(task::ticket{7}) {
  word.reset_for_spawn(with_handle);
  word.spawned();
  references.store(with_handle ? 2 : 1, base::relaxed);
  owner = &the_scheduler();
  in_no_queue.acquire();
}

void worker::make_current() noexcept {
  current_workers[explore::running_thread()] = {this, explore::the_engine.execution()};
}
void worker::make_none_current() noexcept { current_workers[explore::running_thread()] = {nullptr, 0}; }

worker* this_worker() noexcept {
  const auto& entry = current_workers[explore::running_thread()];
  return entry.execution == explore::the_engine.execution() ? entry.on : nullptr;
}

void worker::park(worker& on, void (*unlock)(void*) noexcept, void* locked) noexcept {
  model_task* t = static_cast<model_task*>(on.current_);
  t->context = 1;
  const bool parked = t->word.commit_park();
  if (unlock != nullptr)
    unlock(locked);
  else if (locked != nullptr)
    static_cast<base::lock*>(locked)->release();
  if (!parked) return;  // enqueued and at once run by ourselves
  t->in_no_queue.acquire();
}

void worker::accept_woken(record* t) noexcept { scheduler::schedule(t); }

void worker::accept_woken_batch(chain<record>&& batch) noexcept {
  while (record* t = batch.pop_front()) scheduler::schedule(t);
}

void worker::cache::put(record* t) noexcept { the_scheduler().records().release(t); }

void scheduler::schedule(record* t) noexcept {
  base::require(task::state_word::phase_of(t->word.peek()) == task::phase::active,
                "only RUNNABLE tasks may enter a run queue");
  model_task* m = static_cast<model_task*>(t);
  m->context = 0;
  m->in_no_queue.release();
}

void scheduler::finish(record* t, task::phase how) noexcept {
  task::finish_result end = t->word.finish(how);
  if (!end.finished) {
    if (std::exception_ptr unclaimed = t->ops->dispose(t->body)) report_unhandled(*t, unclaimed);
    end = t->word.finish_unwanted(how);
  }
  if (end.has_joiners) wake_joiners(*t);
  drop_reference(t);
}

void report_unhandled(const record&, const std::exception_ptr&) noexcept {}

}  // namespace sched

namespace task {

void record_pool::release(record* t) noexcept { delete static_cast<sched::model_task*>(t); }
slab* slab::of(record*) noexcept {
  static slab the_slab{&sched::the_scheduler().records()};
  return &the_slab;
}
const origin& origin_of(const record&) noexcept {
  static const origin none;
  return none;
}

}  // namespace task
}  // namespace weft::inline v1
