// What the templates of scope.hpp know of a scope.
#pragma once

#include <chrono>
#include <exception>
#include <source_location>
#include <stop_token>

#include <weft/detail/body.hpp>
#include <weft/detail/config.hpp>
#include <weft/detail/kin.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1 {

// What a failure in a scope does: cancels the rest and is thrown by with_scope; or does nothing until all have ended, when all
// failures are thrown together (scope_failures).
enum class failures : unsigned char { cancel_rest, collect };

namespace detail {

class scope_core;

[[nodiscard]] WEFT_API scope_core* open_scope(failures policy, const std::stop_token& stop, std::source_location where);
// How a body ended, as far as the scope cares.
enum class body_end : unsigned char { returned, cancelled };
// How body and children ended: the body returned, though the deadline may have cut children short; or it was cut short itself, by
// the deadline or by cancel() and stop_token.
enum class scope_end : unsigned char { returned, children_timed_out, timed_out, cut_short };
// Waits for every child. Then throws the failure, or `cancelled` if the owner is to be cancelled. Drops the owner's reference, always.
[[nodiscard]] WEFT_API scope_end close_scope(scope_core* s, body_end how);

// By the body: waits for every child there is, with those that they spawn meanwhile. A cancellation point that throws only afterwards.
WEFT_API void join_scope(scope_core* s, std::source_location where);
// The scope behind a task_group. In the runtime of the running task, if `in` is nullptr.
[[nodiscard]] WEFT_API scope_core* open_group(runtime* in, failures policy, const std::stop_token& stop,
                                              std::source_location where);
// Waits for every child. Then throws the failure, or `cancelled` if the owner is to be cancelled. False: children were cut short.
WEFT_API bool join_group(scope_core* s, std::source_location where);
// Cancels, waits, reports what would be lost, drops the owner's reference. `unwinds`: by an exception.
WEFT_API void leave_group(scope_core* s, bool unwinds) noexcept;
// Whether the caller is a task of the scope's runtime.
[[nodiscard]] WEFT_API bool is_inside(const scope_core* s) noexcept;

// The body has thrown. False: it only found a task cancelled because the scope was, so it was cut short and has not failed.
[[nodiscard]] WEFT_API bool fail_scope(scope_core* s, std::exception_ptr why) noexcept;
WEFT_API void cancel_scope(scope_core* s) noexcept;
WEFT_API void cancel_scope_at(scope_core* s, std::chrono::steady_clock::time_point when);
[[nodiscard]] WEFT_API bool is_scope_cancelled(const scope_core* s) noexcept;
[[nodiscard]] WEFT_API sched::scheduler* scheduler_of(const scope_core* s) noexcept;
// False: the scope has ended. Throws std::bad_alloc.
[[nodiscard]] WEFT_API bool admit(scope_core* s, kin& child);
// Keeps the scope, and with it its runtime, from ending while somebody without a place in it spawns. False: it has ended.
[[nodiscard]] WEFT_API bool reserve(scope_core* s) noexcept;
WEFT_API void release(scope_core* s) noexcept;
WEFT_API void add_reference(scope_core* s) noexcept;
WEFT_API void drop_reference(scope_core* s) noexcept;
[[noreturn]] WEFT_API void throw_scope_closed();
[[noreturn]] WEFT_API void throw_scope_cancelled();

// The body of a child: told to its scope if it fails, and its result dropped in silence if nobody wants it.
template <class F>
class scoped_body {
 public:
  template <class From>
  explicit scoped_body(task_head* t, From&& f) : inner_(std::forward<From>(f)) {
    first_.task = t;
  }
  [[nodiscard]] kin& first() noexcept { return first_; }
  [[nodiscard]] auto& outcome() noexcept { return inner_.outcome(); }

  static ended run(void* p) noexcept {
    auto* self = static_cast<scoped_body*>(p);
    const ended how = body<F>::run_body(&self->inner_);
    if (self->inner_.outcome().has_error()) [[unlikely]]
      self->tell_failure();
    return how;
  }
  static void destroy_closure(void* p) noexcept { body<F>::destroy_closure(&static_cast<scoped_body*>(p)->inner_); }
  static void fail(void* p, std::exception_ptr why) noexcept {
    auto* self = static_cast<scoped_body*>(p);
    body<F>::fail_body(&self->inner_, std::move(why));
    self->tell_failure();
  }
  static std::exception_ptr dispose(void* p) noexcept {
    (void)body<F>::dispose_body(&static_cast<scoped_body*>(p)->inner_);  // the scope has it
    return nullptr;
  }
  static constexpr operations ops{&run, std::is_trivially_destructible_v<F> ? nullptr : &destroy_closure, &fail,
                                  &dispose};

 private:
  [[gnu::cold, gnu::noinline]] void tell_failure() noexcept { first_.of->failed(first_, inner_.outcome().error()); }

  kin first_;  // the core finds it here, and needs it after the rest is gone
  body<F> inner_;
};

}  // namespace detail
}  // namespace weft::inline v1
