// join_handle<T> is the one handle that may take a task's result. task_ref is for the many who may wake or cancel the
// task.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include <weft/detail/body.hpp>
#include <weft/detail/join_core.hpp>
#include <weft/detail/task_core.hpp>
#include <weft/errors.hpp>

namespace weft::inline v1 {

struct task_status;  // task_status.hpp

namespace detail {

struct handle_access;

inline std::string copied_name(const task_head* t) {
  char text[name_capacity];
  return {text, name_of(t, text)};
}

}  // namespace detail

// A counted reference to a task, whether the task still runs or has ended. It can wake (unpark) and cancel the task,
// and identify it.
class task_ref {
 public:
  task_ref() noexcept = default;
  task_ref(const task_ref& other) noexcept : task_ref(other.task_) {}
  task_ref(task_ref&& other) noexcept : task_(std::exchange(other.task_, nullptr)) {}
  task_ref& operator=(task_ref other) noexcept {
    std::swap(task_, other.task_);
    return *this;
  }
  ~task_ref() {
    if (task_ != nullptr) detail::drop_reference(task_);
  }

  [[nodiscard]] explicit operator bool() const noexcept { return task_ != nullptr; }
  friend bool operator==(const task_ref&, const task_ref&) = default;

  [[nodiscard]] std::uint64_t id() const { return detail::id_of(checked()); }
  // Returns a copy, because the task may rename itself at any time.
  [[nodiscard]] std::string name() const { return detail::copied_name(checked()); }
  [[nodiscard]] bool is_finished() const { return detail::is_finished(checked()); }
  // What the task does now, for reports. Include task_status.hpp.
  [[nodiscard]] WEFT_API task_status status() const;
  void cancel() const { detail::request_cancel(checked()); }
  void unpark() const { detail::unpark(checked()); }

 private:
  friend struct detail::handle_access;
  explicit task_ref(detail::task_head* t) noexcept : task_(t) {
    if (t != nullptr) detail::add_reference(t);
  }
  [[nodiscard]] detail::task_head* checked() const {
    if (task_ == nullptr) detail::throw_usage("this task_ref refers to no task");
    return task_;
  }
  detail::task_head* task_ = nullptr;
};

template <class T>
class join_handle;

namespace detail {

// Makes handles and references from the core's pointer to a task.
struct handle_access {
  template <class T>
  static join_handle<T> make(task_head* t, result<T>* outcome) noexcept {
    return join_handle<T>(t, outcome);
  }
  static task_ref ref(task_head* t) noexcept { return task_ref(t); }
  static const task_head* task_of(const task_ref& r) { return r.checked(); }
};

}  // namespace detail

// Movable, not copyable. Dropping the handle detaches the task: the task continues and its result is discarded. An
// exception that nobody took goes to runtime_options::on_unhandled_exception, or ends the process if there is no such
// handler. There is one exemption: if the handle is destroyed while an exception unwinds the stack, what its task
// throws becomes one line on stderr, and the first exception continues.
template <class T>
class [[nodiscard("dropping the handle detaches the task: join() it, or say .detach()")]] join_handle {
 public:
  join_handle() noexcept = default;
  join_handle(join_handle&& other) noexcept
      : task_(std::exchange(other.task_, nullptr)),
        outcome_(std::exchange(other.outcome_, nullptr)) {}
  join_handle& operator=(join_handle&& other) noexcept {
    join_handle taken(std::move(other));  // first, because `other` may be this handle
    std::swap(task_, taken.task_);
    std::swap(outcome_, taken.outcome_);
    return *this;
  }
  ~join_handle() {
    if (task_ != nullptr) detail::abandon_handle(task_);
  }

  // False after join, detach and move.
  [[nodiscard]] bool joinable() const noexcept { return task_ != nullptr; }

