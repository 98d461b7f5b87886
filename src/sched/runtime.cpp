#include <weft/runtime.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "base/check.hpp"
#include "base/log.hpp"
#include "sched/bystander.hpp"
#include "sched/environment.hpp"
#include "sched/scheduler.hpp"
#include "sched/upcalls.hpp"
#include <weft/version.hpp>

namespace weft::inline v1 {
namespace {

[[noreturn]] void refuse(const char* option, std::size_t value, const char* range) {
  throw std::invalid_argument("weft: runtime_options::" + std::string(option) + " = " + std::to_string(value) +
                              " is out of range: " + range);
}

// Reports what is wrong before anything is started.
sched::scheduler_options checked(const runtime_options& o) {
  if (o.workers > sched::most_workers)
    refuse("workers", o.workers, "1 to 4096, or 0 for as many as the machine offers");
  if (o.queue_capacity < 8 || o.queue_capacity > 65536 || (o.queue_capacity & (o.queue_capacity - 1)) != 0)
    refuse("queue_capacity", o.queue_capacity, "a power of two from 8 to 65536");
  if (o.steal_scan == 0)
    refuse("steal_scan", o.steal_scan, "at least 1; to switch stealing off set `stealing` to false");
  if (o.elastic && (o.max_workers == 0 || o.max_workers > sched::most_workers))
    refuse("max_workers", o.max_workers, "1 to 4096");
  if (o.keep_alive.count() < 0)
    throw std::invalid_argument("weft: runtime_options::keep_alive is negative; 0 sends a worker away at once");
  if (o.max_stacks == 0) refuse("max_stacks", o.max_stacks, "at least 1");
  sched::scheduler_options s;
  s.workers = o.workers;
  if (o.workers == 0) {
    const sched::worker_choice chosen = sched::choose_workers();
    s.workers = chosen.count > o.leave_cores_free ? chosen.count - o.leave_cores_free : 1;
    s.workers_from = chosen.from;
  }
  s.stack_size = o.stack_size == 0 ? context::default_stack : context::stack_pool::check_size(o.stack_size);
  s.stack_cache_bytes = o.stack_cache_bytes;
  s.max_stacks = o.max_stacks;
  s.queue_capacity = o.queue_capacity;
  s.steal_scan = o.steal_scan;
  s.stealing = o.stealing;
  s.elastic = o.elastic;
  s.io_tasks = o.io_tasks != 0 ? o.io_tasks : std::max<std::size_t>(s.workers, 64);
  s.pinned = o.pin_workers;
  s.max_workers = o.max_workers;
  s.keep_alive = o.keep_alive.count();
  s.seed = o.seed;
  s.verbose = sched::flag_from_environment("WEFT_VERBOSE");
  s.when_stuck = o.deadlock;
  if (o.deadlock == deadlock::report_and_exit && !sched::aborts_on_deadlock()) s.when_stuck = deadlock::report;
  s.alone = o.alone;
  s.make_driver = [io = o.io != io_backend::automatic ? o.io : sched::io_from_environment(), verbose = s.verbose] {
    return sched::make_kernel_driver(io, verbose);
  };
  s.on_unhandled = o.on_unhandled_exception;
  return s;
}

// The usual size of a main thread's stack, which code that was written for one may need. Only the pages that are
// touched take memory.
constexpr std::size_t default_main_stack = std::size_t{8} << 20;

std::size_t main_stack_size(const runtime_options& o) {
  if (o.main_stack_size != 0) return context::stack_pool::check_size(o.main_stack_size);
  return std::max(default_main_stack, o.stack_size);
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
               s.options().workers, s.options().workers == 1 ? "" : "s", s.options().workers_from,
               stacks.default_size() >> 10, context::name_of(stacks.guards()), s.options().queue_capacity);
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

void print(const elastic_statistics& s) {
  const auto n = [](std::uint64_t count) { return static_cast<unsigned long long>(count); };
  std::fprintf(stderr,
               "weft: pool      looks %llu, pressure above 0 %llu, below %llu (longest %llu in a row); grown %llu, "
               "retired %llu, "
               "failed %llu, passed %llu; not grown: no work %llu, no pressure %llu, idle workers %llu, none stuck "
               "%llu, limit %llu\n",
               n(s.samples), n(s.positive_pressure), n(s.negative_pressure), n(s.longest_negative_streak), n(s.grown),
               n(s.retired), n(s.failed), n(s.gate_passes), n(s.no_work), n(s.nonpositive_pressure), n(s.idle_capacity),
               n(s.not_stuck), n(s.at_limit));
}

}  // namespace

runtime::runtime(const runtime_options& options)
    : main_stack_size_(main_stack_size(options)),
      core_((base::read_logged_topics(), std::make_unique<sched::scheduler>(checked(options)))),
      print_statistics_(sched::flag_from_environment("WEFT_STATS")) {
  if (core_->options().verbose) say_what_was_chosen(*core_);
  bystander_ = sched::make_bystander(*core_);
}

runtime::~runtime() {
  base::require(!is_inside(*core_), "a runtime is destroyed by one of its own tasks, for whose end it would wait");
  core_->close();
  bystander_.reset();
  if (!print_statistics_) return;
  for (std::size_t i = 0; i < core_->workers().size(); ++i)
    print(("worker " + std::to_string(i)).c_str(), statistics_of(i));
  print("total", statistics());
  print(elasticity());
}

bool runtime::shutdown_until(std::chrono::steady_clock::time_point when) {
  if (is_inside(*core_))
    detail::throw_usage("runtime::shutdown was called from one of its own tasks, for whose end it would wait");
  return core_->close_until(when.time_since_epoch().count());
}

void runtime::shutdown() { (void)shutdown_until(std::chrono::steady_clock::time_point::max()); }

std::size_t runtime::workers() const noexcept { return core_->options().workers; }

runtime_statistics runtime::statistics() const noexcept {
  runtime_statistics sum;
  for (const sched::worker* w : core_->workers()) add(sum, w->counters());
  sum.spawned += core_->ending().spawned_from_outside();
  return sum;
}

runtime_statistics runtime::statistics_of(std::size_t worker) const {
  if (const std::size_t made = core_->workers().size(); worker >= made)
    throw std::out_of_range("weft: runtime::statistics_of: there is no worker " + std::to_string(worker) +
                            "; this runtime's are 0 to " + std::to_string(made - 1));
  runtime_statistics one;
  add(one, core_->workers()[worker]->counters());
  return one;
}

elastic_statistics runtime::elasticity() const noexcept {
  const sched::elasticity_counters& c = core_->monitoring().growth().counters();
  elastic_statistics s;
  s.workers = core_->pool().live();
  s.samples = c.samples.get();
  s.positive_pressure = c.positive.get();
  s.negative_pressure = c.negative.get();
  s.longest_negative_streak = c.longest_negative_streak.get();
  s.no_work = c.no_work.get();
  s.nonpositive_pressure = c.nonpositive.get();
  s.idle_capacity = c.idle_capacity.get();
  s.not_stuck = c.not_stuck.get();
  s.at_limit = c.at_limit.get();
  s.gate_passes = c.passes.get();
  s.grown = c.grown.get();
  s.failed = c.failed.get();
  s.retired = c.retired.get();
  return s;
}

}  // namespace weft::inline v1
