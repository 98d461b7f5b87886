// One runtime's workers and what they share. Everything a runtime has is reached from here; there are no globals.
//
// LS-W2's boundary: schedule() and the workers' next_*; wait/ adds fiber_wait and fiber_wake on top. Nothing above touches
// queues or ownership by another way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "base/thread.hpp"
#include "context/stack.hpp"
#include "sched/global_queue.hpp"
#include "sched/idle_set.hpp"
#include "sched/lane.hpp"
#include "sched/monitor.hpp"
#include "sched/worker.hpp"
#include "task/record_pool.hpp"

namespace weft::inline v1 {
class dispatcher;
}

namespace weft::inline v1::sched {

struct scheduler_options {
  std::size_t workers = 1;
  const char* workers_from = "runtime_options";  // who said so
  std::size_t stack_size = context::default_stack;
  std::size_t stack_cache_bytes = std::size_t{64} << 20;
  std::size_t max_stacks = SIZE_MAX;
  std::size_t queue_capacity = 1024;
  std::size_t steal_scan = 4;  // victims looked at before a pause
  bool stealing = true;
  bool elastic = true;
  bool pinned = false;
  std::size_t io_tasks = 64;
  std::size_t max_workers = 512;
  base::time_ns keep_alive = 50'000'000;  // of sleep, for workers beyond the pool's size
  bool monitored = true;  // false: model tests of something else
  bool verbose = false;
  std::function<void(std::string_view task, std::exception_ptr error)> on_unhandled;
};

// Defined by the wait layer: wakes everybody on a finished task's join list.
void wake_joiners(record& finished) noexcept;
// Defined by the sync layer: ends the process and says which lock it is that an ended task still holds.
[[noreturn]] void report_held_lock(const record& ended) noexcept;

class scheduler {
 public:
  explicit scheduler(scheduler_options options);  // starts the workers; throws std::system_error, std::bad_alloc
  ~scheduler();  // waits for every task to end, then for every worker
  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  // --- tasks ------------------------------------------------------------------------------------------------------
  // A record with one reference for the scheduler and, if wanted, one for the handle. nullptr: out of memory.
  [[nodiscard]] record* allocate(worker& inside, bool with_handle) noexcept;
  [[nodiscard]] record* allocate_outside(bool with_handle) noexcept;
  void abandon(record* t) noexcept;  // allocated, never submitted
  void submit(worker* inside, record* t) noexcept;  // INIT -> RUNNABLE and into a queue
  [[nodiscard]] bool accepts() const noexcept { return !closing_.load(base::relaxed); }
  // For outside threads: false once shutdown has begun. Otherwise the task to come is counted.
  [[nodiscard]] bool admit_from_outside() noexcept;
  void forget_admitted() noexcept;  // an admitted spawn was abandoned

  // RUNNABLE, and ours by the claim: into a queue, once. Any thread.
  static void schedule(record* t) noexcept;
  static void schedule_joiner(record* t) noexcept;  // the same for one who waited for a task's end

  static void schedule_all(chain<record>&& claimed) noexcept;  // of one runtime

  // Waits until every task has ended and refuses outside spawns from now on. Any outside thread; idempotent.
  void close() noexcept;

  static void end_task(record* t, task::phase how) noexcept;

