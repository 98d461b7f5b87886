// What a worker does when it has nothing to run: it searches, looks around for a while if that has paid lately, and
// sleeps.
//
// This happens on the worker's own stack, with no task running. One round of find():
//   1. counts the worker as a searcher, if not too many search already (sched.I2); not if it comes from a sleep in the
//   driver with tasks;
//   2. asks its own queues once more and, if nothing is there, polls the driver, steals from others for a while, and
//   fires timers meanwhile;
//   3. if it has found a task: stops searching, and hands on if this was the last searcher (s1 to s3 of idle_set.hpp);
//   4. if it has not: enters the idle set, looks at every queue once more (w1 to w4), and sleeps, perhaps as the
//   watcher (watch.hpp) or in the driver (poller.hpp), until somebody chooses this worker, a timer is due, an event has
//   come, or the worker is to end.
//
// This is the worker's side of sched.I1 and of sched.K4.
#pragma once

#include <utility>

#include "base/atomic.hpp"
#include "base/random.hpp"
#include "sched/bed.hpp"
#include "sched/idle_gaps.hpp"
#include "sched/run_queues.hpp"
#include "sched/test_seam.hpp"
#include "sched/tick.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class scheduler;
class worker;

class work_search {
 public:
  // The parts of the worker that the search uses besides the worker itself.
  struct parts {
    run_queues& queues;
    tick& ticks;
    bed& sleeps_in;
    base::random& random;
  };
  work_search(worker& of, scheduler& s, const parts& p) noexcept : worker_(of), scheduler_(s), its_(p) {}
  work_search(const work_search&) = delete;
  work_search& operator=(const work_search&) = delete;

  // Returns a task to run. nullptr: the worker is to leave, or the runtime ends. `searching` says that the worker is
  // counted as a searcher already.
  [[nodiscard]] record* find(bool searching = false) noexcept;
  // Steals one task from another worker, alive or dead. More tasks may go to the worker's own queues.
  [[nodiscard]] record* steal() noexcept;

 private:
  friend struct test_seam;

  // Says whether all that it has brought to the worker's own queues are few events.
  [[nodiscard]] record* look_around(bool& few_events) noexcept;
  void end(bool has_few_events = false) noexcept;
  // Where work can come from now.
  [[nodiscard]] idle_gaps::source source() const noexcept;
  [[nodiscard]] bool work_from_others() const noexcept;
  [[nodiscard]] bool work_within_reach() const noexcept;
  [[nodiscard]] bool work_elsewhere() const noexcept;
  // Whether a waker has counted the worker as searching, and whether it came back by itself with tasks that the driver
  // has woken.
  using awake = std::pair<bool, bool>;
  [[nodiscard]] awake sleep(bool was_searching) noexcept;
  void lie_down(base::time_ns deadline, chain<record>& woken) noexcept;

  worker& worker_;
  scheduler& scheduler_;
  const parts its_;
  idle_gaps gaps_;
};

}  // namespace weft::inline v1::sched
