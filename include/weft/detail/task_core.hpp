// What the templates of the public headers know of a task: an opaque head and a few functions of the core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

class runtime;
struct attributes;

namespace sched {
class scheduler;
}

namespace detail {

struct task_head {};  // the core's record derives from it
struct local_binding;  // task_local.hpp

inline constexpr std::size_t name_capacity = 32;  // with the terminating zero

// How a turn of a body ended. A task ends `done` or `cancelled`. `suspended`: the body has returned from its frame and
// wants another turn. A fiber's body never answers that, because it suspends inside its turn.
enum class ended : std::uint8_t { done, cancelled, suspended };

// What the core calls on the typed body behind a record.
struct operations {
  ended (*run)(void* body) noexcept;  // gives the body a turn; at its end the result or exception is kept
  void (*destroy_closure)(void* body) noexcept;  // called after run, shielded; nullptr if there is nothing to do
  void (*fail)(void* body, std::exception_ptr why) noexcept;  // it never ran: keeps `why`, destroys the closure
  std::exception_ptr (*dispose)(void* body) noexcept;  // destroys an unclaimed result; returns an unclaimed exception
};

struct spawning {
  task_head* task;
  void* body;  // memory for the closure and its result
};

// Spawns in two steps, around the construction of the body. If `in` is nullptr, it spawns in the runtime of the running
// task. Throws std::bad_alloc, runtime_stopped, usage_error, and std::invalid_argument for bad attributes.
[[nodiscard]] WEFT_API spawning begin_spawn(sched::scheduler* in, const attributes* a, std::size_t size,
                                            std::size_t alignment, const operations* ops, bool with_handle);
WEFT_API void commit_spawn(spawning s) noexcept;
WEFT_API void abort_spawn(spawning s) noexcept;

// The calls of a handle.
// wait_for waits for the end of the task. A cancellation point; it throws cancelled and usage_error. Before the caller
// runs again, somebody else may have taken the result, and with it the record. So the caller looks at its handle again
// before it asks the record how the task ended.
WEFT_API void wait_for(task_head* t, std::source_location where);
[[nodiscard]] WEFT_API bool is_finished(const task_head* t) noexcept;
[[nodiscard]] WEFT_API ended how_it_ended(const task_head* t) noexcept;
WEFT_API void request_cancel(task_head* t) noexcept;
WEFT_API void drop_handle(task_head* t) noexcept;  // discards the result and drops the reference
// The same for a destructor: while an exception unwinds the stack, an exception of the task does not end the process.
WEFT_API void abandon_handle(task_head* t) noexcept;
WEFT_API void add_reference(task_head* t) noexcept;
WEFT_API void drop_reference(task_head* t) noexcept;
WEFT_API void unpark(task_head* t) noexcept;
WEFT_API void park_if(bool (*still)(const void*), const void* context, std::source_location where);
[[nodiscard]] WEFT_API task_head* running_task() noexcept;
[[nodiscard]] WEFT_API std::uint64_t id_of(const task_head* t) noexcept;
[[nodiscard]] WEFT_API std::size_t name_of(const task_head* t, char (&text)[name_capacity]) noexcept;  // the length

[[noreturn]] WEFT_API void throw_usage(const char* what);
[[noreturn]] WEFT_API void throw_usage(const char* what, std::source_location where);  // the message names the place
[[noreturn]] WEFT_API void throw_task_cancelled(const task_head* t);
[[noreturn]] WEFT_API void throw_error_of(task_head* t, std::exception_ptr error);  // for the caller that has joined it

}  // namespace detail
}  // namespace weft::inline v1
