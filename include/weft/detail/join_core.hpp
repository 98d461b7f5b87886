// The end of a task as something to wait for.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include <weft/detail/task_core.hpp>
#include <weft/detail/waitable.hpp>
#include <weft/select.hpp>

namespace weft::inline v1::detail {

// A wait for the end of a task. It holds a reference to the task.
class WEFT_API join_operation final : public waits::waitable {
 public:
  explicit join_operation(task_head* t) noexcept : task_(t) {
    if (t != nullptr) add_reference(t);
  }
  join_operation(const join_operation& other) noexcept : join_operation(other.task_) {}
  join_operation& operator=(const join_operation&) = delete;
  ~join_operation() {
    if (task_ != nullptr) drop_reference(task_);
  }

  bool try_complete() noexcept override { return is_finished(task_); }
  bool try_locked() noexcept override { return is_finished(task_); }
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] waits::subject what() const noexcept override;
  [[nodiscard]] task_head* task() const noexcept { return task_; }

 private:
  task_head* task_;
};

// `~handle` in a select: the task has ended. The result stays in place.
class end_arm final : public select_arm {
 public:
  explicit end_arm(task_head* t) noexcept : operation_(t) {}
  end_arm(const end_arm& other) noexcept : select_arm(other), operation_(other.operation_) {}
  end_arm& operator=(const end_arm&) = delete;

  [[nodiscard]] tried try_at_once() noexcept override {
    return operation_.task() == nullptr ? tried::disabled : won_if(operation_.try_complete());
  }
  [[nodiscard]] waits::arm prepare() noexcept override {
    return operation_.task() == nullptr ? waits::arm{} : waits::arm{&operation_, &node_};
  }
  [[nodiscard]] bool complete() noexcept override { return true; }

 private:
  join_operation operation_;
  waits::node node_;
};

// `handle.on_join(f)` in a select: takes the result and calls f with it. If the task threw, the select throws that
// exception.
template <class Handle, class F>
class join_arm final : public select_arm {
 public:
  join_arm(Handle& h, F f) : handle_(&h), f_(std::move(f)) {}
  // Each use waits for the task that the handle has at that time. The arm may be used again after that task was joined,
  // or when the handle has another task.
  [[nodiscard]] tried try_at_once() noexcept override { return end_.emplace(handle_->task_).try_at_once(); }
  [[nodiscard]] waits::arm prepare() noexcept override { return end_.emplace(handle_->task_).prepare(); }
  [[nodiscard]] bool complete() override {
    handle_->tell(f_);
    return true;
  }

 private:
  Handle* handle_;
  std::optional<end_arm> end_;
  F f_;
};

}  // namespace weft::inline v1::detail
