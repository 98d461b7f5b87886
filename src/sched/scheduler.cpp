#include "sched/scheduler.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "context/overflow.hpp"
#include "task/locals.hpp"
#include "task/name.hpp"
#include <weft/detail/kin.hpp>

namespace weft::inline v1::sched {
namespace {

// What the report on an overflowing stack says of its owner. Runs in a signal handler: no allocation.
std::size_t describe_task(const context::stack& s, char* buffer, std::size_t size) {
  const auto* t = static_cast<const record*>(s.owner);
  if (t == nullptr || size == 0) return 0;
  char name[task::name_capacity];
  (void)task::try_copy_name(*t, name);  // parts of two names, if it overflowed while it renamed itself
  const int n = std::snprintf(buffer, size, "\"%s\" (#%llu)", name[0] == '\0' ? "unnamed" : name,
                              static_cast<unsigned long long>(t->id));
  return n < 0 ? 0 : std::min(static_cast<std::size_t>(n), size - 1);
}

// The same for how it gets a larger one. The body of run, which is not spawned by the user, is named `main`.
std::size_t advise_task(const context::stack& s, std::size_t wanted, char* buffer, std::size_t size) {
  const auto* t = static_cast<const record*>(s.owner);
  char name[task::name_capacity] = "";
  if (t != nullptr) (void)task::try_copy_name(*t, name);
  const char* format = std::strcmp(name, "main") == 0 ? "runtime_options{.main_stack_size = %zu}"
                                                      : "spawn(attributes{.stack_size = %zu}, ...)";
  const int n = std::snprintf(buffer, size, format, wanted);
  return n < 0 ? 0 : std::min(static_cast<std::size_t>(n), size - 1);
}

// A task sent elsewhere must not be stolen back.
scheduler_options adjusted(scheduler_options o) {
  if constexpr (force_migration) o.stealing = false;
  // A task that stays with its worker gains nothing from another one.
  o.max_workers = o.elastic && o.stealing ? std::max(o.max_workers, o.workers) : o.workers;
  return o;
}

}  // namespace

scheduler::scheduler(scheduler_options options)
    : options_(adjusted(std::move(options))),
      stacks_({.default_size = options_.stack_size,
               .cache_bytes = options_.stack_cache_bytes,
               .max_stacks = options_.max_stacks}),
      records_(new task::record_pool),
      idle_(options_.workers, options_.max_workers),
      io_(options_.io_tasks),
      workers_(options_.max_workers),
      worker_pointers_(options_.max_workers),
      fork_generation_(fork_generation()),
      live_workers_(options_.workers),
      monitor_(std::make_unique<monitor>(*this, options_.workers, options_.max_workers, options_.queue_capacity)) {
  try {
    context::install_overflow_reporter(&describe_task, &advise_task);
    for (std::size_t i = 0; i < options_.workers; ++i) make_worker();
    records_->on_unhandled = options_.on_unhandled;
    records_->fork_generation = fork_generation_;
    for (worker* w : workers()) w->start();
    if (options_.monitored) monitor_->start();
  } catch (...) {
    stop_workers();
    workers_.clear();
    throw;
  }
}

scheduler::~scheduler() {
  if (is_forked_child()) {
    leave_to_parent();
    return;
  }
  close();
  // Pairs with the release in ~guest: the last touch of a waker from outside comes before the end.
  while (base::check<"visitors.wait">(visitors_.load(base::acquire) != 0)) base::yield_thread();
  stop_workers();
  workers_.clear();
}

void scheduler::stop_workers() noexcept {
  stopping_.store(true, base::seq_cst);
  monitor_->stop();  // from here on the set of workers stays as it is
  for (worker* w : workers()) w->wake();
  for (worker* w : workers()) w->join();
}

// ---- tasks ---------------------------------------------------------------------------------------------------------

inline void scheduler::initialize(record* t, std::uint64_t id, bool with_handle) noexcept {
  t->word.reset_for_spawn(with_handle);
  t->references.store(with_handle ? 2 : 1, base::relaxed);
  t->running.store(task::run_state::none, base::relaxed);
  t->owner = this;
  t->id = id;
}

record* scheduler::allocate_outside(bool with_handle) noexcept {
  std::size_t one = 1;
  record* t = records_->acquire(one);
  if (t != nullptr) initialize(t, ids_.fetch_add(1, base::relaxed), with_handle);
  return t;
}

record* scheduler::allocate(worker& inside, bool with_handle) noexcept {
  record* t = inside.records_.take();
  if (t == nullptr) [[unlikely]]
    return nullptr;
  constexpr std::uint64_t block = 256;  // so that workers do not meet on the counter
  if (inside.next_id_ == inside.last_id_) [[unlikely]] {
    inside.next_id_ = ids_.fetch_add(block, base::relaxed);
    inside.last_id_ = inside.next_id_ + block;
  }
  initialize(t, inside.next_id_++, with_handle);
  return t;
}

void scheduler::abandon(record* t) noexcept {
  t->references.store(1, base::relaxed);
  drop_reference(t);
}

bool scheduler::admit_from_outside() noexcept {
  // Counted before closing_ is read; close() sets it before it reads the counts. One of the two sees the other.
  outside_spawned_.fetch_add(1, base::order<"close.admit">(base::seq_cst));
  if (!closing_.load(base::order<"close.admit.look">(base::seq_cst))) return true;
  forget_admitted();
  return false;
}

void scheduler::forget_admitted() noexcept {
  outside_refused_.fetch_add(1, base::seq_cst);
  quiet_.fetch_add(1, base::release);
  base::futex_wake(&quiet_, INT32_MAX);
}

void scheduler::submit(worker* inside, record* t) noexcept {
  if ((t->extras & task::has_kin) == 0) [[likely]]
    t->word.spawned();  // a scope's child became known when it was admitted
  become_runnable(t, task::run_state::none);
  if (inside != nullptr) [[likely]] {
    if ((t->extras & task::starts_at_once) != 0 && inside->current() != nullptr) [[unlikely]]
      return inside->start_at_once(t);
    return inside->accept_fresh(t);
  }
  if ((t->extras & task::is_routed) != 0) return route(t);
  inject(t);
}

void scheduler::schedule(record* t) noexcept {
  worker* w = this_worker();
  if (w != nullptr && &w->owner() == t->owner) return w->accept_woken(t);
  become_runnable(t, task::run_state::none);
  if ((t->extras & task::is_routed) != 0) return route(t);
  t->owner->inject(t);
}

void scheduler::schedule_joiner(record* t) noexcept {
  worker* w = this_worker();
  if (w != nullptr && &w->owner() == t->owner) return w->accept_joiner(t);
  schedule(t);
}

void scheduler::schedule_all(chain<record>&& claimed) noexcept {
  worker* w = this_worker();
  if (w != nullptr && !claimed.empty() && &w->owner() == claimed.front()->owner)
    return w->accept_woken_batch(std::move(claimed));
  while (record* t = claimed.pop_front()) schedule(t);
}

void scheduler::inject(record* t) noexcept { inject_to(next_inbox_.fetch_add(1, base::relaxed), t); }

void scheduler::inject_elsewhere(worker& from, record* t) noexcept {
  inject_to(static_cast<std::uint32_t>(from.id()) + 1, t);  // from there on, so that `from` is the last choice
}

// Of a worker that will come to it soon: it is not stuck, and its task has not said that it may block. Else of one that will come to
// it at all.
std::uint32_t scheduler::choose_inbox(std::uint32_t first) const noexcept {
  const auto n = static_cast<std::uint32_t>(worker_count());
  first %= n;
  std::uint32_t stuck = n;
  for (std::uint32_t i = first; i < first + n; ++i) {
    const worker& w = *worker_pointers_[i % n];
    if (w.is_leaving()) continue;
    if (!w.is_stuck() && !w.gives_way()) return i % n;
    if (stuck == n) stuck = i % n;
  }
  return stuck != n ? stuck : first;
}

void scheduler::inject_to(std::uint32_t first_choice, record* t) noexcept {
  const guest inside(*this);
  const std::uint32_t to = choose_inbox(first_choice);
  WEFT_LOG(inbox, "task %s to the inbox of worker %u", task::label(*t).text, to);
  worker& chosen = *worker_pointers_[to];
  chosen.push_inbox(t);
  if (!options_.stealing) {
    if (idle_.wake_exactly(static_cast<int>(to))) chosen.wake();
    // After the fence in wake_exactly(): either we see that the worker has died, or it sees the task in worker_died().
    else if (base::check<"drain.dead">(chosen.state() == worker_state::dead))
      notify();
    return;
  }
  notify(static_cast<int>(to));
  // All may block, or this one has said so since we chose it.
  if (chosen.gives_way()) [[unlikely]]
    find_replacement();
}

void scheduler::take_overflow(worker& from, chain<record>&& overflow) noexcept {
  from.counters().overflow_batches.add();
  global_.push(std::move(overflow));
}

// The task's own last step, still RUNNING: user code runs here if nobody wants the result, and may suspend.
void scheduler::end_task(record* t, task::phase how) noexcept {
  if ((t->extras & task::has_locals) != 0) [[unlikely]]
    task::release_locals(*t);
  task::finish_result end = t->word.finish(how);
  if (!end.finished) {
    if (std::exception_ptr unclaimed = t->ops->dispose(t->body)) report_unhandled(*t, unclaimed);
    end = t->word.finish_unwanted(how);
  }
  if (end.has_joiners) wake_joiners(*t);
  if ((t->extras & task::has_kin) != 0) {
    auto& child = *static_cast<detail::kin*>(t->body);
    child.of->ended(child);
  }
}

// ---- stacks that cannot be had -------------------------------------------------------------------------------------

// No stack for a fresh task. It waits until one is freed; if nobody holds one, none will be, and it ends with bad_alloc.
// While somebody starves, workers keep no stacks for themselves (give_stack), so that a free one is not overlooked.
void scheduler::starve(worker& on, record* t) noexcept {
  on.stacks_.drain();
  const auto last_try = stacks_.try_acquire(t->stack_size != 0 ? t->stack_size : stacks_.default_size());
  if (last_try.got != nullptr) {
    on.attach(t, last_try.got);
    return on.queue(t);
  }
  if (!last_try.others_out) {
    t->ops->fail(t->body, std::make_exception_ptr(std::bad_alloc()));
    end_task(t, task::phase::done);
    leave_lane(t);
    drop_reference(t);
    on.counters().finished.add_published();
    return;
  }
  // Its turn is for somebody who may hold the stack it waits for.
  if ((t->extras & task::on_lane) != 0) hand_on_turn(*t->dispatcher);
  {
    base::lock_guard guard(starved_lock_);
    if (starved_.empty()) starved_at_.store(base::now(), base::relaxed);
    starved_.push_back(t);
    starved_count_.store(starved_.size(), base::relaxed);
  }
  for (worker* w : workers())
    if (w != &on) w->wake();  // sleepers give what they keep
}

// Without a stack having been freed: only now and then, or workers would hand a starving task to each other at full speed.
void scheduler::retry_starved_if_due(base::time_ns now) noexcept {
  constexpr base::time_ns pause = 1'000'000;
  if (is_starving() && now - starved_at_.load(base::relaxed) >= pause) retry_starved();
}

void scheduler::retry_starved() noexcept {
  if (starved_count_.load(base::relaxed) == 0) return;
  chain<record> again;
  {
    base::lock_guard guard(starved_lock_);
    again = std::move(starved_);
    starved_count_.store(0, base::relaxed);
  }
  chain<record> ordinary;
  while (record* t = again.pop_front())
    if ((t->extras & task::is_routed) != 0)
      route(t);
    else
      ordinary.push_back(t);
  global_.push(std::move(ordinary));
}

// ---- waking, stealing ----------------------------------------------------------------------------------------------

void scheduler::notify(int preferred) noexcept {
  const int chosen = idle_.wake_one(preferred);
  if (chosen != idle_set::nobody) [[unlikely]]
    worker_pointers_[static_cast<std::size_t>(chosen)]->wake();
}

record* scheduler::steal_for(worker& thief) noexcept {
  const auto n = static_cast<std::uint32_t>(worker_count());
  if (n == 1) return nullptr;
  // Bounded: a few victims from a random one on, then the caller pauses (KC-3). Those who have left do not count.
  std::size_t scan = std::min<std::size_t>(n - 1, options_.steal_scan) + 1;
  const std::uint32_t first = thief.random_.below(n);
  for (std::uint32_t i = 0; i < n && scan != 0; ++i) {
    worker& victim = *worker_pointers_[(first + i) % n];
    const bool is_dead = victim.state() == worker_state::dead;
    if (!is_dead) --scan;
    if (&victim == &thief || (!options_.stealing && !is_dead)) continue;
    if (!victim.has_visible_work()) continue;
    if (record* t = thief.steal_from(victim)) return t;
  }
  return nullptr;
}

// What it finds without searching.
bool scheduler::work_within_reach(const worker& of) const noexcept {
  return shared_work() != 0 || of.has_visible_work();
}

// What it would have to steal.
bool scheduler::work_elsewhere(const worker& of) const noexcept {
  for (const worker* w : workers())
    if (w != &of && w->has_visible_work() && (options_.stealing || w->state() == worker_state::dead)) return true;
  return false;
}

// A searcher found work. If it was the last, what others queued meanwhile was left to it: it hands on (S1-S3 of idle_set.hpp).
void scheduler::end_search(const worker& w) noexcept {
  if (idle_.stop_searching() && (work_within_reach(w) || work_elsewhere(w))) notify();
}

// ---- the end of all tasks ------------------------------------------------------------------------------------------

// The finished are read first: if what had finished then equals what had been spawned later, nothing lived in between. The workers
// are counted anew for the second sum: one that was made meanwhile may have spawned what another finished.
bool scheduler::all_ended() const noexcept {
  std::uint64_t finished = outside_refused_.load(base::acquire);
  for (const worker* w : workers()) finished += w->counters().finished.get();
  std::uint64_t spawned = 0;
  for (const worker* w : workers()) spawned += w->counters().spawned.get();
  return finished == spawned + outside_spawned_.load(base::acquire);
}

// A worker on its way to sleep. Its own counts were stored before the fence of enter_sleep(); close() stores closing_ (or has been
// woken), has a fence and then reads the counts: one of the two sees that all is over.
void scheduler::tell_if_quiet() noexcept {
  if (!base::check<"close.tell">(closing_.load(base::relaxed) && all_ended())) return;
  quiet_.fetch_add(1, base::release);
  base::futex_wake(&quiet_, INT32_MAX);
}

void scheduler::close() noexcept {
  closing_.store(true, base::seq_cst);
  for (;;) {
    const std::uint32_t seen = quiet_.load(base::acquire);
    // Every time: a worker that missed a refusal has its fence before that, so we see its counts once the refusal has woken us.
    base::step<"close.fence">([] { base::fence_seq_cst(); });
    if (all_ended() || is_forked_child()) return;
    base::futex_wait(quiet_, seen);
  }
}

}  // namespace weft::inline v1::sched
