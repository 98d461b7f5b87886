// The task record: everything the runtime knows of one task, and its closure inline.
//
// T1. Records live in slabs until the runtime goes; a stale pointer to one always meets a state_word. test task/recycle_*
// T2. Counted: the scheduler holds one reference until the task has ended, the handle one, each task_ref one. Whoever
//     drops the last frees the record, once.                                              test task/references_*
// T3. `run_state` tells RUNNABLE from RUNNING. Only the one who holds the task (queue, worker) writes it, so it needs no
//     compare-exchange; the word says `active` for both (docs/decisions/0003-run-state-beside-the-word.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "base/lock.hpp"
#include "task/state.hpp"
#include <weft/detail/task_core.hpp>

namespace weft::inline v1::context {
struct stack;
}
namespace weft::inline v1::sched {
class lane;
class scheduler;
}  // namespace weft::inline v1::sched

namespace weft::inline v1::waits {
struct node;
}

namespace weft::inline v1::task {

// How the outcome of a wait is told; written by the claim's winner before it enqueues.
// `none` asks the waiter to look again.
enum class wake_reason : std::uint8_t { none, data, closed, timeout, cancelled, signal };
[[nodiscard]] constexpr std::uint64_t wake_value(wake_reason why, std::uint32_t arm) noexcept {
  return static_cast<std::uint64_t>(why) | static_cast<std::uint64_t>(arm) << 8;
}
[[nodiscard]] constexpr wake_reason reason_of(std::uint64_t value) noexcept {
  return static_cast<wake_reason>(value & 0xff);
}
[[nodiscard]] constexpr std::uint32_t arm_of(std::uint64_t value) noexcept {
  return static_cast<std::uint32_t>(value >> 8);
}

// Something that can be parked and woken: a task, or an outside thread. It has the word, and knows how to go on. Or an alarm
// (sched/alarm.hpp), which a timer calls.
struct parkable {
  enum class kind : std::uint8_t { fiber, thread, alarm };

  parkable(kind k, phase p, ticket first) noexcept : word(p, first), what(k) {}
  parkable(const parkable&) = delete;
  parkable& operator=(const parkable&) = delete;

  state_word word;
  base::plain<std::uint64_t> wake_value{0};  // reason in the low byte, arm index above; written by the winner
  const kind what;
};

// Exceptions in flight belong to the task, not the thread (mirrors __cxa_eh_globals of the Itanium ABI).
struct exception_state {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

// Where an active task is: in no queue (just spawned, or parked and perhaps claimed), in one, or on a worker.
enum class run_state : std::uint8_t { none, runnable, running };

// Of record::extras.
using extra = std::uint16_t;
inline constexpr extra has_heap_body = 1;
inline constexpr extra has_locals = 2;
inline constexpr extra has_kin = 4;  // a child of a scope: its body begins with a detail::kin
inline constexpr extra on_lane = 8;  // `dispatcher` is set
inline constexpr extra is_urgent = 16;
inline constexpr extra is_background = 32;
inline constexpr extra starts_at_once = 64;  // in place of its spawner
inline constexpr extra waits_for_several = 128;  // set by a select around its park, for whoever wakes it
inline constexpr extra has_exceptions = 256;  // in flight, and saved in `exceptions` while it does not run
inline constexpr extra is_routed = on_lane | is_urgent | is_background;  // not simply to the worker's own queues

// Checked builds count the locks that a task holds, and end the process if a task ends with one (sync/held_locks.hpp). The explorer
// would only have more to explore.
#if defined(WEFT_MODEL)
inline constexpr bool counts_locks = false;
#else
inline constexpr bool counts_locks = base::checked_build;
#endif

inline constexpr std::size_t record_size = 384;
using detail::name_capacity;
inline constexpr std::size_t name_words = name_capacity / sizeof(std::uint64_t);

// Ordered by use: a task that runs to its end without parking touches three cache lines, which matters when it was stolen; one
// that parks and is woken touches one, or with the entry of its wait two, which matters when there are thousands of them.
struct alignas(base::cache_line) record : parkable, detail::task_head {
  explicit record(ticket first) noexcept : parkable(kind::fiber, phase::init, first) {}

