// The monitor: a thread that looks after workers that do not get on, and after the pool when all workers sleep.
//
// Tasks are often queued without waking anybody (the LIFO slot, a lone fresh task, a new timer), because their worker
// will come to them in a moment. The monitor sees when it does not. It then takes what lies behind the stuck worker to
// the global queue, wakes a sleeper, and lets the pool grow if nobody sleeps. When all workers have slept for a while,
// it gives memory back, sends away workers beyond the pool's size, and rests. From then on the process makes no system
// call.
//
// A look has three parts. observe() only reads: the counters and queues of the workers and, where that decides
// something, what the system says of a thread. decide() (monitor_policy.hpp) makes a plan of it, and asks nobody. act()
// carries the plan out. The numbers are in monitor_limits.hpp, each with its reason.
//
// A look costs a timer and two switches of threads, so the monitor looks seldom while nobody is stuck. Each nap is
// twice as long as the one before, up to longest_nap, or up to longest_idle_nap while all sleep. The monitor is *alert*
// for ten seconds after a task has held its worker while others waited, or has held it for a millisecond: whoever
// blocks once blocks again. While alert it naps for alert_nap at most.
//
// sched.M1. While a worker is awake, the monitor looks again after the nap it is in, or it is being woken. Only a rest
//     is longer than a nap. A worker that leaves the idle set has a fence and then reads `state_`. A monitor that wants
//     to rest stores `state_`, has a fence and then counts the sleepers.
//     model/monitor, test sched/elastic_*
//     The monitor does not rest either while a sleeper keeps memory for its next task: a worker that has worked says so
//     before its fence.
//     model/monitor, test sched/cache_*
// sched.M2. Naps grow beyond careful_nap only if every worker that is in a task came to it since the last look. While
//     one is stuck, naps are the shortest. An idle worker proves nothing: while something is queued or due behind a
//     busy one, the next look comes within careful_nap. While the monitor is alert, and while all workers are in tasks
//     that may block, naps are shorter still. So it sees in time what lies in a stuck worker's slot, ring, inbox or
//     fresh queue, and every timer that is due. From a worker that the system has put aside it takes only the slot,
//     because that worker continues by itself.
//     model/monitor, test sched/monitor_*, sched/elastic_*
// sched.M3. Only the monitor makes the pool larger or smaller (until the scheduler stops it), so the set of workers
//     needs no lock. By code: nobody else calls worker_set::add() and retire(), except tests.
//
// Where work can be stranded, and what ends that:
// - Behind a task that computes or blocks without having said so, when nobody has been stuck lately. First the current
//   nap ends. That look sees the worker in another task than before, but not yet that it stays there. The next look
//   does. It comes after careful_nap if a worker is idle, after two shortest naps if all slept at the look before, and
//   otherwise after longest_nap. That makes 5 to 10 ms, and 10.5 at most.
// - The same while the monitor is alert: two naps of at most alert_nap. With the start of a thread (0.1 ms) that is a
//   millisecond.
// - Behind a task that has said that it may block. Its worker gives away what it has at once, and others put nothing
//   into its inbox (placement::choose_inbox()). While all workers are in such tasks, only the monitor sees timers and
//   what comes from outside. The last of these workers ends the monitor's doze (placement::gave_way()), and from then
//   on its naps are the shortest. That worker has no fence: if it misses a monitor that lies down at this moment,
//   longest_nap is the bound.
// - A timer. One that was set before the watcher went to sleep has the watcher (watch.hpp), and one that is due soon
//   when the watcher leaves for work has the next one. All others, set by a worker that is stuck now or left by a
//   watcher that is stuck now, are like a task behind that worker.
// - An event, behind the sleeper that left the driver with another one and is stuck now (poller.hpp). A worker that is
//   awake polls, at its tick and when it has run out of work. If nobody is, the look after the current nap sees that
//   nobody has polled, and wakes a sleeper. That nap is at most careful_nap if the look before saw that events depend on
//   a busy worker beside an idle one, longest_nap if it saw somebody in the driver, and longest_idle_nap if all slept.
//   If there is no sleeper, a worker is added once all are found stuck, which takes one look more. While the monitor is
//   alert all of this is a millisecond. So one block in ten seconds can delay events by 10.5 ms, and the others cannot.
//   Rejected: a look each millisecond wherever a task waits for an event. It would take 2 % of a processor from servers
//   that nobody ever blocks (docs/performance.md).
// - In the inbox of a worker that has died. The worker looks once more itself (worker::die()); after that the current
//   nap is the bound.
// - A task without a stack. It continues when a stack is freed. If a stack is freed without notice, the current nap is
//   the bound, and from then on alert naps are.
// - While the monitor rests. All workers sleep then, and nothing is queued (idle_set.hpp). A worker that leaves the
//   idle set wakes the monitor (sched.M1).
// - While the monitor itself gets no processor. Nothing bounds that. A look that comes 100 ms late takes nobody for
//   stuck; the next one does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/thread.hpp"
#include "sched/complaints.hpp"
#include "sched/elasticity.hpp"
#include "sched/monitor_policy.hpp"
#include "sched/os_thread.hpp"
#include "sched/ring.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class scheduler;
class worker;

