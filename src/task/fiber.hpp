// The kind of task that has a stack: any function of the user, which suspends wherever it calls something that waits.
//
// The stack is attached when the fiber first runs, and it leaves the fiber when the fiber has ended. Only this file,
// sched/fiber_switch.hpp and sched/stack_supply.hpp access `sp` and `stack`. Everybody else asks the record: is_fresh()
// and first_accessed(). tools/check_layers.py refuses anything else.
//
// A fiber keeps everything that a task can have inside its record, also what most tasks never use: beside a stack those
// bytes do not count, and no spawn allocates twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "task/record.hpp"

namespace weft::inline v1::context {
struct stack;
}

namespace weft::inline v1::task {

// Exceptions in flight belong to the task, not to the thread (this mirrors __cxa_eh_globals of the Itanium ABI).
struct exception_state {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

inline constexpr std::size_t fiber_size = 384;

// The members are ordered by use. A fiber that runs to its end without parking accesses three cache lines, which
// matters when it was stolen. A fiber that parks and is woken accesses one line, or two with the entry of its wait,
// which matters when there are thousands of them.
struct alignas(base::cache_line) fiber : record {
  explicit fiber(ticket first) noexcept : record(kind::fiber, first) { check_layout(); }

  // The saved stack pointer, while the fiber does not run. nullptr: the fiber has no frames, and so no stack.
  [[nodiscard]] void* sp() const noexcept { return resume_point.load(base::relaxed); }
  void set_sp(void* to) noexcept { resume_point.store(to, base::relaxed); }
  // Where the switch away from the fiber stores the stack pointer. Nobody else writes it then.
  [[nodiscard]] void** sp_address() noexcept { return reinterpret_cast<void**>(&resume_point); }

  // --- second line: what the record has not used of it ---
  std::uint32_t stack_size = 0;  // 0: the default class
  context::stack* stack = nullptr;  // attached at first run
  std::uint8_t body_alignment_log2 = 0;  // for a body on the heap
  // --- third line on ---
  static constexpr std::size_t inline_capacity = 104;
  alignas(16) std::byte inline_body[inline_capacity];  // most bodies fit
  detail::local_binding* locals_ = nullptr;
  void* scopes_ = nullptr;
  sched::lane* dispatcher_ = nullptr;
  // --- fifth line: a wait ---
  // The room is here and not in the task's frame, because whoever fires a thousand timers, or sends along a thousand
  // channels, would otherwise access a thousand stacks, with a TLB miss each. It fills one line, not parts of two, and
  // what else a wait writes lies beside it.
  alignas(base::cache_line) std::byte wait_room_[wait_room_size];
  base::atomic<void*> waits_on_{nullptr};
  // --- cold ---
  exception_state exceptions;  // valid if has_exceptions is set
  base::atomic<std::uint64_t> name_[name_words] = {};

 private:
  static void check_layout() noexcept;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Winvalid-offsetof"  // the bases come before the members and none is virtual, so offsetof is right
inline void fiber::check_layout() noexcept {
  static_assert(offsetof(fiber, running) < offsetof(fiber, resume_point) && offsetof(fiber, resume_point) == 24 &&
                offsetof(fiber, waits_at) == 56 && offsetof(fiber, ops) == 64 && offsetof(fiber, stack_size) == 108 &&
                offsetof(fiber, stack) == 112 && offsetof(fiber, inline_body) == 128 &&
                offsetof(fiber, wait_room_) == 256 && offsetof(fiber, waits_on_) == 312);
}
#pragma GCC diagnostic pop
static_assert(sizeof(fiber) == fiber_size, "records are sized for a million parked tasks; see docs/performance.md");

[[nodiscard]] inline fiber& as_fiber(record& t) noexcept {
  if constexpr (base::checked_build)
    base::require(t.what == parkable::kind::fiber, "a task without a stack is used as a fiber");
  return static_cast<fiber&>(t);
}
[[nodiscard]] inline const fiber& as_fiber(const record& t) noexcept { return as_fiber(const_cast<record&>(t)); }

// Where a fiber keeps what every task has.
inline base::atomic<void*>& record::waits_on() noexcept { return as_fiber(*this).waits_on_; }
inline const base::atomic<void*>& record::waits_on() const noexcept { return as_fiber(*this).waits_on_; }
inline std::byte* record::wait_room() noexcept { return as_fiber(*this).wait_room_; }
inline detail::local_binding*& record::locals() noexcept { return as_fiber(*this).locals_; }
inline detail::local_binding* record::locals() const noexcept { return as_fiber(*this).locals_; }
inline void*& record::scopes() noexcept { return as_fiber(*this).scopes_; }
inline sched::lane*& record::dispatcher() noexcept { return as_fiber(*this).dispatcher_; }
inline base::atomic<std::uint64_t> (&record::name() noexcept)[name_words] { return as_fiber(*this).name_; }
inline const base::atomic<std::uint64_t> (&record::name() const noexcept)[name_words] { return as_fiber(*this).name_; }

}  // namespace weft::inline v1::task
