// One runtime: its workers and what they share. Everything that a runtime has is reached from here. There are no
// globals.
//
// The scheduler owns the rooms below and ties them together. It makes them in the order in which they need each other,
// starts the workers and the monitor, allocates, submits and ends tasks, and takes everything down again. Each room
// does its own work. Workers, the monitor and tests reach the rooms through the accessors.
//
// The boundary for everything above consists of submit(), schedule() and its kin, move_to(), and the worker's park(),
// yield() and accept_*(). wait/ adds the wait, the claim and resume() on top. Nothing above touches queues or ownership
// in another way.
//
// The constructor starts everything. If something cannot be had, it stops what it has started and throws. close() may
// be called from any outside thread, any number of times. The destructor closes, waits for guests (closing.hpp), stops
// the monitor, and then the workers. In the child of a fork it leaves everything as it is (process.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/atomic.hpp"
#include "context/stack.hpp"
#include "sched/closing.hpp"
#include "sched/idle_caches.hpp"
#include "sched/idle_set.hpp"
#include "sched/lane.hpp"
#include "sched/monitor.hpp"
#include "sched/notifier.hpp"
#include "sched/placement.hpp"
#include "sched/poller.hpp"
#include "sched/shared_queues.hpp"
#include "sched/starved.hpp"
#include "sched/task_ids.hpp"
#include "sched/test_seam.hpp"
#include "sched/watch.hpp"
#include "sched/worker.hpp"
#include "sched/worker_set.hpp"
#include "task/record_pool.hpp"
#include <weft/deadlock.hpp>

namespace weft::inline v1 {
class dispatcher;
}

namespace weft::inline v1::sched {

struct scheduler_options {
  std::size_t workers = 1;
  const char* workers_from = "runtime_options";  // who chose that number
  std::size_t stack_size = context::default_stack;
  std::size_t stack_cache_bytes = std::size_t{64} << 20;
  std::size_t max_stacks = SIZE_MAX;
  std::size_t queue_capacity = 1024;
  std::size_t steal_scan = 4;  // how many victims a thief looks at before it pauses
  bool stealing = true;
  bool elastic = true;
  bool pinned = false;
  std::size_t io_tasks = 64;
  // Names that are looked up at a time. Each takes a thread for as long as a name server needs to answer, so this is a
  // guess between threads and waiting: a server that answers in 10 ms is asked 1,600 times a second.
  std::size_t lookup_tasks = 16;
  std::size_t max_workers = 512;
  base::time_ns keep_alive = 50'000'000;  // how long workers beyond the pool's size sleep before they leave
  std::uint64_t seed = 0;  // of all random choices: each worker's numbers follow from it and from the worker's id
  bool verbose = false;
  deadlock when_stuck = deadlock::off;
  bool alone = false;  // threads outside of Weft never wake a task
  driver_factory make_driver;  // if it is empty, nothing outside of the process wakes tasks
  std::function<void(std::string_view task, std::exception_ptr error)> on_unhandled;

  // Whether the pool may become larger than `workers`.
  [[nodiscard]] bool can_grow() const noexcept { return max_workers > workers; }
};

class scheduler {
 public:
  explicit scheduler(scheduler_options options);  // starts the workers; throws std::system_error, std::bad_alloc
  ~scheduler();  // waits for every task to end, then for every worker
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // --- tasks ------------------------------------------------------------------------------------------------------
  // Return a record with one reference for the scheduler and, if wanted, one for the handle; nullptr if memory is out.
  [[nodiscard]] task::fiber* allocate(worker& inside, bool with_handle) noexcept;
  [[nodiscard]] task::fiber* allocate_outside(bool with_handle) noexcept;
  void abandon(record* t) noexcept;  // the task was allocated and never submitted
  void submit(worker* inside, record* t) noexcept;  // INIT -> RUNNABLE, and into a queue
  // placement.hpp says what these functions do.
  static void schedule(record* t) noexcept { placement::schedule(t); }
  static void schedule_joiner(record* t) noexcept { placement::schedule_joiner(t); }
  static void schedule_all(chain<record>&& claimed) noexcept { placement::schedule_all(std::move(claimed)); }
  static void move_to(worker& on, lane* to) noexcept { placement::move_to(on, to); }
  // Called by the task itself as the last thing it does, still RUNNING. If nobody wants the result, user code runs here
  // and may suspend.
  static void end_task(record* t, task::phase how) noexcept;

