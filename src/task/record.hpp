// The base of every task: what a queue holds, what a waker claims, and what every kind of task has.
//
// A task is a record and, on top of it, what its kind needs to continue. A fiber (fiber.hpp) has a stack. A coroutine
// will have a frame instead, in far fewer bytes. So the base holds only what is accessed at every switch and wait, and
// at the beginning and the end. The rest of what every task has is reached through functions of the record, because
// each kind keeps it in another place.
//
// task.T1. Records live in slabs until the runtime ends, so a stale pointer to one always meets a state_word.
//                                                                         test wait/ticket_*, task/goes_with_the_last_*
// task.T2. References are counted: the scheduler holds one until the task has ended, the handle holds one, and each
//     task_ref holds one. Whoever drops the last one frees the record, once.                     test task/references_*
// task.T3. `run_state` tells RUNNABLE from RUNNING. Only the holder of the task (a queue, a worker) writes it, so it
//     needs no compare-exchange; the word says `active` for both (docs/decisions/0003-run-state-beside-the-word.md).
//               test sched/every_state_is_seen_*, sched/a_task_that_is_not_runnable_*, sched/a_task_that_runs_is_queued
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "task/state.hpp"
#include <weft/detail/task_core.hpp>

namespace weft::inline v1::sched {
class lane;
class scheduler;
}  // namespace weft::inline v1::sched

namespace weft::inline v1::waits {
struct node;
struct wait_kind;
}  // namespace weft::inline v1::waits

namespace weft::inline v1::task {

// The outcome of a wait. The winner of the claim writes it before it enqueues the task.
enum class wake_reason : std::uint8_t {
  none,  // look again
  data,  // the operation is complete
  cancelled,
};
// The reason, and which arm of a select it is about.
inline constexpr std::uint32_t most_arms = std::uint32_t{1} << 24;
[[nodiscard]] constexpr std::uint32_t wake_value(wake_reason why, std::uint32_t arm) noexcept {
  return static_cast<std::uint32_t>(why) | arm << 8;
}
[[nodiscard]] constexpr wake_reason reason_of(std::uint32_t value) noexcept {
  return static_cast<wake_reason>(value & 0xff);
}
[[nodiscard]] constexpr std::uint32_t arm_of(std::uint32_t value) noexcept { return value >> 8; }

// Something that can be parked and woken: a task, or an outside thread. It has the word, and knows how to continue. It
// can also be an alarm (sched/alarm.hpp), which a timer calls.
struct parkable {
  enum class kind : std::uint8_t { fiber, thread, alarm };

  parkable(kind k, phase p, ticket first) noexcept : word(p, first), what(k) {}
  parkable(const parkable&) = delete;
  parkable& operator=(const parkable&) = delete;

  state_word word;
  base::plain<std::uint32_t> wake_value{0};  // reason in the low byte, arm index above; written by the winner
  // When the last wait began, in milliseconds of the steady clock; up to 10 ms old (worker::coarse_ms). For dumps.
  base::raw_atomic<std::uint32_t> since_ms{0};
  const kind what;
};

// Where an active task is: in no queue (just spawned, or parked and perhaps claimed), in one, or on a worker.
enum class run_state : std::uint8_t { none, runnable, running };

// The bits of record::extras.
using extra = std::uint16_t;
inline constexpr extra has_heap_body = 1;
inline constexpr extra has_locals = 2;
inline constexpr extra has_kin = 4;  // a child of a scope: its body begins with a detail::kin
inline constexpr extra on_lane = 8;  // `dispatcher` is set
inline constexpr extra is_urgent = 16;
inline constexpr extra is_background = 32;
inline constexpr extra starts_at_once = 64;  // it starts in place of its spawner
inline constexpr extra waits_for_several = 128;  // a select sets it around its park, for its waker
inline constexpr extra has_exceptions = 256;  // its exceptions in flight are saved while it does not run
inline constexpr extra is_routed = on_lane | is_urgent | is_background;  // it does not go to the worker's own queues

// Checked builds count the locks that a task holds, and end the process if a task ends while it holds one
// (sync/held_locks.hpp). The explorer does not count them; it would only have more to explore.
#if defined(WEFT_MODEL)
inline constexpr bool counts_locks = false;
#else
inline constexpr bool counts_locks = base::checked_build;
#endif

using detail::name_capacity;
inline constexpr std::size_t name_words = name_capacity / sizeof(std::uint64_t);

// The members are ordered by use: the first cache line is what parking, waking and switching access, except what
// waits_on() says.
struct record : parkable, detail::task_head {
  // True if the task has no place to continue at. It can then start on whatever stack is at hand, and on that of a task
  // that has just ended. A running task may return true as well, so the question is only for tasks that a queue holds.
  [[nodiscard]] bool is_fresh() const noexcept { return resume_point.load(base::relaxed) == nullptr; }
  // The memory that the task accesses first when it continues, to be prefetched; nullptr if it is fresh. A hint: by the
  // time it is used, the task may have run on another worker.
  [[nodiscard]] const void* first_accessed() const noexcept { return resume_point.load(base::relaxed); }

