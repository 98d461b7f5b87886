// Scopes: tasks that end before the call that started them.
//
//   int sum(const part& a, const part& b) {   // a and b are declared outside of with_scope, so tasks may borrow them
//     return weft::with_scope([&](weft::scope& s) {
//       auto left = s.spawn([&] { return count(a); });
//       auto right = s.spawn([&] { return count(b); });
//       return left.join() + right.join();
//     });
//   }
//
// Children may borrow what was declared before with_scope. They may not borrow what its body declares, because the body
// returns, and its locals end, before the children do; unless the body calls s.join() first. A task_group
// (task_group.hpp) is declared among the locals themselves, after those that its tasks borrow, and so does not have
// this rule.
//
// with_scope returns when the body and every child have ended. The first of them to throw cancels the others and the
// body, and with_scope throws that exception.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <stop_token>
#include <type_traits>
#include <utility>

#include <weft/cancelled.hpp>
#include <weft/detail/scope_core.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/join_handle.hpp>
#include <weft/runtime.hpp>
#include <weft/scope_errors.hpp>
#include <weft/supervised.hpp>

namespace weft::inline v1 {

// A task of a scope. It does everything that a join_handle does, and it may be dropped: the scope waits for the task,
// and has been told of its exception.
template <class T>
class child : public join_handle<T> {
 public:
  child() noexcept = default;
  explicit child(join_handle<T>&& h) noexcept : join_handle<T>(std::move(h)) {}
};

namespace detail {

template <class F>
using child_for = child<typename task_result<std::decay_t<F>>::type>;

template <class F>
child_for<F> spawn_child(scope_core* in, const attributes* a, F&& f) {
  using body_type = scoped_body<std::decay_t<F>>;
  check_not_null(f);
  const spawning s = begin_spawn(scheduler_of(in), a, sizeof(body_type), alignof(body_type), &body_type::ops, true);
  auto* made = construct_body<body_type>(s, std::forward<F>(f), s.task);
  const auto give_up = [&] {
    if constexpr (!std::is_trivially_destructible_v<std::decay_t<F>>) body_type::destroy_closure(made);
    (void)body_type::dispose(made);
    abort_spawn(s);
  };
  bool admitted = false;
  try {
    admitted = admit(in, made->first());
  } catch (...) {
    give_up();
    throw;
  }
  if (!admitted) {
    give_up();
    throw_scope_closed();
  }
  commit_spawn(s);
  return child_for<F>(handle_access::make(s.task, &made->outcome()));
}

// Held during a spawn by a caller that has no place in the scope.
class reservation {
 public:
  explicit reservation(scope_core* in) : in_(in) {
    if (!reserve(in)) throw_scope_closed();
  }
  ~reservation() { release(in_); }
  reservation(const reservation&) = delete;
  reservation& operator=(const reservation&) = delete;

 private:
  scope_core* in_;
};
struct no_reservation {
  explicit no_reservation(scope_core*) noexcept {}
};

// The calls that scope, scope_ref and task_group have in common.
template <class Reservation>
class scope_calls {
 public:
  // Starts a task that ends before the scope or group does. Anybody may call it, also while the owner waits for the
  // last children, and also after the scope is cancelled; the new task is then cancelled from the start. Throws
  // scope_closed once the scope has ended. Never a cancellation point.
  template <class F>
  child_for<F> spawn(F&& f) const {
    return spawn_given(nullptr, std::forward<F>(f));
  }
  template <class F>
  child_for<F> spawn(const attributes& a, F&& f) const {
    return spawn_given(&a, std::forward<F>(f));
  }
  template <class F, class... Arguments>  // only to say that there is no such thing
    requires has_arguments<F, Arguments...>
  child<void> spawn(F&&, Arguments&&...) const {
    check_takes_no_arguments<sizeof...(Arguments) == 0>();
    return {};
  }
  // Starts a task that is started again when it throws (supervised.hpp).
  template <class F>
  child_for<F> supervise(const restarts& policy, F&& f) const {
    return spawn(supervised(policy, std::forward<F>(f)));
  }

  // Cancels every child, and the body of a scope, now and once. May be called from any thread. Never a cancellation
  // point.
  void cancel() const noexcept { cancel_scope(core_); }
  // Cancels at that time, or at once if it has passed, unless the scope has ended by then. A later call replaces the
  // time. To be called by a task of the scope's runtime. If only children were cut short, with_scope does not tell;
  // with_timeout does.
  void cancel_at(std::chrono::steady_clock::time_point when) const { cancel_scope_at(core_, when); }
  template <class Rep, class Period>
  void cancel_after(std::chrono::duration<Rep, Period> time) const {
    cancel_at(time_after(time));
  }
  [[nodiscard]] bool is_cancelled() const noexcept { return is_scope_cancelled(core_); }

 protected:
  explicit scope_calls(scope_core* core) noexcept : core_(core) {}
  scope_calls(const scope_calls&) = default;
  scope_calls& operator=(const scope_calls&) = default;
  ~scope_calls() = default;
  scope_core* core_;