  // Waits for the end of the task and takes its result, or throws its exception; throws task_cancelled if the task was
  // cancelled. A task that calls it parks, and the call is a cancellation point; the handle stays joinable then. An
  // outside thread blocks. Only one caller may join; others use wait(). If two tasks join on one thread, the later one
  // gets usage_error; if they join on two threads, that is a data race on the handle, as for any object.
  T join(std::source_location where = std::source_location::current()) {
    detail::wait_for(checked(where), where);
    if (task_ == nullptr) [[unlikely]]
      detail::throw_usage("this task was joined by somebody else meanwhile; only one may join(), others wait()", where);
    return take();
  }
  // As join(), but never waits: the result is empty (false for void, nullptr for a reference) while the task runs.
  // Never a cancellation point.
  [[nodiscard]] auto try_join() {
    if constexpr (std::is_void_v<T>) {
      if (!is_finished()) return false;
      take();
      return true;
    } else if constexpr (std::is_reference_v<T>) {
      std::add_pointer_t<T> referred = nullptr;
      if (is_finished()) {
        auto&& result = take();
        referred = std::addressof(result);
      }
      return referred;
    } else {
      return is_finished() ? std::optional<T>(take()) : std::nullopt;
    }
  }
  // Waits for the end of the task and leaves the result in place. Several callers may wait on one handle at the same
  // time, and a join() does not disturb those that already wait. But join() takes the task out of the handle: a wait()
  // that begins on one thread while a join() ends on another thread is a data race, as for any object that one thread
  // reads and another changes.
  void wait(std::source_location where = std::source_location::current()) const {
    detail::wait_for(checked(where), where);
  }

  // Arms of a select. `~handle` wins when the task has ended, and leaves its result. on_join(f) takes the result and
  // calls f with it; if the task threw, the select throws that exception. The arm of an empty handle is disabled.
  [[nodiscard]] friend detail::end_arm operator~(const join_handle& h) noexcept { return detail::end_arm(h.task_); }
  template <class F>
  [[nodiscard]] auto on_join(F f) {
    return detail::join_arm<join_handle, F>(*this, std::move(f));
  }

  [[nodiscard]] bool is_finished() const { return detail::is_finished(checked()); }
  void cancel() const { detail::request_cancel(checked()); }
  void detach() noexcept {
    if (task_ != nullptr) detail::drop_handle(std::exchange(task_, nullptr));
  }
  [[nodiscard]] task_ref ref() const { return detail::handle_access::ref(checked()); }
  [[nodiscard]] std::uint64_t id() const { return detail::id_of(checked()); }
  [[nodiscard]] std::string name() const { return detail::copied_name(checked()); }

 private:
  friend struct detail::handle_access;
  template <class Handle, class F>
  friend class detail::join_arm;
  template <class F>
  void tell(F& f) {
    (void)checked();  // another caller may have joined it meanwhile
    if constexpr (std::is_void_v<T>) {
      take();
      std::invoke(f);
    } else {
      std::invoke(f, take());
    }
  }
  join_handle(detail::task_head* t, detail::result<T>* outcome) noexcept : task_(t), outcome_(outcome) {}

  static constexpr const char* is_empty =
      "this join_handle is empty: the task was joined or detached before, or the handle was moved from, or it never "
      "had a "
      "task";
  [[nodiscard]] detail::task_head* checked() const {
    if (task_ == nullptr) detail::throw_usage(is_empty);
    return task_;
  }
  [[nodiscard]] detail::task_head* checked(const std::source_location& where) const {
    if (task_ == nullptr) detail::throw_usage(is_empty, where);
    return task_;
  }
  T take() {
    constexpr bool can_be_taken =
        std::is_void_v<T> || std::is_reference_v<T> || std::is_constructible_v<T, std::remove_cv_t<T>>;
    static_assert(can_be_taken,
                  "the result of this task cannot be moved out of it: wait() instead of join(), or return a "
                  "std::unique_ptr to it");
    struct release {
      detail::task_head* task;
      ~release() { detail::drop_handle(task); }
    } after{std::exchange(task_, nullptr)};
    if (detail::how_it_ended(after.task) == detail::ended::cancelled) [[unlikely]]
      detail::throw_task_cancelled(after.task);
    if constexpr (can_be_taken) return outcome_->take(after.task);
  }

  detail::task_head* task_ = nullptr;
  detail::result<T>* outcome_ = nullptr;
};

}  // namespace weft::inline v1
