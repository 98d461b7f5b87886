#include <weft/runtime.hpp>

#include <cstdio>
#include <stdexcept>
#include <string>

#include "base/check.hpp"
#include "base/log.hpp"
#include "sched/environment.hpp"
#include "sched/scheduler.hpp"
#include <weft/version.hpp>

namespace weft::inline v1 {
namespace {

[[noreturn]] void refuse(const char* option, std::size_t value, const char* range) {
  throw std::invalid_argument("weft: runtime_options::" + std::string(option) + " = " + std::to_string(value) +
                              " is out of range: " + range);
}

// Says what is wrong before anything is started.
sched::scheduler_options checked(const runtime_options& o) {
  if (o.workers > sched::most_workers)
    refuse("workers", o.workers, "1 to 4096, or 0 for as many as the machine offers");
  if (o.queue_capacity < 8 || o.queue_capacity > 65536 || (o.queue_capacity & (o.queue_capacity - 1)) != 0)
    refuse("queue_capacity", o.queue_capacity, "a power of two from 8 to 65536");
  if (o.steal_scan == 0)
    refuse("steal_scan", o.steal_scan, "at least 1; to switch stealing off set `stealing` to false");
  if (o.max_stacks == 0) refuse("max_stacks", o.max_stacks, "at least 1");
  sched::scheduler_options s;
  s.workers = o.workers;
  if (o.workers == 0) {
    const sched::worker_choice chosen = sched::choose_workers();
    s.workers = chosen.count;
    s.workers_from = chosen.from;
  }
  s.stack_size = o.stack_size == 0 ? context::default_stack : context::stack_pool::check_size(o.stack_size);
  s.stack_cache_bytes = o.stack_cache_bytes;
  s.max_stacks = o.max_stacks;
  s.queue_capacity = o.queue_capacity;
  s.steal_scan = o.steal_scan;
  s.stealing = o.stealing;
  s.on_unhandled = o.on_unhandled_exception;
  return s;
}

void add(runtime_statistics& sum, const sched::worker_counters& c) noexcept {
  sum.spawned += c.spawned.get();
  sum.finished += c.finished.get();
  sum.dispatched += c.dispatched.get();
  sum.steal_attempts += c.steal_attempts.get();
  sum.steals += c.steals.get();
  sum.stolen_tasks += c.stolen_tasks.get();
  sum.overflow_batches += c.overflow_batches.get();
  sum.parks += c.parks.get();
  sum.wakes += c.wakes.get();
  sum.sleeps += c.sleeps.get();
}

void say_what_was_chosen(sched::scheduler& s) {
  context::stack_pool& stacks = s.stacks();
  if (context::stack* probe = stacks.acquire())
    stacks.release(probe);  // a kernel without guard regions says so only now
  std::fprintf(stderr, "weft " WEFT_VERSION ": %zu worker%s (%s), stacks of %zu KiB (guard: %s), queues of %zu\n",
               s.worker_count(), s.worker_count() == 1 ? "" : "s", s.options().workers_from,
               stacks.default_size() >> 10, context::name_of(stacks.guards()), s.queue_capacity());
}

bool is_inside(const sched::scheduler& s) noexcept {
  const sched::worker* w = sched::this_worker();
  return w != nullptr && &w->owner() == &s;
}

void print(const char* who, const runtime_statistics& s) {
  std::fprintf(
      stderr,
      "weft: %-9s spawned %llu, finished %llu, dispatched %llu, parks %llu, wakes %llu, steals %llu of %llu (%llu "
      "tasks), overflows %llu, sleeps %llu\n",
      who, static_cast<unsigned long long>(s.spawned), static_cast<unsigned long long>(s.finished),
      static_cast<unsigned long long>(s.dispatched), static_cast<unsigned long long>(s.parks),
      static_cast<unsigned long long>(s.wakes), static_cast<unsigned long long>(s.steals),
      static_cast<unsigned long long>(s.steal_attempts), static_cast<unsigned long long>(s.stolen_tasks),
      static_cast<unsigned long long>(s.overflow_batches), static_cast<unsigned long long>(s.sleeps));
}

}  // namespace

runtime::runtime(const runtime_options& options)
    : core_(std::make_unique<sched::scheduler>(checked(options))),
      print_statistics_(sched::flag_from_environment("WEFT_STATS")) {
  base::read_logged_topics();
  if (sched::flag_from_environment("WEFT_VERBOSE")) say_what_was_chosen(*core_);
}

runtime::~runtime() {
  base::require(!is_inside(*core_), "a runtime is destroyed by one of its own tasks, for whose end it would wait");
  core_->close();
  if (!print_statistics_) return;
  for (std::size_t i = 0; i < workers(); ++i) print(("worker " + std::to_string(i)).c_str(), statistics_of(i));
  print("total", statistics());
}

void runtime::shutdown() {
  if (is_inside(*core_))
    detail::throw_usage("runtime::shutdown was called from one of its own tasks, for whose end it would wait");
  core_->close();
}

std::size_t runtime::workers() const noexcept { return core_->worker_count(); }

runtime_statistics runtime::statistics() const noexcept {
  runtime_statistics sum;
  for (const sched::worker* w : core_->workers()) add(sum, w->counters());
  sum.spawned += core_->spawned_from_outside();
  return sum;
}

runtime_statistics runtime::statistics_of(std::size_t worker) const {
  if (worker >= workers())
    throw std::out_of_range("weft: runtime::statistics_of: there is no worker " + std::to_string(worker) +
                            "; this runtime's are 0 to " + std::to_string(workers() - 1));
  runtime_statistics one;
  add(one, core_->workers()[worker]->counters());
  return one;
}

}  // namespace weft::inline v1