 private:
  template <class F>
  child_for<F> spawn_given(const attributes* a, F&& f) const {
    return if_it_can_run<child_for<F>>(std::forward<F>(f), [&](auto&& task) {
      [[maybe_unused]] const Reservation held(core_);
      return spawn_child(core_, a, std::forward<F>(task));
    });
  }
};

}  // namespace detail

// For tasks that may outlive the scope. After the end of the scope, spawn throws scope_closed and cancel does nothing.
class scope_ref : public detail::scope_calls<detail::reservation> {
 public:
  explicit scope_ref(detail::scope_core* core) noexcept : scope_calls(core) { detail::add_reference(core_); }
  scope_ref(const scope_ref& other) noexcept : scope_ref(other.core_) {}
  scope_ref& operator=(const scope_ref& other) noexcept {
    scope_ref copy(other);
    std::swap(core_, copy.core_);
    return *this;
  }
  ~scope_ref() { detail::drop_reference(core_); }
};

// Made by with_scope, and gone when it returns. Children borrow it by reference; others get a ref().
class scope : public detail::scope_calls<detail::no_reservation> {
 public:
  explicit scope(detail::scope_core* core) noexcept : scope_calls(core) {}
  scope(const scope&) = delete;
  scope& operator=(const scope&) = delete;
  [[nodiscard]] scope_ref ref() const noexcept { return scope_ref(core_); }

  // To be called by the body. Waits for every child there is, and for those that these children spawn meanwhile. So
  // children may borrow what the body declared before it spawned them. The scope continues: more children may be
  // spawned, and joined again.
  // A cancellation point, which throws only when all of them have ended. It throws `cancelled` if the scope or the task
  // was cancelled, and so also if a child has failed; with_scope then throws the child's exception. (With
  // failures::collect a failure cancels nobody, and join() returns.) A call by another task is a usage_error.
  void join(std::source_location where = std::source_location::current()) const { detail::join_scope(core_, where); }
};

struct scope_options {
  weft::failures failures = weft::failures::cancel_rest;
  std::stop_token stop = {};  // cancels the scope when a stop is requested
};

namespace detail {

template <class F>
using scope_result = std::invoke_result_t<F, scope&>;

// Keeps what a body returned until the children have ended.
template <class R>
class body_value {
 public:
  template <class F>
  void set_from(F&& f) {
    if constexpr (std::is_reference_v<R>) {
      auto&& referred = std::forward<F>(f)();
      value_.emplace(std::addressof(referred));
    } else {
      value_.emplace(std::forward<F>(f)());
    }
  }
  [[nodiscard]] R take() {
    if constexpr (std::is_reference_v<R>)
      return static_cast<R>(**value_);
    else
      return std::move(*value_);
  }

 private:
  std::optional<std::conditional_t<std::is_reference_v<R>, std::add_pointer_t<R>, std::remove_cv_t<R>>> value_;
};
template <>
class body_value<void> {
 public:
  template <class F>
  void set_from(F&& f) {
    std::forward<F>(f)();
  }
  void take() {}
};

// Runs the body and waits for the children.
template <class R, class F>
scope_end run_scope(const scope_options& o, body_value<R>& value, F&& body, std::source_location where) {
  scope_core* core = open_scope(o.failures, o.stop, where);
  scope s(core);  // lives until the children, which borrow it, have ended
  body_end how = body_end::returned;
  try {
    value.set_from([&]() -> R { return std::invoke(std::forward<F>(body), s); });
  } catch (const cancelled&) {
    how = body_end::cancelled;
  } catch (...) {
    if (!fail_scope(core, std::current_exception())) how = body_end::cancelled;
  }
  return close_scope(core, how);
}

}  // namespace detail

// Calls body(s), and returns what it returns when every task of s has ended. A cancellation point: cancelling the task
// that is inside cancels body and children; when they have ended, with_scope throws `cancelled`. It also throws
//   what was thrown first, by the body or a child (with failures::collect: scope_failures, which holds all of them);
//   scope_cancelled, if cancel() or the deadline cut the body short (if the body returns, its value is returned);
//   usage_error outside of a task, and std::bad_alloc.
template <class F>
  requires std::invocable<F, scope&>
detail::scope_result<F> with_scope(const scope_options& o, F&& body,
                                   std::source_location where = std::source_location::current()) {
  detail::body_value<detail::scope_result<F>> value;
  const detail::scope_end end = detail::run_scope(o, value, std::forward<F>(body), where);
  if (end == detail::scope_end::cut_short || end == detail::scope_end::timed_out) detail::throw_scope_cancelled();
  return value.take();
}
template <class F>
  requires std::invocable<F, scope&>
detail::scope_result<F> with_scope(F&& body, std::source_location where = std::source_location::current()) {
  return with_scope(scope_options{}, std::forward<F>(body), where);
}

// Returns the body's result, or nothing if the time was up and the body or a child was cut short. They were cancelled,
// and have ended when it returns. For a void body it returns whether all came to their end. The body takes a scope& or
// nothing. Everything else is as for with_scope.
template <class Rep, class Period, class F>
  requires std::invocable<F> || std::invocable<F, scope&>
auto with_timeout(std::chrono::duration<Rep, Period> time, F&& body,
                  std::source_location where = std::source_location::current()) {
  const auto when = detail::time_after(time);
  const auto timed = [&](scope& s) -> decltype(auto) {
    s.cancel_at(when);
    if constexpr (std::invocable<F, scope&>)
      return std::invoke(std::forward<F>(body), s);
    else
      return std::invoke(std::forward<F>(body));
  };
  using result_type = std::invoke_result_t<decltype(timed), scope&>;
  static_assert(!std::is_reference_v<result_type>, "with_timeout returns an optional: return a pointer instead");
  detail::body_value<result_type> value;
  const detail::scope_end end = detail::run_scope(scope_options{}, value, timed, where);
  if (end == detail::scope_end::cut_short) detail::throw_scope_cancelled();
  const bool ended = end == detail::scope_end::returned;
  if constexpr (std::is_void_v<result_type>)
    return ended;
  else
    return ended ? std::optional<std::remove_cv_t<result_type>>(value.take()) : std::nullopt;
}

}  // namespace weft::inline v1