  // --- first line; it begins in the padding of parkable ---
  base::atomic<run_state> running{run_state::none};
  extra extras = 0;  // what is unusual about the task; mostly nothing
  std::uint8_t shields = 0;
  std::uint16_t locks = 0;  // how many locks it holds, if they are counted

 protected:
  // Where the task continues, while it does not run. Only its kind knows what that is: for a fiber it is the saved
  // stack pointer.
  base::raw_atomic<void*> resume_point{nullptr};

 public:
  base::plain<record*> next{nullptr};  // the link of the queue that holds it
  sched::scheduler* owner = nullptr;  // the runtime it belongs to
  // Together with waits_on() and since_ms: written by the task itself at every wait and kept until the next; read for
  // logs and dumps, by anybody at any time, and never as state.
  base::atomic<const waits::wait_kind*> waits_for{nullptr};
  base::atomic<std::source_location> waits_at{std::source_location()};
  // --- second line: the beginning and the end; what the kind needs then follows in the same line ---
  const detail::operations* ops = nullptr;  // what to call on the typed body
  void* body = nullptr;  // closure and result
  waits::node* join_list = nullptr;  // protected by join_lock
  base::lock join_lock;
  base::atomic<std::uint32_t> references{0};
  base::raw_atomic<std::uint64_t> id{0};  // written by the spawner; a walk over all records may read it at any time
  base::atomic<std::uint32_t> name_version{0};  // name.hpp

  // --- what every task has, in the place where its kind keeps it ---
  [[nodiscard]] base::atomic<void*>& waits_on() noexcept;  // the channel, the lock, the arms of a select
  [[nodiscard]] const base::atomic<void*>& waits_on() const noexcept;
  // Memory for the object that the task waits with: the timer of sleep_until or the entry of a rendezvous. A task has
  // one such wait at a time.
  static constexpr std::size_t wait_room_size = base::cache_line - sizeof(void*);
  [[nodiscard]] std::byte* wait_room() noexcept;
  [[nodiscard]] detail::local_binding*& locals() noexcept;  // the innermost task-local binding
  [[nodiscard]] detail::local_binding* locals() const noexcept;
  [[nodiscard]] void*& scopes() noexcept;  // the innermost scope that the task has open (scope/core.hpp)
  [[nodiscard]] sched::lane*& dispatcher() noexcept;  // valid if on_lane is set
  [[nodiscard]] base::atomic<std::uint64_t> (&name() noexcept)[name_words];  // name.hpp
  [[nodiscard]] const base::atomic<std::uint64_t> (&name() const noexcept)[name_words];

 protected:
  record(kind k, ticket first) noexcept : parkable(k, phase::init, first) {}
  ~record() = default;  // its kind destroys it
};

// The record of what the public headers know only as a head.
[[nodiscard]] inline record* as_record(detail::task_head* t) noexcept { return static_cast<record*>(t); }
[[nodiscard]] inline const record* as_record(const detail::task_head* t) noexcept {
  return static_cast<const record*>(t);
}

// INIT, RUNNABLE, RUNNING, PARKING, PARKED, DONE or CANCELLED.
[[nodiscard]] const char* state_name(const record& t) noexcept;

// Both abort, with the names of the two states, unless the transition is legal.
void expect_queueable(const record& t, run_state from) noexcept;  // just spawned, just claimed, or yielding -> RUNNABLE
void expect_runnable(const record& t, const char* to) noexcept;  // RUNNABLE -> RUNNING

}  // namespace weft::inline v1::task
