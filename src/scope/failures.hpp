// What the tasks of a scope threw, as far as it is kept: the first exception, or all of them (failures::collect).
//
// For a child of a task_group it is also known whether somebody has received its exception by joining the child. Such
// an exception is not lost, even if nobody joins the group.
#pragma once

#include <cstddef>
#include <exception>
#include <utility>
#include <vector>

#include "task/task.hpp"
#include <weft/detail/scope_core.hpp>

namespace weft::inline v1::detail {

class kept_failures {
 public:
  explicit kept_failures(failures policy) : policy_(policy) {}
  // Takes what the other has and leaves it as new.
  kept_failures(kept_failures&& other) noexcept
      : policy_(other.policy_),
        first_(std::exchange(other.first_, {})),
        all_(std::exchange(other.all_, {})) {}
  kept_failures& operator=(kept_failures&&) = delete;
  ~kept_failures();

  // Makes room for the failures of `live` more children and of the body, because note() cannot report that there is no
  // room. Throws std::bad_alloc.
  void make_room(std::size_t live) {
    if (policy_ != failures::collect) [[likely]]
      return;
    const std::size_t needed = all_.size() + live + 1;
    if (all_.capacity() < needed) all_.reserve(live == 0 ? needed : 2 * needed);
  }
  // Leaves `why` to the caller if it is not kept. `by` is the task of a group's child, to which a reference is kept;
  // otherwise nullptr. Returns true if the failure cancels the rest.
  [[nodiscard]] bool note(std::exception_ptr& why, task::record* by) noexcept;
  // Returns the first exception, or scope_failures; nullptr if nobody failed.
  [[nodiscard]] std::exception_ptr take();
  // Calls f(task, exception) for each failure that would be lost now: its task is known, and nobody has received its
  // exception by joining that task.
  template <class F>
  void each_lost(F f) const {
    const auto look = [&](const failure& one) {
      if (one.by != nullptr && !one.by->word.is_error_taken()) f(*one.by, one.error);
    };
    look(first_);
    for (const failure& one : all_) look(one);
  }

 private:
  struct failure {
    std::exception_ptr error;
    task::record* by = nullptr;
  };
  static void drop(failure& one) noexcept;

  const failures policy_;
  failure first_;
  std::vector<failure> all_;  // with failures::collect
};

}  // namespace weft::inline v1::detail
