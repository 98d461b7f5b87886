// join_handle<T>: the one who may take a task's result; task_ref: the many who may wake or cancel it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

#include <weft/detail/body.hpp>
#include <weft/detail/task_core.hpp>
#include <weft/errors.hpp>

namespace weft::inline v1 {
namespace detail {

inline std::string copied_name(const task_head* t) {
  char text[name_capacity];
  return {text, name_of(t, text)};
}

}  // namespace detail

// A counted reference to a task, dead or alive: wake it (unpark), cancel it, tell it apart.
class task_ref {
 public:
  task_ref() noexcept = default;
  explicit task_ref(detail::task_head* t) noexcept : task_(t) {
    if (t != nullptr) detail::add_reference(t);
  }
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
  // A copy: the task may rename itself at any time.
  [[nodiscard]] std::string name() const { return detail::copied_name(checked()); }
  [[nodiscard]] bool is_finished() const { return detail::is_finished(checked()); }
  void cancel() const { detail::request_cancel(checked()); }
  void unpark() const { detail::unpark(checked()); }

 private:
  [[nodiscard]] detail::task_head* checked() const {
    if (task_ == nullptr) detail::throw_usage("this task_ref refers to no task");
    return task_;
  }
  detail::task_head* task_ = nullptr;
};

// Movable, not copyable. Dropping it detaches the task: it runs on, its result is discarded, and an exception that nobody
// took is reported (runtime_options::on_unhandled_exception).
template <class T>
class [[nodiscard]] join_handle {
 public:
  join_handle() noexcept = default;
  join_handle(join_handle&& other) noexcept
      : task_(std::exchange(other.task_, nullptr)),
        outcome_(std::exchange(other.outcome_, nullptr)) {}
  join_handle& operator=(join_handle&& other) noexcept {
    join_handle taken(std::move(other));  // first: `other` may be this one
    std::swap(task_, taken.task_);
    std::swap(outcome_, taken.outcome_);
    return *this;
  }
  ~join_handle() { detach(); }

  // False after join, detach and move.
  [[nodiscard]] bool joinable() const noexcept { return task_ != nullptr; }

  // Waits for the end and takes the result or throws the task's exception; task_cancelled if it was cancelled. From a task it
  // parks that task and is a cancellation point (the handle stays joinable then); from another thread it blocks the thread.
  T join(std::source_location where = std::source_location::current()) {
    return take(detail::wait_for(checked(), where));
  }
  // The same without the wait: empty (false for void, nullptr for a reference) while the task runs. Never a cancellation
  // point.
  [[nodiscard]] auto try_join() {
    if constexpr (std::is_void_v<T>) {
      if (!is_finished()) return false;
      take(detail::how_it_ended(task_));
      return true;
    } else if constexpr (std::is_reference_v<T>) {
      std::add_pointer_t<T> referred = nullptr;
      if (is_finished()) {
        auto&& result = take(detail::how_it_ended(task_));
        referred = std::addressof(result);
      }
      return referred;
    } else {
      return is_finished() ? std::optional<T>(take(detail::how_it_ended(task_))) : std::nullopt;
    }
  }
  // Waits for the end and leaves the result. Several may wait on one handle at the same time.
  void wait(std::source_location where = std::source_location::current()) const { detail::wait_for(checked(), where); }

  [[nodiscard]] bool is_finished() const { return detail::is_finished(checked()); }
  void cancel() const { detail::request_cancel(checked()); }
  void detach() noexcept {
    if (task_ != nullptr) detail::drop_handle(std::exchange(task_, nullptr));
  }
  [[nodiscard]] task_ref ref() const { return task_ref(checked()); }
  [[nodiscard]] std::uint64_t id() const { return detail::id_of(checked()); }
  [[nodiscard]] std::string name() const { return detail::copied_name(checked()); }

 private:
  friend struct detail_access;
  join_handle(detail::task_head* t, detail::result<T>* outcome) noexcept : task_(t), outcome_(outcome) {}

  [[nodiscard]] detail::task_head* checked() const {
    if (task_ == nullptr)
      detail::throw_usage(
          "this join_handle is empty: the task was joined or detached before, or the handle was moved from");
    return task_;
  }
  T take(detail::ended how) {
    struct release {
      detail::task_head* task;
      ~release() { detail::drop_handle(task); }
    } after{std::exchange(task_, nullptr)};
    if (how == detail::ended::cancelled) [[unlikely]]
      detail::throw_task_cancelled();
    return outcome_->take();
  }

  detail::task_head* task_ = nullptr;
  detail::result<T>* outcome_ = nullptr;
};

struct detail_access {
  template <class T>
  static join_handle<T> make(detail::task_head* t, detail::result<T>* outcome) noexcept {
    return join_handle<T>(t, outcome);
  }
};

}  // namespace weft::inline v1