  // Where the switch stores it; nobody else writes it then.
  [[nodiscard]] void** sp_address() noexcept { return reinterpret_cast<void**>(&sp); }
  // It has frames on a stack of its own; nobody may run it on another.
  [[nodiscard]] bool is_started() const noexcept { return sp.load(base::relaxed) != nullptr; }

  // --- first line: what parking, waking and switching touch, but for waits_on; the first bytes lie in the padding of parkable ---
  base::atomic<run_state> running{run_state::none};
  extra extras = 0;  // what is out of the ordinary; mostly nothing
  std::uint8_t shields = 0;
  std::uint16_t locks = 0;  // that it holds, if they are counted
  base::raw_atomic<void*> sp{nullptr};  // saved context while not running; others read it as a hint
  base::plain<record*> next{nullptr};  // link of whatever queue holds it
  sched::scheduler* owner = nullptr;  // the runtime it belongs to
  // Together with waits_on: written by the task itself at every wait and kept until the next, read by anybody at any time, for dumps,
  // and by the task when it looks again (chan/rendezvous.cpp).
  base::atomic<const char*> waits_for{nullptr};  // "send", "join"
  base::atomic<std::source_location> waits_at{std::source_location()};
  // --- second line: the beginning and the end ---
  context::stack* stack = nullptr;  // attached at first run
  const detail::operations* ops = nullptr;  // what to call on the typed body
  void* body = nullptr;  // closure and result: inline below, or on the heap
  waits::node* join_list = nullptr;  // under join_lock
  base::lock join_lock;
  base::atomic<std::uint32_t> references{0};
  std::uint64_t id = 0;
  std::uint32_t stack_size = 0;  // 0: the default class
  base::atomic<std::uint32_t> name_version{0};  // name.hpp
  std::uint8_t body_alignment_log2 = 0;  // of a heap body
  // --- third line on ---
  static constexpr std::size_t inline_capacity = 104;
  alignas(16) std::byte inline_body[inline_capacity];
  detail::local_binding* locals = nullptr;  // innermost task-local value
  void* scopes = nullptr;  // innermost scope that the task has open (scope/core.hpp)
  sched::lane* dispatcher = nullptr;  // with on_lane
  // --- fifth line ---
  // For what the task waits with, the timer of sleep_until or the entry of a rendezvous: it has one such wait at a time. Here and
  // not in its frame: whoever fires a thousand timers, or sends along a thousand channels, would otherwise touch a thousand stacks,
  // a TLB miss each. One line, not the ends of two, and with it what else a wait writes.
  static constexpr std::size_t wait_room_size = base::cache_line - sizeof(void*);
  alignas(base::cache_line) std::byte wait_room[wait_room_size];
  base::atomic<void*> waits_on{nullptr};  // the channel, the lock
  // --- cold ---
  exception_state exceptions;  // with has_exceptions
  base::atomic<std::uint64_t> name[name_words] = {};  // name.hpp
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"  // bases without data before the members: it means what it says
static_assert(offsetof(record, running) < offsetof(record, sp) && offsetof(record, sp) == 24 &&
              offsetof(record, waits_at) == 56 && offsetof(record, stack) == 64 &&
              offsetof(record, inline_body) == 128 && offsetof(record, wait_room) == 256);
#pragma GCC diagnostic pop
static_assert(sizeof(record) == record_size, "records are sized for a million parked tasks; see docs/performance.md");

// What headers know only as a head.
[[nodiscard]] inline record* as_record(detail::task_head* t) noexcept { return static_cast<record*>(t); }
[[nodiscard]] inline const record* as_record(const detail::task_head* t) noexcept {
  return static_cast<const record*>(t);
}

// INIT, RUNNABLE, RUNNING, PARKING, PARKED, DONE or CANCELLED.
[[nodiscard]] const char* state_name(const record& t) noexcept;

// Both abort with the names of the two states unless the step is legal.
void expect_queueable(const record& t, run_state from) noexcept;  // just spawned, just claimed, or yielding -> RUNNABLE
void expect_runnable(const record& t, const char* to) noexcept;  // RUNNABLE -> RUNNING

}  // namespace weft::inline v1::task
