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

inline constexpr std::size_t name_capacity = 32;  // with the end

enum class ended : std::uint8_t { done, cancelled };

// What the core calls on the typed body behind a record.
struct operations {
  ended (*run)(void* body) noexcept;                          // runs the closure, keeps result or exception
  void (*destroy_closure)(void* body) noexcept;  // after run, shielded; nullptr if there is nothing to do
  void (*fail)(void* body, std::exception_ptr why) noexcept;  // never ran: keeps the exception, destroys the closure
  std::exception_ptr (*dispose)(void* body) noexcept;  // destroys an unclaimed result; returns an unclaimed exception
};

struct spawning {
  task_head* task;
  void* body;  // room for the closure and its result
};

// Spawn in two steps around the construction of the body. `in` == nullptr: the runtime of the running task.
// Throws std::bad_alloc, runtime_stopped, usage_error, std::invalid_argument (attributes).
[[nodiscard]] WEFT_API spawning begin_spawn(sched::scheduler* in, const attributes* a, std::size_t size,
                                            std::size_t alignment, const operations* ops, bool with_handle);
WEFT_API void commit_spawn(spawning s) noexcept;
WEFT_API void abort_spawn(spawning s) noexcept;

// A handle's half.
// Waits for the end. A cancellation point; throws cancelled, usage_error. Somebody else may have taken the result, and the
// record with it, before the caller runs again: it asks its handle before it asks the record how it ended.
WEFT_API void wait_for(task_head* t, std::source_location where);
[[nodiscard]] WEFT_API bool is_finished(const task_head* t) noexcept;
[[nodiscard]] WEFT_API ended how_it_ended(const task_head* t) noexcept;
WEFT_API void request_cancel(task_head* t) noexcept;
WEFT_API void drop_handle(task_head* t) noexcept;  // the result is not wanted any more; drops the reference
// The same by a destructor: if an exception unwinds, one that the task ends with does not end the process.
WEFT_API void abandon_handle(task_head* t) noexcept;
WEFT_API void add_reference(task_head* t) noexcept;
WEFT_API void drop_reference(task_head* t) noexcept;
WEFT_API void unpark(task_head* t) noexcept;
WEFT_API void park_if(bool (*still)(const void*), const void* context, std::source_location where);
[[nodiscard]] WEFT_API task_head* running_task() noexcept;
[[nodiscard]] WEFT_API std::uint64_t id_of(const task_head* t) noexcept;
[[nodiscard]] WEFT_API std::size_t name_of(const task_head* t, char (&text)[name_capacity]) noexcept;  // its length

[[noreturn]] WEFT_API void throw_usage(const char* what);
[[noreturn]] WEFT_API void throw_usage(const char* what, std::source_location where);  // says the place as well
[[noreturn]] WEFT_API void throw_task_cancelled(const task_head* t);
[[noreturn]] WEFT_API void throw_error_of(task_head* t, std::exception_ptr error);  // to one who has joined it

}  // namespace detail
}  // namespace weft::inline v1