  // --- for workers ------------------------------------------------------------------------------------------------
  void notify(int preferred = idle_set::nobody) noexcept;
  [[gnu::cold]] static void route(record* t) noexcept;
  static void place(record* t) noexcept;
  static void hand_on_turn(lane& l) noexcept;
  static void leave_lane(record* ended) noexcept {
    if ((ended->extras & task::on_lane) == 0) [[likely]]
      return;
    ended->extras = static_cast<task::extra>(ended->extras & ~task::on_lane);
    lane* left = std::exchange(ended->dispatcher, nullptr);
    hand_on_turn(*left);
    left->drop_reference();
  }
  static void move_to(worker& on, lane* to) noexcept;
  void find_replacement() noexcept;
  void gave_way() noexcept;
  [[nodiscard]] lane* lane_of(const dispatcher& d) noexcept;
  void assign(record& t, const dispatcher& d) noexcept;
  void inject(record* t) noexcept;
  void inject_elsewhere(worker& from, record* t) noexcept;
  void inject_to(std::uint32_t first_choice, record* t) noexcept;
  [[nodiscard]] std::uint32_t choose_inbox(std::uint32_t first) const noexcept;
  void take_overflow(worker& from, chain<record>&& overflow) noexcept;
  void starve(worker& on, record* t) noexcept;
  [[nodiscard]] bool is_starving() const noexcept { return starved_count_.load(base::relaxed) != 0; }
  void retry_starved() noexcept;
  void retry_starved_if_due(base::time_ns now) noexcept;
  [[nodiscard]] record* steal_for(worker& thief) noexcept;
  void end_search(const worker& w) noexcept;
  [[nodiscard]] bool work_within_reach(const worker& of) const noexcept;
  [[nodiscard]] bool work_elsewhere(const worker& of) const noexcept;
  std::size_t fire_timers(base::time_ns now, worker& on) noexcept;
  [[nodiscard]] bool timer_due(base::time_ns now) const noexcept;
  [[nodiscard]] base::time_ns watch_from(worker& w) noexcept;
  [[nodiscard]] bool stop_watching(worker& w) noexcept;
  void hand_on_watch() noexcept;
  void wake_for_timers() noexcept;
  // A worker that has worked has a cache for its next task.
  [[nodiscard]] bool somebody_keeps() const noexcept;
  void ask_for_caches() noexcept;
  void stop_asking() noexcept { asks_.store(false, base::relaxed); }
  [[nodiscard]] bool asks() const noexcept { return asks_.load(base::relaxed); }
  [[nodiscard]] bool trim() noexcept;
  void tell_if_quiet() noexcept;
  void left_idle() noexcept { monitor_->ensure_awake(); }
  void worker_died(worker& w) noexcept;
  [[noreturn]] static void refuse_forked_return() noexcept;

  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(base::acquire); }
  [[nodiscard]] bool stealing() const noexcept { return options_.stealing; }
  [[nodiscard]] global_queue<record>& global() noexcept { return global_; }
  [[nodiscard]] global_queue<record>& urgent() noexcept { return urgent_; }
  [[nodiscard]] global_queue<record>& background() noexcept { return background_; }
  [[nodiscard]] idle_set& idle() noexcept { return idle_; }
  [[nodiscard]] lane& io() noexcept { return io_; }
  [[nodiscard]] context::stack_pool& stacks() noexcept { return stacks_; }
  [[nodiscard]] task::record_pool& records() noexcept { return *records_; }
  // Dead ones too: their inboxes and timers are still there. acquire pairs with the release in make_worker().
  [[nodiscard]] std::size_t worker_count() const noexcept { return created_.load(base::acquire); }
  [[nodiscard]] std::span<worker* const> workers() const noexcept { return {worker_pointers_.data(), worker_count()}; }
  [[nodiscard]] std::size_t live_workers() const noexcept { return live_workers_.load(base::relaxed); }
  // The only worker: whatever it queues it will find itself, or the monitor.
  [[nodiscard]] bool is_alone() const noexcept { return live_workers() == 1; }
  [[nodiscard]] bool someone_works() const noexcept { return idle_.sleeping() < live_workers() || is_starving(); }
  [[nodiscard]] bool nobody_is_idle() const noexcept { return idle_.sleeping() + idle_.searching() == 0; }
  // In no worker's queues.
  [[nodiscard]] std::size_t shared_work() const noexcept {
    return global_.size() + urgent_.size() + background_.size();
  }
  [[nodiscard]] bool is_elastic() const noexcept { return options_.max_workers > options_.workers; }
  [[nodiscard]] const elasticity& growth() const noexcept { return monitor_->growth(); }
  [[nodiscard]] bool monitor_sleeps() const noexcept { return monitor_->is_asleep(); }
  [[nodiscard]] bool monitor_dozes() const noexcept { return monitor_->dozes(); }
  [[nodiscard]] bool has_room() const noexcept;  // for another worker
  [[nodiscard]] bool add_worker() noexcept;
  [[nodiscard]] const scheduler_options& options() const noexcept { return options_; }
  [[nodiscard]] std::uint64_t spawned_from_outside() const noexcept {
    return outside_spawned_.load(base::relaxed) - outside_refused_.load(base::relaxed);
  }
  [[nodiscard]] std::size_t queue_capacity() const noexcept { return options_.queue_capacity; }
  [[nodiscard]] bool is_forked_child() const noexcept;

