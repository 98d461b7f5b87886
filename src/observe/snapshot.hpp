// What the tasks of a runtime do, read from outside: the raw material of dumps, of why() and of the deadlock report.
//
// Observers only read. They take no lock, hold no task and change no word that the program uses, so a dump can neither
// hang in a process that hangs nor keep a task from continuing. In return a snapshot is not of one moment: every task,
// every object and every stack in it is of a moment of its own, and says whether it is certain.
//
// observe.S1. A wait that is_exact (kind, object, place, time, stack) belongs to one ticket: the word is loaded, all is
//     copied, and the word is loaded again with the same phase and ticket. The next note comes after the claim, which
//     changes the word.                                                    test observe/an_exact_stack_is_of_its_wait_*
// observe.S2. Nothing is read in place that can be gone: stacks and objects are copied by the kernel (memory.hpp).
//     Records and the description of stacks stay mapped while the runtime lives, and the walk keeps records from being
//     given back (task.P2).                                            test observe/a_dump_while_tasks_come_and_go_*
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <source_location>
#include <string>
#include <unordered_map>
#include <vector>

#include "observe/unwind.hpp"
#include "sched/scheduler.hpp"
#include "task/task.hpp"
#include <weft/detail/wait_kind.hpp>
#include <weft/task_status.hpp>

namespace weft::inline v1::observe {

using index = std::uint32_t;
inline constexpr index none = std::numeric_limits<index>::max();

// One thing that a task waits for: what a plain wait is about, or one arm of a select.
struct wait_view {
  const waits::wait_kind* kind = nullptr;
  const void* object = nullptr;
  index about = none;  // in snapshot::objects
};

struct task_view {
  const task::record* record = nullptr;  // to be compared, and read only as observers read
  std::uint64_t id = 0;
  std::string name = {};
  task_state state = task_state::ready;
  std::uint64_t word = 0;  // task::state_word: the phase, the ticket and the flags of the moment
  bool is_exact = false;  // observe.S1; false of a waiting task means that it moved at each of several looks
  bool is_fresh = false;  // it has not begun: it has no stack
  bool is_shielded = false;
  // Of a waiting task its wait, of another one the wait before. kind is nullptr if there was none.
  const waits::wait_kind* kind = nullptr;
  const void* object = nullptr;
  std::vector<wait_view> waits = {};  // of a waiting task: one, or the arms of its select
  std::source_location where = {};
  std::chrono::milliseconds age{0};
  index trace = none;  // in snapshot::traces; none if it has no frames or they could not be read
  index on_worker = none;  // of a running task: in snapshot::workers
  const void* scope = nullptr;  // the scope whose child it is (detail::family), nullptr if there is none
  const void* memory = nullptr;  // the context::stack that it has
  std::uintptr_t entry = 0;  // of a task that has not begun: the function of Weft that will call the user's
};

// An object that tasks wait for. Each object is read once in a snapshot, after the tasks.
struct object_view {
  const void* address = nullptr;
  waits::kind_number number = waits::kind_number::other;  // that of the first wait that was found
  std::string name = {};  // `channel "jobs"`, or with a letter and a number; `the end of #2 "alice"`
  std::string state = {};  // `0 of 16, open, 1 writer, 1 reader`; empty if there is nothing to say or it is gone
  std::string place = {};  // `on the stack of #1 "main"`, `in the variable bank`; empty if nothing is known
  // Exact edges: the task that holds the lock, or whose end is waited for, or that runs the body of a scope.
  index holder = none;  // in snapshot::tasks
  bool held_outside = false;  // a thread that is no task holds it
  bool is_held = false;  // somebody holds it, also if it is not known who
  std::uint32_t readers = 0, writers = 0;  // ends of a channel; holders of a shared_mutex
  std::vector<index> waiters = {};  // in snapshot::tasks
};

struct worker_view {
  int id = 0;
  int thread_id = 0;
  enum class doing : std::uint8_t { runs, searches, sleeps, leaves, gone } what = doing::searches;
  index task = none;  // the task it runs
  std::chrono::milliseconds age{0};  // how long it has been in this task, to about 10 ms
  char kernel_state =
      0;  // of its thread, if it runs a task (running.hpp); S or D although the task runs: a blocking call

  [[nodiscard]] bool sleeps_in_kernel() const noexcept { return kernel_state != 0 && kernel_state != 'R'; }
};

using stack_trace = std::vector<frame>;

struct snapshot {
  std::vector<task_view> tasks;  // by id
  std::vector<object_view> objects;  // by first appearance
  std::vector<stack_trace> traces;  // each different one once
  std::vector<worker_view> workers;  // without those that have ended
  std::size_t running = 0, runnable = 0, parked = 0;  // blocking tasks count as running
  std::chrono::microseconds took{0};

  [[nodiscard]] const stack_trace& frames_of(const task_view& t) const noexcept {
    static const stack_trace no_frames;
    return t.trace == none ? no_frames : traces[t.trace];
  }
  [[nodiscard]] index find(std::uint64_t id) const noexcept;  // none if there is no such task
  [[nodiscard]] index find(const task::record* r) const noexcept;
  std::unordered_map<const void*, index> by_record,
      by_memory;  // where the task of a record, or of a stack, is in `tasks`
};

struct snapshot_options {
  bool stacks = true;  // those of parked and runnable tasks
  bool running = true;  // also those of running tasks, whose threads are interrupted for it by a signal
  bool objects = true;
  // Names, places and states of objects. Without them only who holds a lock, or is joined, is read: cheap, and without a
  // look at the tables of the program's symbols. For the monitor, which looks at programs that do not hang.
  bool names = true;
};

// Any thread may call it, a task as well. The runtime must not end meanwhile. Throws std::bad_alloc.
[[nodiscard]] snapshot take_snapshot(sched::scheduler& of, snapshot_options how = {});

// Whether the task has not ended yet. Then its record and its stack were its own all the time since the snapshot.
[[nodiscard]] bool is_still_there(const task_view& t) noexcept;
// Whether the task has been in the wait that the snapshot saw until now. A fence before it keeps it behind what was
// looked at meanwhile.
[[nodiscard]] bool still_waits(const task_view& t) noexcept;

// `#2 "alice"`, or `#2`
[[nodiscard]] std::string label_of(const task_view& t);
// `#2 "alice"  waits 0.2 s for mutex "accounts"   bank.cpp:41 in transfer()`
[[nodiscard]] std::string text_of(const snapshot& in, const task_view& t);
// What it waits for, without the task: `for mutex "accounts"`, `to receive from channel "jobs" (0 of 4, open)`.
enum class detail_level : std::uint8_t { names, states };
[[nodiscard]] std::string wait_text(const snapshot& in, const task_view& t, detail_level d);
// `bank.cpp:41 in transfer()`, from the place that was noted at the wait.
[[nodiscard]] std::string place_text(const std::source_location& where);
[[nodiscard]] std::string duration_text(std::chrono::milliseconds age);  // `12 ms`, `0.2 s`, `40 s`, `3 min`

}  // namespace weft::inline v1::observe
