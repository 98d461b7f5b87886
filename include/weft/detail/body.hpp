// A task's closure and the memory for its result. Both lie behind the core's record.
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <weft/cancelled.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1::detail {

// Holds nothing, a value, or an exception. Values are constructed in place, so they need not be movable until they are
// taken.
template <class R>
class result {
 public:
  result() noexcept {}
  result(const result&) = delete;
  result& operator=(const result&) = delete;
  ~result() { clear(); }

  template <class F>
  void set_from(F&& f) {
    ::new (static_cast<void*>(std::addressof(value_))) stored(std::forward<F>(f)());
    holds_ = content::value;
  }
  void set_error(std::exception_ptr e) noexcept {
    ::new (static_cast<void*>(&error_)) std::exception_ptr(std::move(e));
    holds_ = content::error;
  }
  // For the caller that has joined the task.
  [[nodiscard]] R take(task_head* of) {
    if (holds_ == content::error) throw_error_of(of, take_error());
    return std::move(value_);
  }
  [[nodiscard]] bool has_error() const noexcept { return holds_ == content::error; }
  [[nodiscard]] std::exception_ptr error() const noexcept { return has_error() ? error_ : nullptr; }
  [[nodiscard]] std::exception_ptr take_error() noexcept {
    std::exception_ptr e = holds_ == content::error ? std::move(error_) : nullptr;
    clear();
    return e;
  }

 private:
  enum class content : unsigned char { nothing, value, error };
  using stored = std::remove_cv_t<R>;  // a const result is moved out too
  void clear() noexcept {
    if (holds_ == content::value) std::destroy_at(std::addressof(value_));
    if (holds_ == content::error) std::destroy_at(&error_);
    holds_ = content::nothing;
  }
  union {
    stored value_;
    std::exception_ptr error_;
  };
  content holds_ = content::nothing;
};

template <class R>
  requires std::is_reference_v<R>
class result<R> {
 public:
  template <class F>
  void set_from(F&& f) {
    pointer_.set_from([&] {
      auto&& referred = std::forward<F>(f)();
      return std::addressof(referred);
    });
  }
  void set_error(std::exception_ptr e) noexcept { pointer_.set_error(std::move(e)); }
  [[nodiscard]] R take(task_head* of) { return static_cast<R>(*pointer_.take(of)); }
  [[nodiscard]] bool has_error() const noexcept { return pointer_.has_error(); }
  [[nodiscard]] std::exception_ptr error() const noexcept { return pointer_.error(); }
  [[nodiscard]] std::exception_ptr take_error() noexcept { return pointer_.take_error(); }

 private:
  result<std::add_pointer_t<R>> pointer_;
};

template <>
class result<void> {
 public:
  template <class F>
  void set_from(F&& f) {
    std::forward<F>(f)();
  }
  void set_error(std::exception_ptr e) noexcept { error_ = std::move(e); }
  void take(task_head* of) {
    if (error_ != nullptr) throw_error_of(of, take_error());
  }
  [[nodiscard]] bool has_error() const noexcept { return error_ != nullptr; }
  [[nodiscard]] std::exception_ptr error() const noexcept { return error_; }
  [[nodiscard]] std::exception_ptr take_error() noexcept { return std::exchange(error_, nullptr); }

 private:
  std::exception_ptr error_;
};

template <class F>
using result_of = std::invoke_result_t<F>;

template <class F>
class body {
 public:
  using value_type = result_of<F>;

  template <class From>
    requires std::constructible_from<F, From>
  explicit body(From&& f) : closure_(std::forward<From>(f)) {}
  ~body() {}  // destroy_closure() or fail() destroys the closure
  body(const body&) = delete;
  body& operator=(const body&) = delete;

  [[nodiscard]] result<value_type>& outcome() noexcept { return result_; }

  static ended run_body(void* p) noexcept { return static_cast<body*>(p)->run(); }
  static void fail_body(void* p, std::exception_ptr why) noexcept { static_cast<body*>(p)->fail(std::move(why)); }
  static std::exception_ptr dispose_body(void* p) noexcept {
    auto* self = static_cast<body*>(p);
    std::exception_ptr unclaimed = self->result_.take_error();
    std::destroy_at(self);
    return unclaimed;
  }
  static void destroy_closure(void* p) noexcept { std::destroy_at(std::addressof(static_cast<body*>(p)->closure_)); }
  static constexpr operations ops{&run_body, std::is_trivially_destructible_v<F> ? nullptr : &destroy_closure,
                                  &fail_body, &dispose_body};

 private:
  ended run() noexcept {
    ended how = ended::done;
    try {
      result_.set_from([this]() -> value_type { return std::invoke(std::move(closure_)); });
    } catch (const cancelled&) {
      how = ended::cancelled;
    } catch (...) {
      result_.set_error(std::current_exception());
    }
    return how;
  }
  void fail(std::exception_ptr why) noexcept {
    result_.set_error(std::move(why));
    std::destroy_at(std::addressof(closure_));
  }

  union {
    F closure_;
  };
  result<value_type> result_;
};

}  // namespace weft::inline v1::detail