  // Makes a worker leave. At least one must stay.
  void retire(std::size_t worker) noexcept;

 private:
  friend struct step_by_step;

  [[nodiscard]] bool all_ended() const noexcept;
  void initialize(record* t, std::uint64_t id, bool with_handle) noexcept;
  // Inside the scheduler on behalf of a task of its own, which may run and end meanwhile: ~scheduler waits.
  class guest {
   public:
    // The task has not ended, so the scheduler is still there. relaxed: whoever sees that it has ended sees this too, because the push
    // publishes it to the worker that runs the task, and that worker's count of finished tasks to close().
    explicit guest(scheduler& s) noexcept : scheduler_(s) { s.visitors_.fetch_add(1, base::relaxed); }
    // Pairs with the acquire in ~scheduler: our last touch.
    ~guest() { scheduler_.visitors_.fetch_sub(1, base::order<"visitors.leave">(base::release)); }
    guest(const guest&) = delete;
    guest& operator=(const guest&) = delete;

   private:
    scheduler& scheduler_;
  };

  void make_worker();
  [[nodiscard]] worker* dead_worker() const noexcept;
  void count_live(int change) noexcept;
  void stop_workers() noexcept;
  void leave_to_parent() noexcept;

  scheduler_options options_;
  context::stack_pool stacks_;
  struct retire_pool {
    void operator()(task::record_pool* p) const noexcept { p->retire(); }
  };
  std::unique_ptr<task::record_pool, retire_pool> records_;  // the pool outlives us while somebody holds a handle
  idle_set idle_;
  global_queue<record> global_;
  global_queue<record> urgent_;
  global_queue<record> background_;
  lane io_;
  std::vector<std::unique_ptr<worker>> workers_;  // slots, of which the first created_ are filled (pool.cpp)
  std::vector<worker*> worker_pointers_;
  const std::uint32_t fork_generation_;

  // Written rarely, read at every wake.
  alignas(base::cache_line) base::atomic<bool> closing_{false};
  base::atomic<bool> stopping_{false};
  base::atomic<std::size_t> created_{0};
  base::atomic<std::size_t> live_workers_;  // not dead

  alignas(base::cache_line) base::lock watch_lock_;
  int watcher_ = idle_set::nobody;  // under watch_lock_
  base::time_ns watch_deadline_ = 0;  // under watch_lock_

  alignas(base::cache_line) base::atomic<std::uint64_t> outside_spawned_{0};
  base::atomic<std::uint64_t> outside_refused_{0};
  base::atomic<std::uint32_t> next_inbox_{0};
  base::atomic<std::uint32_t> visitors_{0};  // threads of others inside inject_to()
  base::atomic<std::uint64_t> ids_{1};
  base::atomic<std::uint32_t> quiet_{0};  // futex: bumped when all tasks have ended during close()

  base::lock starved_lock_;
  chain<record> starved_;  // under starved_lock_: fresh tasks for which there was no stack
  base::atomic<std::size_t> starved_count_{0};
  base::atomic<base::time_ns> starved_at_{0};  // when the first of them was put there
  base::atomic<bool> asks_{false};  // for the caches of sleepers

  std::unique_ptr<monitor> monitor_;
};

// An exception that nobody will take: calls the runtime's handler, or ends the process with the task's name. One that was
// forgiven (task/state.hpp, F) is only told.
void report_unhandled(const record& t, const std::exception_ptr& error) noexcept;
// The first half of it. False: there is no handler.
[[nodiscard]] bool tell_handler(const record& t, const std::exception_ptr& error) noexcept;
[[nodiscard]] const char* printed_name(const record& ended) noexcept;

// References (task.hpp T2). The last one frees the record, wherever it is dropped.
void add_reference(record* t) noexcept;
void drop_reference(record* t) noexcept;

// Bumped in every forked child. A runtime made before the fork is not usable in it.
[[nodiscard]] std::uint32_t fork_generation() noexcept;

// std::thread's constructor, replaceable so that tests can make the n-th one fail.
using thread_starter = base::thread (*)(std::function<void()> body);
extern thread_starter start_thread;

}  // namespace weft::inline v1::sched