  // lane_of() returns the lane of a dispatcher in this runtime, or nullptr. assign() puts a task on it before the task
  // is submitted (dispatcher.cpp).
  [[nodiscard]] lane* lane_of(const dispatcher& d) noexcept;
  void assign(record& t, const dispatcher& d) noexcept;
  // The dispatcher of tasks that look names up, for a task of this runtime. It has turns of its own, so that slow name
  // servers take none from other calls that block.
  [[nodiscard]] dispatcher lookups() noexcept;

  // Waits until every task has ended and refuses outside spawns from now on. Returns false if the deadline comes first.
  bool close_until(base::time_ns deadline) noexcept;
  void close() noexcept { (void)close_until(base::never_ns); }

  // --- the rooms ---------------------------------------------------------------------------------------------------
  [[nodiscard]] worker_set& pool() noexcept { return pool_; }
  [[nodiscard]] std::span<worker* const> workers() const noexcept { return pool_.all(); }
  [[nodiscard]] idle_set& idle() noexcept { return idle_; }
  [[nodiscard]] shared_queues& queues() noexcept { return queues_; }
  [[nodiscard]] notifier& notifying() noexcept { return notifier_; }
  [[nodiscard]] placement& placing() noexcept { return placement_; }
  [[nodiscard]] starved& without_stack() noexcept { return starved_; }
  [[nodiscard]] closing& ending() noexcept { return closing_; }
  [[nodiscard]] watch& watching() noexcept { return watch_; }
  [[nodiscard]] poller& polling() noexcept { return poller_; }
  [[nodiscard]] idle_caches& caches() noexcept { return caches_; }
  [[nodiscard]] monitor& monitoring() noexcept { return *monitor_; }
  [[nodiscard]] lane& io() noexcept { return io_; }
  [[nodiscard]] context::stack_pool& stacks() noexcept { return stacks_; }
  [[nodiscard]] task::record_pool& records() noexcept { return *records_; }
  [[nodiscard]] const scheduler_options& options() const noexcept { return options_; }

  // The workers and the monitor are to end. acquire: whoever sees the flag sees what came before it. Pairs with the
  // store in stop_workers().
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(base::acquire); }

  // --- forks (process.cpp) ----------------------------------------------------------------------------------------
  // Whether this process is a fork of the one that made the runtime.
  [[nodiscard]] bool is_forked_child() const noexcept;
  [[noreturn]] static void refuse_forked_return() noexcept;

 private:
  friend struct test_seam;

  void initialize(record* t, std::uint64_t id, bool with_handle) noexcept;
  void stop_workers() noexcept;
  void leave_to_parent() noexcept;

  scheduler_options options_;
  context::stack_pool stacks_;
  struct retire_pool {
    void operator()(task::record_pool* p) const noexcept { p->retire(); }
  };
  // The pool outlives the scheduler while somebody holds a handle.
  std::unique_ptr<task::record_pool, retire_pool> records_;
  idle_set idle_;
  shared_queues queues_;
  lane io_;
  lane lookups_;
  starved starved_;
  closing closing_;
  poller poller_;
  worker_set pool_;
  notifier notifier_;
  watch watch_;
  idle_caches caches_;
  task_ids ids_;
  std::unique_ptr<monitor> monitor_;  // a pointer, so that a forked child can leave the monitor as it is
  placement placement_;
  alignas(base::cache_line) base::atomic<bool> stopping_{false};  // written once, read at every look for work
};

// Handles an exception that nobody will take: calls the runtime's handler, or ends the process with the task's name. An
// exception that was forgiven (task/state.hpp, F) is only reported.
void report_unhandled(const record& t, const std::exception_ptr& error) noexcept;
// Only calls the handler. Returns false if there is none.
[[nodiscard]] bool tell_handler(const record& t, const std::exception_ptr& error) noexcept;
[[nodiscard]] const char* printed_name(const record& ended) noexcept;

// References to a record (task.T2). Whoever drops the last one frees the record, on whatever thread that is.
void add_reference(record* t) noexcept;
void drop_reference(record* t) noexcept;

// A number that grows in every forked child. A runtime that was made before the fork cannot be used in the child.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

}  // namespace weft::inline v1::sched
