// What the monitor decides: it makes a plan from one look at the workers and from what it remembers of earlier looks.
//
// Nothing here asks the system, the scheduler or a worker. The look is a value and the plan is a value (test
// sched/monitor_policy_* has tables of them). monitor.cpp makes the look and carries the plan out. monitor.hpp says why
// the monitor decides as it does, and where work could be stranded otherwise.
//
// nap_beside_workers() decides what sched.M2 promises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/atomic.hpp"
#include "sched/elasticity.hpp"
#include "sched/monitor_limits.hpp"

namespace weft::inline v1::sched {

// ---- what a look sees ----------------------------------------------------------------------------------------------

struct worker_look {
  bool is_dead = false;
  bool gives_way = false;  // its task has said that it may block
  bool has_visible_work = false;  // tasks in queues where thieves find them
  bool has_slot = false;  // a task in the LIFO slot, where thieves do not look
  std::int64_t queued = 0;  // the number of tasks in all its queues
  // For how long the worker has been seen in its present task. 0: it came to that task since the last look, or it is in
  // none.
  base::time_ns same_task_for = 0;
  // Seen only in a pool that can grow. For how long the worker has been seen in its present sleep; below 0 if it is
  // awake, or lay down since the last look. And whether it was told to leave.
  base::time_ns asleep_for = -1;
  bool is_leaving = false;
  // What the system says of its thread, if it was asked (question_about()). If it was not, a stuck worker counts as
  // held.
  bool is_held = true;  // its task holds it; false: the system has put the thread aside
  bool sleeps_in_kernel = false;

  [[nodiscard]] bool is_stuck() const noexcept { return same_task_for >= monitor_limits::stuck_after; }
};

struct pool_look {
  base::time_ns now = 0;
  bool comes_late = false;  // the look comes so late that it says nothing about workers
  bool somebody_starves = false;  // some task has no stack
  bool starving_is_due = false;
  bool someone_works = true;
  // Seen only while somebody works:
  std::size_t idle = 0;  // workers that sleep or search
  std::size_t shared = 0;  // tasks in no worker's queues; starving tasks that are due count too
  bool timer_is_overdue = false;
  bool poll_is_overdue = false;  // somebody waits for the driver, and nobody has polled it for a while
  bool events_are_wanted = false;  // somebody waits for the driver
  bool events_wait_for_workers = false;  // and no sleeper is in it
  // Seen only while all sleep:
  bool caches_are_kept = false;  // some sleeper keeps something
  bool caches_are_asked_for = false;
  std::uint64_t sleeps = 0;  // how often all workers together have gone to sleep
  std::vector<worker_look> workers;

  // Whether something waits for a worker.
  [[nodiscard]] bool work_waits() const noexcept;
};

// What the look should ask the system about a worker's thread, after it has seen everything else. Questions are
// expensive, so they are asked only where the answer decides something: whether the pool grows, or whether the monitor
// becomes alert.
enum class question : std::uint8_t {
  none,
  is_it_held,  // does its task hold it, in the kernel or on a processor?
  does_it_compute  // is the thread on a processor? Only if it is not: is it held?
};
[[nodiscard]] question question_about(const worker_look& w, const pool_look& p, bool work_waits) noexcept;

// ---- what is to be done --------------------------------------------------------------------------------------------

enum class taken_over : std::uint8_t { nothing, slot, all };

struct plan {
  struct for_worker {
    bool is_stuck = false;  // the worker is to be marked as stuck, so that nobody puts anything into its inbox
    taken_over take = taken_over::nothing;  // what is taken from behind it to the global queue
  };
  enum class pause : std::uint8_t {
    nap,  // sleep for `nap`
    rest_for_a_while,  // sleep for `nap`, or until a worker leaves the idle set
    rest  // sleep until a worker leaves the idle set
  };
  static constexpr int nobody = -1;

  std::vector<for_worker> workers;
  bool retry_starved = false;
  bool notify = false;  // wake a sleeper even if nothing is taken over
  bool wake_for_those_outside = false;  // wake a sleeper to look at timers and the driver
  std::size_t more_workers = 0;
  int retired = nobody;
  bool stop_asking_for_caches = false;
  bool ask_for_caches = false;
  bool trim = false;
  bool look_for_standstill = false;  // look whether the user must be told of a standstill (complaints.hpp)
  pause then = pause::nap;
  base::time_ns nap = monitor_limits::shortest_nap;
  bool rest_if_trimmed = false;  // rest instead of `then`, if the trim succeeds
  pool_sample pool;  // the sample of the pool, for reports to the user
};

// ---- the decision --------------------------------------------------------------------------------------------------

class monitor_policy {
 public:
  struct settings {
    std::size_t workers;  // the pool's size
    std::size_t most;  // the size to which it may grow
    bool stealing = true;
    base::time_ns keep_alive = 0;  // how long workers beyond the pool's size sleep before they leave
    [[nodiscard]] bool can_grow() const noexcept { return most > workers; }
  };
  explicit monitor_policy(const settings& of);

  // The plan is valid until the next call.
  [[nodiscard]] const plan& decide(const pool_look& p) noexcept;

  // --- what came of the last plan -----------------------------------------------------------------------------------
  // So many workers were added. `refused` says that no more could be had although there was room.
  void added(std::size_t workers, bool refused, base::time_ns now) noexcept;
  // Memory was given back. `rests` says that the monitor rests now.
  void trimmed(base::time_ns now, bool rests) noexcept;

  [[nodiscard]] const elasticity& growth() const noexcept { return elasticity_; }

 private:
  friend struct test_seam;

  // Counts that the decision about busy workers needs. They are complete only once all workers have been looked at.
  struct sight : pool_sample {
    // Every worker that is in a task came to it since the last look, or its task has said that it may block.
    bool all_advance = true;
    bool some_give_way = false;
    bool some_stuck = false;
    bool some_wait = false;  // there are tasks in a worker's queues
  };

  void decide_beside_workers(const pool_look& p) noexcept;
  void decide_while_all_sleep(const pool_look& p) noexcept;
  [[nodiscard]] sight count(const pool_look& p) const noexcept;
  [[nodiscard]] bool nobody_comes(const sight& s) const noexcept;
  void judge(const pool_look& p, sight& s) noexcept;
  [[nodiscard]] base::time_ns nap_beside_workers(const pool_look& p, const sight& s) const noexcept;
  [[nodiscard]] bool is_quiet(const pool_look& p) noexcept;
  [[nodiscard]] bool choose_retired(const pool_look& p, std::size_t blocked) noexcept;
  [[nodiscard]] bool is_alert(base::time_ns now) const noexcept { return now < alert_until_; }

  const settings of_;
  elasticity elasticity_;
  plan plan_;
  // --- what it remembers ---
  base::time_ns nap_ = monitor_limits::shortest_nap;
  base::time_ns alert_until_ = 0;
  base::time_ns idle_since_ = 0;  // since when all sleep; 0: somebody works
  base::time_ns quiet_since_ = 0;  // since when nobody has gone to sleep
  std::uint64_t sleeps_ = 0;  // how often all workers together had gone to sleep, when last counted
  base::time_ns trimmed_at_ = 0;
  base::time_ns no_growth_before_ = 0;
  std::size_t members_;  // workers that have not been told to leave; there may be more live ones
};

}  // namespace weft::inline v1::sched
