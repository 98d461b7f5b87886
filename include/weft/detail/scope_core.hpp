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

// What a failure in a scope does. cancel_rest: it cancels the rest, and with_scope throws it. collect: it does nothing
// until all have ended; then all failures are thrown together (scope_failures).
enum class failures : unsigned char { cancel_rest, collect };

namespace detail {

class scope_core;

[[nodiscard]] WEFT_API scope_core* open_scope(failures policy, const std::stop_token& stop, std::source_location where);
// How a body ended, as far as that matters to the scope.
enum class body_end : unsigned char { returned, cancelled };
// How body and children ended. In the first two cases the body returned, though in the second the deadline has cut
// children short. In the last two the body itself was cut short: by the deadline, or by cancel() or the stop_token.
enum class scope_end : unsigned char { returned, children_timed_out, timed_out, cut_short };
// Waits for every child. Then throws the failure, or `cancelled` if the owner is to be cancelled. Always drops the
// owner's reference.
[[nodiscard]] WEFT_API scope_end close_scope(scope_core* s, body_end how);

// Called by the body: waits for every child there is, and for those that these children spawn meanwhile. A cancellation
// point, which throws only after that.
WEFT_API void join_scope(scope_core* s, std::source_location where);
// Opens the scope behind a task_group, in the runtime of the running task if `in` is nullptr.
[[nodiscard]] WEFT_API scope_core* open_group(runtime* in, failures policy, const std::stop_token& stop,
                                              std::source_location where);
// Waits for every child. Then throws the failure, or `cancelled` if the owner is to be cancelled. Returns false if
// children were cut short.
WEFT_API bool join_group(scope_core* s, std::source_location where);
// Cancels the children, waits for them, reports what would be lost, and drops the owner's reference. `unwinds` means
// that an exception leaves the block of the group.
WEFT_API void leave_group(scope_core* s, bool unwinds) noexcept;
// Whether the caller is a task of the scope's runtime.
[[nodiscard]] WEFT_API bool is_inside(const scope_core* s) noexcept;

// Called when the body has thrown. Returns false if the body only met a task that was cancelled because the scope was;
// such a body was cut short and has not failed.
[[nodiscard]] WEFT_API bool fail_scope(scope_core* s, std::exception_ptr why) noexcept;
WEFT_API void cancel_scope(scope_core* s) noexcept;
WEFT_API void cancel_scope_at(scope_core* s, std::chrono::steady_clock::time_point when);
[[nodiscard]] WEFT_API bool is_scope_cancelled(const scope_core* s) noexcept;
[[nodiscard]] WEFT_API sched::scheduler* scheduler_of(const scope_core* s) noexcept;
// Returns false if the scope has ended. Throws std::bad_alloc.
[[nodiscard]] WEFT_API bool admit(scope_core* s, kin& child);
// Keeps the scope, and with it its runtime, from ending while a caller without a place in the scope spawns. Returns
// false if it has ended.
[[nodiscard]] WEFT_API bool reserve(scope_core* s) noexcept;
WEFT_API void release(scope_core* s) noexcept;
WEFT_API void add_reference(scope_core* s) noexcept;
WEFT_API void drop_reference(scope_core* s) noexcept;
[[noreturn]] WEFT_API void throw_scope_closed();
[[noreturn]] WEFT_API void throw_scope_cancelled();

// The body of a child. It tells its scope if it fails. Its result is dropped in silence if nobody wants it.
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
    (void)body<F>::dispose_body(&static_cast<scoped_body*>(p)->inner_);  // the scope has the exception
    return nullptr;
  }
  static constexpr operations ops{&run, std::is_trivially_destructible_v<F> ? nullptr : &destroy_closure, &fail,
                                  &dispose};

 private:
  [[gnu::cold, gnu::noinline]] void tell_failure() noexcept { first_.of->failed(first_, inner_.outcome().error()); }

  kin first_;  // first, where the core finds it; the core needs it after the rest is gone
  body<F> inner_;
};

}  // namespace detail
}  // namespace weft::inline v1
