// The suspension gate: one word of a worker that says whether anything must be done before the running task leaves it.
//
// Whatever makes the running task leave passes the gate first, while the task is still RUNNING: each park
// (wait/wait.hpp), yield, move, start_at_once, and the end of the task. Usually that costs one load and one branch.
// Otherwise task_runner::open_gate() does what is due. Everything that has to see each suspension has its bit here.
// Candidates are unfinished forks that must be handed over, a task that cannot be suspended by a switch, and a
// simulator that chooses who is next.
//
//   spawned    How many of the newest fresh tasks the running task has spawned since its turn began. They have no place
//              in the order of turns yet. If the task waits for tasks next, they stay and are taken newest first: a
//              fork tree goes depth first and stays small. Otherwise they line up behind the woken tasks, in the order
//              in which they were spawned.
//   draining   The worker is to leave. A task that leaves goes to the worker's own stack, which gives the other tasks
//              away. A yield may choose one more task.
//   logs       Parks are logged (WEFT_LOG=park).
//
// sched.Y1. Only the worker counts, by plain stores. Other threads set `draining` by a read-modify-write, so they lose
//     no count. A store of the worker may lose the bit. The truth is in task_runner::drain_requested_, and the worker
//     sets the bit again when it looks up.
//     test sched/draining_*, model/drain
#pragma once

#include <cstdint>

#include "base/atomic.hpp"

namespace weft::inline v1::sched {

class gate {
 public:
  [[nodiscard]] bool is_open() const noexcept { return word_.load(base::relaxed) == 0; }

  // --- the worker itself ---
  void count_spawned(std::uint32_t n = 1) noexcept { base::add_alone(word_, n * one); }
  [[nodiscard]] std::uint32_t spawned() const noexcept { return word_.load(base::relaxed) / one; }
  void forget_spawned() noexcept { word_.store(word_.load(base::relaxed) & (one - 1), base::relaxed); }
  [[nodiscard]] bool is_draining() const noexcept { return (word_.load(base::relaxed) & draining) != 0; }
  void stop_draining() noexcept { word_.store(word_.load(base::relaxed) & ~draining, base::relaxed); }
  void log_parks() noexcept { word_.fetch_or(logs, base::relaxed); }
  [[nodiscard]] bool logs_parks() const noexcept { return (word_.load(base::relaxed) & logs) != 0; }

  // --- anybody ---
  void request_drain() noexcept { word_.fetch_or(draining, base::relaxed); }

 private:
  // The count is above the flags, so that it changes no flag when it wraps around. It is only a bound, and one that is
  // too small does no harm.
  static constexpr std::uint32_t draining = 1, logs = 2, one = 4;
  base::raw_atomic<std::uint32_t> word_{0};
};

}  // namespace weft::inline v1::sched
