// The monitor: a thread that looks after workers that do not get on, and after the pool when all sleep.
//
// Tasks are often queued without waking anybody (the LIFO slot, a lone fresh task, a new timer), because their worker will come to
// them in a moment. The monitor sees when it does not: it takes what lies behind a stuck worker to the global queue, wakes a sleeper,
// and lets the pool grow if there is none. When all workers have slept for a while it gives memory back, sends away workers beyond
// the pool's size, and rests: then the process makes no system call.
//
// A look costs a timer and two switches of threads, so it looks seldom while nobody is stuck: each nap is twice as long as the one
// before, up to longest_nap, or longest_idle_nap while all sleep. When a task holds its worker and others wait, or for a millisecond,
// the monitor is *alert* for ten seconds: whoever blocks once blocks again. Then it naps for alert_nap at most.
//
// M1. While a worker is awake the monitor looks again after the nap it is in, or it is being woken. Only a rest is longer than a nap:
//     a worker that leaves the idle set has a fence and then reads `state_`; the monitor that wants to rest stores it, has a fence and
//     then counts the sleepers.                                                     model/monitor, test sched/elastic_*
//     Nor does it rest while a sleeper keeps memory for its next task: a worker that has worked says so before its fence.
//                                                                                   model/monitor, test sched/cache_*
// M2. Naps grow beyond careful_nap only if every worker that is in a task came to it since the last look; while one is stuck they are
//     the shortest. An idle worker proves nothing: while something is queued or due behind a busy one, the next look comes within
//     careful_nap. While alert, and while all workers are in tasks that may block, naps are shorter still. So what lies in a stuck
//     worker's slot, ring, inbox or fresh queue, and every timer that is due, is seen in time. Of one that the system has put aside
//     only the slot is taken: that one goes on by itself.
//                                                                                   model/monitor, test sched/monitor_*, sched/elastic_*
// M3. Only the monitor makes the pool larger or smaller (until the scheduler stops it), so the set of workers needs no lock.
//
// Where work can be stranded, and what ends it:
// - Behind a task that computes or blocks without a word, when nobody has been stuck lately. The nap that runs ends. That look sees the
//   worker in another task than before, and not yet that it stays there. The next one does: after careful_nap if a worker is idle, after
//   two shortest naps if all slept at the look before, else after longest_nap. That is 5 to 10 ms, and 10.5 at most.
// - The same while alert: two naps of at most alert_nap. With the start of a thread (0.1 ms) that is a millisecond.
// - Behind a task that has said that it may block: its worker gives away what it has, at once, and others do not put anything into its
//   inbox (scheduler::choose_inbox()). While all workers are in such tasks, only the monitor sees what comes from outside, and timers:
//   the last of them ends its doze (scheduler::gave_way()), and from then on its naps are the shortest. That worker has no fence: if it
//   misses a monitor that lies down at this moment, longest_nap is the bound.
// - A timer that was set before the watcher went to sleep has the watcher (watch.cpp). One that was set later, by a worker that is stuck
//   now, is like a task behind it.
// - In the inbox of a worker that has died: it looks once more itself (scheduler::worker_died()); then the nap that runs.
// - A task without a stack: it goes on when a stack is freed; whatever frees one without telling is found by the nap that runs, and from
//   then on by alert naps.
// - While the monitor rests: all sleep, and nothing is queued (idle_set.hpp). Who leaves the idle set wakes it (M1).
// - While the monitor itself gets no processor: nothing bounds that. A look that comes 100 ms late takes nobody for stuck; the next does.
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
  static constexpr base::time_ns alert_nap =
      400'000;  // at most: two of them and the start of a thread are a millisecond
  static constexpr base::time_ns careful_nap =
      1'000'000;  // at most, while something waits that an idle worker does not see
  static constexpr base::time_ns longest_nap = 5'000'000;
  static constexpr base::time_ns longest_idle_nap = 10'000'000;  // while all sleep
  static constexpr base::time_ns longest_idle_rest =
      32'000'000;  // the same while alert: who leaves the idle set ends it
  static constexpr base::time_ns stuck_after = 200'000;
  static constexpr base::time_ns alarming_after =
      1'000'000;  // though nothing waits yet: a shorter block needs no rescue
  static constexpr base::time_ns stay_alert = 10'000'000'000;
  static constexpr base::time_ns back_off_after = 5'000'000;  // of idleness, while alert
  static constexpr base::time_ns rest_after = 100'000'000;
  static constexpr base::time_ns trim_every = 1'000'000'000;  // at most, of workers that are seldom seen to work

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
  // It does not look for longer than careful_nap.
  [[nodiscard]] bool dozes() const noexcept { return state_.load(base::relaxed) == dozing; }

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

  // One look at the workers.
  struct sight : pool_sample {
    bool all_advance =
        true;  // every worker that is in a task came to it since the last look, or has said that it may block
    bool some_give_way = false;
  };

  void run() noexcept;
  [[nodiscard]] bool look(base::time_ns now) noexcept;
  [[nodiscard]] bool look_at_sleepers(base::time_ns now) noexcept;
  void look_at_workers(base::time_ns now) noexcept;
  [[nodiscard]] base::time_ns next_nap(const sight& s, base::time_ns now) const noexcept;
  [[nodiscard]] sight sample(base::time_ns now) noexcept;
  [[nodiscard]] bool look_behind_stuck(pool_sample& s, base::time_ns now) noexcept;
  [[nodiscard]] note& note_of(const worker& w) noexcept;
  [[nodiscard]] static bool gets_on(const worker& w, const note& seen) noexcept;
  [[nodiscard]] static bool is_stuck(const worker& w, note& seen, base::time_ns now) noexcept;
  [[nodiscard]] bool classify(worker& w, pool_sample& s, base::time_ns now) noexcept;
  [[nodiscard]] static bool is_held(worker& w, note& seen, base::time_ns now) noexcept;
  [[nodiscard]] static bool computes(worker& w, note& seen, base::time_ns now) noexcept;
  [[nodiscard]] bool is_alert(base::time_ns now) const noexcept { return now < alert_until_; }
  [[nodiscard]] bool is_quiet(base::time_ns now) noexcept;
  [[nodiscard]] bool take_over(worker& from, bool only_slot) noexcept;
  void grow(std::size_t by, const pool_sample& s, base::time_ns now) noexcept;
  bool retire_sleepers(base::time_ns now, std::size_t blocked) noexcept;
  void nap() noexcept;
  void rest(base::time_ns until = base::never_ns) noexcept;

  // Of these a worker that leaves the idle set ends `resting`, and one that gives way with nobody to replace it also `dozing`.
  static constexpr std::uint32_t awake = 0, napping = 1, dozing = 2, resting = 3;

  scheduler& scheduler_;
  elasticity elasticity_;
  std::vector<note> notes_;
  ring<task::record> hands_;  // what it takes from a ring passes through here
  base::time_ns nap_ = shortest_nap;
  base::time_ns last_look_ = 0;
  base::time_ns alert_until_ = 0;
  base::time_ns idle_since_ = 0;  // 0: somebody works
  base::time_ns quiet_since_ = 0;  // that nobody has gone to sleep
  std::uint64_t sleeps_ = 0;  // of all workers, when last counted
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