class monitor {
 public:
  explicit monitor(scheduler& s);

  void start();  // throws std::system_error
  void stop() noexcept;  // called when the scheduler is stopping; joins the thread

  // Called by a worker that has left the idle set (sched.M1).
  void ensure_awake() noexcept {
    // Mirror: the fence in rest(). Either this sees that the monitor rests, or the monitor sees that this worker is
    // awake.
    base::step<"monitor.leave.fence">([] { base::fence_seq_cst(); });
    if (base::check<"monitor.wake">(state_.load(base::relaxed) == resting)) [[unlikely]]
      hurry();
  }
  // Makes the monitor look at once.
  void hurry() noexcept;
  // Whether the monitor is in a nap that is longer than careful_nap.
  [[nodiscard]] bool dozes() const noexcept { return state_.load(base::relaxed) == dozing; }

  [[nodiscard]] const elasticity& growth() const noexcept { return policy_.growth(); }

 private:
  friend struct test_seam;

  // What the monitor remembers of a worker from look to look.
  struct note {
    std::uint64_t dispatched = 0;
    base::time_ns since = 0;  // when it was first seen in its present task
    thread_state thread = thread_state::runs;  // the kernel's last answer since then
    base::time_ns asked_at = 0;
    base::time_ns processor_time = 0;  // at timed_at, when the worker was first found stuck
    base::time_ns timed_at = 0;
    std::uint64_t sleeps = 0;
    base::time_ns asleep_since = 0;
  };
  // What the monitor does after a look.
  struct respite {
    plan::pause how;
    base::time_ns length;
  };

  void run() noexcept;
  [[nodiscard]] respite look(base::time_ns now) noexcept;
  void nap(base::time_ns length) noexcept;
  void rest(base::time_ns until = base::never_ns) noexcept;

  [[nodiscard]] bool someone_works() const noexcept;

  // --- observe: nothing but look_ and notes_ changes ---
  void observe(base::time_ns now) noexcept;
  void observe_sleep(const worker& w, note& seen, worker_look& l) const noexcept;
  void observe_work(worker& w, note& seen, worker_look& l) const noexcept;
  void observe_queues() noexcept;
  void observe_caches() noexcept;
  void ask_system(worker& w, note& seen, question what, worker_look& answer) const noexcept;
  [[nodiscard]] static bool gets_on(const worker& w, const note& seen) noexcept;
  [[nodiscard]] static bool is_held(worker& w, note& seen, base::time_ns now) noexcept;
  [[nodiscard]] static bool computes(worker& w, note& seen, base::time_ns now) noexcept;

  // --- act ---
  [[nodiscard]] respite act(const plan& p, base::time_ns now) noexcept;
  [[nodiscard]] bool take_over(const plan& p) noexcept;
  void grow(const plan& p, base::time_ns now) noexcept;
  void retire(int id) noexcept;

  // A worker that leaves the idle set ends `resting`. One that gives way while nobody can replace it also ends
  // `dozing`.
  static constexpr std::uint32_t awake = 0, napping = 1, dozing = 2, resting = 3;

  scheduler& scheduler_;
  monitor_policy policy_;
  std::vector<note> notes_;
  pool_look look_;
  ring<task::record> hands_;  // tasks that are taken from a worker's ring pass through here
  base::time_ns last_look_ = 0;
  base::time_ns cycles_looked_at_ = 0;
  std::uint64_t told_cycles_ = 0;  // of look_for_cycles()
  bool told_limit_ = false;
  complaints complaints_;
  unsigned long usual_slack_ = 0;
  base::thread thread_;
  alignas(base::cache_line) base::atomic<std::uint32_t> state_{awake};
};

}  // namespace weft::inline v1::sched
