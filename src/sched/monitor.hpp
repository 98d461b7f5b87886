// The monitor: a thread that looks after workers that do not get on, and after the pool when all sleep.
//
// Tasks are often queued without waking anybody (the LIFO slot, a lone fresh task, a new timer), because their worker will come to
// them in a moment. The monitor sees when it does not: it takes what lies behind a stuck worker to the global queue, wakes a sleeper,
// and lets the pool grow if there is none. When all workers have slept for a while it gives memory back, sends away workers beyond
// the pool's size, and rests: then the process makes no system call.
//
// M1. While a worker is awake the monitor is, or is being woken: a worker that leaves the idle set has a fence and then reads
//     `state_`; the monitor that wants to rest stores it, has a fence and then counts the sleepers.   model/monitor, test sched/elastic_*
//     Nor does it rest while a sleeper keeps memory for its next task: a worker that has worked says so before its fence.
//                                                                                                      model/monitor, test sched/cache_*
// M2. What lies in a stuck worker's slot, ring, inbox or fresh queue, and every timer that is due, is seen within three looks. Only
//     the slot of one that the system has put aside: that one goes on by itself.
//     model/monitor, test sched/elastic_*
// M3. Only the monitor makes the pool larger or smaller (until the scheduler stops it), so the set of workers needs no lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/thread.hpp"
#include "sched/complaints.hpp"
#include "sched/elasticity.hpp"
#include "sched/os_thread.hpp"
#include "sched/ring.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class scheduler;
class worker;

class monitor {
 public:
  static constexpr base::time_ns shortest_nap = 250'000;
  static constexpr base::time_ns longest_nap = 400'000;  // so that a stuck worker is noticed within a millisecond
  static constexpr base::time_ns longest_idle_nap = 32'000'000;
  static constexpr base::time_ns stuck_after = 200'000;
  static constexpr base::time_ns back_off_after = 5'000'000;  // of idleness
  static constexpr base::time_ns rest_after = 100'000'000;

  monitor(scheduler& s, std::size_t base_workers, std::size_t limit, std::size_t queue_capacity);

  void start();  // throws std::system_error
  void stop() noexcept;  // the scheduler is stopping; joins

  // A worker has left the idle set (M1).
  void ensure_awake() noexcept {
    // Mirror: the fence in rest().
    base::step<"monitor.leave.fence">([] { base::fence_seq_cst(); });
    if (base::check<"monitor.wake">(state_.load(base::relaxed) == resting)) [[unlikely]]
      hurry();
  }
  // Something that need not wait for the next look.
  void hurry() noexcept;

  [[nodiscard]] const elasticity& growth() const noexcept { return elasticity_; }
  // Between two looks, without any lock.
  [[nodiscard]] bool is_asleep() const noexcept { return state_.load(base::relaxed) != awake; }

 private:
  friend struct step_by_step;

  // What it remembers of a worker.
  struct note {
    std::uint64_t dispatched = 0;
    base::time_ns since = 0;  // that it was first seen
    thread_state thread = thread_state::runs;  // meanwhile, when asked
    base::time_ns asked_at = 0;
    base::time_ns processor_time = 0;  // at timed_at, when it was first found stuck
    base::time_ns timed_at = 0;
    std::uint64_t sleeps = 0;
    base::time_ns asleep_since = 0;
  };

  void run() noexcept;
  [[nodiscard]] bool look(base::time_ns now) noexcept;
  void look_at_workers(base::time_ns now) noexcept;
  [[nodiscard]] pool_sample sample(base::time_ns now) noexcept;
  [[nodiscard]] bool look_behind_stuck(pool_sample& s, base::time_ns now) noexcept;
  [[nodiscard]] note& note_of(const worker& w) noexcept;
  [[nodiscard]] static bool gets_on(const worker& w, const note& seen) noexcept;
  [[nodiscard]] static bool is_stuck(const worker& w, note& seen, base::time_ns now) noexcept;
  [[nodiscard]] bool classify(worker& w, pool_sample& s, base::time_ns now) noexcept;
  [[nodiscard]] static bool computes(worker& w, note& seen, base::time_ns now) noexcept;
  [[nodiscard]] bool take_over(worker& from, bool only_slot) noexcept;
  void grow(std::size_t by, const pool_sample& s, base::time_ns now) noexcept;
  bool retire_sleepers(base::time_ns now, std::size_t blocked) noexcept;
  void nap() noexcept;
  void rest(base::time_ns until = base::never_ns) noexcept;

  static constexpr std::uint32_t awake = 0, napping = 1, resting = 2;

  scheduler& scheduler_;
  elasticity elasticity_;
  std::vector<note> notes_;
  ring<task::record> hands_;  // what it takes from a ring passes through here
  base::time_ns nap_ = shortest_nap;
  base::time_ns last_look_ = 0;
  base::time_ns idle_since_ = 0;  // 0: somebody works
  base::time_ns trimmed_at_ = 0;
  base::time_ns no_growth_before_ = 0;
  std::size_t members_;  // workers that have not been told to leave; live ones may be more
  bool told_limit_ = false;
  complaints complaints_;
  unsigned long usual_slack_ = 0;
  base::thread thread_;
  alignas(base::cache_line) base::atomic<std::uint32_t> state_{awake};
};

}  // namespace weft::inline v1::sched
