// The queues that belong to no worker. Everybody puts tasks there, and everybody takes tasks from there.
//
// - global: tasks that overflow a worker's own queues, that are taken from behind a stuck worker, or that a leaving
//   worker leaves. A worker takes a share at every tick, and when its own queues are empty.
// - urgent: tasks with priority::urgent. A worker asks for one before each dispatch (run_queues.hpp), so the size of
//   this queue is read on the hot path.
// - background: tasks with priority::background. A worker takes one when it finds nothing else, and at one tick in
//   sixteen.
//
// Whoever pushes to one of them notifies a sleeper afterwards (notifier.hpp, e1 to e3 of idle_set.hpp).
#pragma once

#include <cstddef>

#include "sched/global_queue.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

struct shared_queues {
  global_queue<task::record> global;
  global_queue<task::record> urgent;
  global_queue<task::record> background;

  // Zero means that none of the three holds a task whose push happened before the read (sched.G2).
  [[nodiscard]] std::size_t size() const noexcept { return global.size() + urgent.size() + background.size(); }
};

}  // namespace weft::inline v1::sched
