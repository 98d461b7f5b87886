#include "sched/scheduler.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "context/overflow.hpp"
#include "sched/runtimes.hpp"
#include "sched/upcalls.hpp"
#include "task/locals.hpp"
#include "task/name.hpp"
#include <weft/detail/kin.hpp>

namespace weft::inline v1::sched {
namespace {

// What the report on an overflowing stack says of the stack's owner. It runs in a signal handler, so it does not
// allocate.
std::size_t describe_task(const context::stack& s, char* buffer, std::size_t size) {
  const auto* t = static_cast<const record*>(s.owner);
  if (t == nullptr || size == 0) return 0;
  char name[task::name_capacity];
  // It may hold parts of two names, if the stack overflowed while the task renamed itself.
  (void)task::try_copy_name(*t, name);
  const int n = std::snprintf(buffer, size, "\"%s\" (#%llu)", name[0] == '\0' ? "unnamed" : name,
                              static_cast<unsigned long long>(t->id.load(base::relaxed)));
  return n < 0 ? 0 : std::min(static_cast<std::size_t>(n), size - 1);
}

// What the same report says of how the task gets a larger stack. The body of run is not spawned by the user. It is
// named `main`.
std::size_t advise_task(const context::stack& s, std::size_t wanted, char* buffer, std::size_t size) {
  const auto* t = static_cast<const record*>(s.owner);
  char name[task::name_capacity] = "";
  if (t != nullptr) (void)task::try_copy_name(*t, name);
  const char* format = std::strcmp(name, "main") == 0 ? "runtime_options{.main_stack_size = %zu}"
                                                      : "spawn(attributes{.stack_size = %zu}, ...)";
  const int n = std::snprintf(buffer, size, format, wanted);
  return n < 0 ? 0 : std::min(static_cast<std::size_t>(n), size - 1);
}

// A task that was sent to another worker must not be stolen back.
scheduler_options adjusted(scheduler_options o) {
  if constexpr (force_migration) o.stealing = false;
  // If tasks stay with their worker, they gain nothing from another one.
  o.max_workers = o.elastic && o.stealing ? std::max(o.max_workers, o.workers) : o.workers;
  return o;
}

}  // namespace

scheduler::scheduler(scheduler_options options)
    : options_(adjusted(std::move(options))),
      stacks_({.default_size = options_.stack_size,
               .cache_bytes = options_.stack_cache_bytes,
               .max_stacks = options_.max_stacks}),
      records_(new task::record_pool({.on_unhandled = options_.on_unhandled, .fork_generation = fork_generation()})),
      idle_(options_.workers, options_.max_workers),
      io_(options_.io_tasks),
      lookups_(options_.lookup_tasks),
      poller_(options_.make_driver ? options_.make_driver() : nullptr),
      pool_(options_.workers, options_.max_workers, idle_,
            [this](int id) { return std::make_unique<worker>(*this, id); }),
      notifier_(pool_, idle_),
      watch_(pool_, idle_),
      caches_(pool_, stacks_, *records_),
      monitor_(std::make_unique<monitor>(*this)),
      placement_({.workers = pool_,
                  .idle = idle_,
                  .notifying = notifier_,
                  .queues = queues_,
                  .ending = closing_,
                  .without_stack = starved_,
                  .monitoring = *monitor_,
                  .polling = poller_,
                  .watching = watch_,
                  .stealing = options_.stealing}) {
  try {
    // The first runtime of the process installs the handler that explains a stack overflow.
    context::install_overflow_reporter(&describe_task, &advise_task);
    // All workers are made before the first one runs, because thieves and wakers may meet any of them.
    for (std::size_t i = 0; i < options_.workers; ++i) pool_.make();
    list_runtime(*this);
    for (worker* w : workers()) w->start();
    monitor_->start();
  } catch (...) {
    stop_workers();
    unlist_runtime(*this);
    pool_.clear();
    throw;
  }
}

scheduler::~scheduler() {
  if (is_forked_child()) {
    leave_to_parent();
    return;
  }
  close();
  closing_.wait_for_guests();
  stop_workers();
  unlist_runtime(*this);
  pool_.clear();
}

// No task is left, or none has begun. seq_cst: workers and the monitor that are about to sleep read the flag after
// their fences.
void scheduler::stop_workers() noexcept {
  stopping_.store(true, base::seq_cst);
  monitor_->stop();  // from here on the set of workers stays as it is
  pool_.wake_all();
  pool_.join_all();
}

bool scheduler::close_until(base::time_ns deadline) noexcept {
  return closing_.close([this] { return closing_.all_ended([this] { return workers(); }) || is_forked_child(); },
                        deadline);
}

// ---- tasks ---------------------------------------------------------------------------------------------------------

inline void scheduler::initialize(record* t, std::uint64_t id, bool with_handle) noexcept {
  t->word.reset_for_spawn(with_handle);
  t->references.store(with_handle ? 2 : 1, base::relaxed);
  t->running.store(task::run_state::none, base::relaxed);
  t->owner = this;
  t->id.store(id, base::relaxed);
}

task::fiber* scheduler::allocate_outside(bool with_handle) noexcept {
  std::size_t one = 1;
  record* t = records_->acquire(one);
  if (t == nullptr) return nullptr;
  initialize(t, ids_.take(), with_handle);
  return &task::as_fiber(*t);
}

task::fiber* scheduler::allocate(worker& inside, bool with_handle) noexcept {
  record* t = inside.records().take();
  if (t == nullptr) [[unlikely]]
    return nullptr;
  initialize(t, inside.ids().take(ids_), with_handle);
  return &task::as_fiber(*t);
}

void scheduler::abandon(record* t) noexcept {
  t->references.store(1, base::relaxed);
  drop_reference(t);
}

// From here on the task may run, end and be gone at any moment. The caller keeps no more than the reference of its
// handle.
void scheduler::submit(worker* inside, record* t) noexcept {
  if ((t->extras & task::has_kin) == 0) [[likely]]
    t->word.spawned();  // the word of a scope's child was changed when the scope admitted it
  become_runnable(t, task::run_state::none);
  if (inside == nullptr) [[unlikely]]
    return placement::spawned_outside(t);
  if ((t->extras & task::starts_at_once) != 0 && inside->current() != nullptr) [[unlikely]]
    return inside->start_at_once(t);
  inside->accept_fresh(t);
}

void scheduler::end_task(record* t, task::phase how) noexcept {
  if ((t->extras & task::has_locals) != 0) [[unlikely]]
    task::release_locals(*t);
  task::finish_result end = t->word.finish(how);
  if (!end.finished) {
    if (std::exception_ptr unclaimed = t->ops->dispose(t->body)) report_unhandled(*t, unclaimed);
    end = t->word.finish_unwanted(how);
  }
  // Joiners and the scope may take the result from here on. The record stays, because the caller drops the scheduler's
  // own reference afterwards.
  if (end.has_joiners) wake_joiners(*t);
  if ((t->extras & task::has_kin) != 0) {
    auto& child = *static_cast<detail::kin*>(t->body);
    child.of->ended(child);
  }
}

}  // namespace weft::inline v1::sched
