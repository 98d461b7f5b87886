// What the scheduler promises to the wait layer, and nothing else: for model tests of parking, joining and permits.
// A test file asks for it with `// abstract scheduler`.
//
// Kept: a task runs on one worker at a time; park() commits after the switch, then unlocks (the same thread does it here, as
// the next stack on the same worker does in the product); a task that was scheduled runs again, having seen what the one who
// scheduled it did; scheduling a task that is already in a queue is an error. Left out: which queue, which worker, when.
// Each task has a virtual thread of its own as its worker.
#pragma once

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "explore/explore.hpp"
#include "sched/chain.hpp"
#include "sched/timer_source.hpp"
#include "task/origin.hpp"
#include "task/task.hpp"

namespace weft::inline v1::task {

// Recycling: the last reference ends the record here, so that whoever touches it later is caught.
struct record_pool {
  void release(record* t) noexcept;
};
struct slab {
  record_pool* pool;
  static slab* of(record* t) noexcept;
};
[[nodiscard]] const origin& origin_of(const record& t) noexcept;

}  // namespace weft::inline v1::task

namespace weft::inline v1::sched {

using task::record;

class scheduler;

// A record and its place in the one run queue there is: held while the task is in no queue.
struct model_task : task::fiber {
  explicit model_task(bool with_handle) noexcept;
  base::lock in_no_queue;
  base::plain<int> context{0};  // written by the switch away, read by whoever switches to the task
  timer_source* timers = nullptr;  // of the worker it runs on, if it sleeps
};

class worker {
 public:
  [[nodiscard]] record* current() const noexcept { return current_; }
  [[nodiscard]] scheduler& owner() const noexcept;
  [[nodiscard]] bool spend_budget() noexcept { return true; }
  void return_budget() noexcept {}
  [[nodiscard]] bool has_budget() const noexcept { return true; }
  [[nodiscard]] bool is_unwinding() const noexcept { return false; }
  void yield() noexcept {}
  // The gate has nothing to do here.
  [[nodiscard]] bool is_gate_open() const noexcept { return true; }
  void pass_gate() noexcept {}
  void pass_gate_to_park() noexcept {}
  [[nodiscard]] std::uint32_t keep_spawned() noexcept { return 0; }
  void return_spawned(std::uint32_t) noexcept {}
  [[nodiscard]] std::uint32_t coarse_ms() const noexcept { return 0; }
  // Whatever a select draws: each order in which it may look at its arms.
  struct any_number {
    [[nodiscard]] static std::uint32_t below(std::uint32_t limit) noexcept {
      return static_cast<std::uint32_t>(explore::choose(static_cast<int>(limit)));
    }
  };
  [[nodiscard]] any_number random() noexcept { return {}; }
  [[nodiscard]] timer_source& timers() const noexcept { return *static_cast<model_task*>(current_)->timers; }
  void accept_woken_batch(chain<record>&& batch) noexcept;  // who fires timers may be any worker: a default-made one
  static void park(worker& on, void (*unlock)(void*) noexcept, void* locked) noexcept;
  void accept_woken(record* t) noexcept;

  struct cache {
    void put(record* t) noexcept;
  };
  cache& records() noexcept { return cache_; }

  // Runs f as the body of `t` on the calling virtual thread.
  template <class F>
  static void run(model_task& t, F&& f) {
    worker on;
    on.current_ = &t;
    on.make_current();
    f();
    on.make_none_current();
  }

 private:
  void make_current() noexcept;
  void make_none_current() noexcept;
  record* current_ = nullptr;
  cache cache_;
};

[[nodiscard]] worker* this_worker() noexcept;

}  // namespace weft::inline v1::sched
