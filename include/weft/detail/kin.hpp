// A child's entry in its scope. It stands at the beginning of the child's body, so a task without a scope needs no
// memory for it.
#pragma once

#include <exception>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1::detail {

struct kin;

// What a scope is to the tasks in it.
class family {
 public:
  // Called when the child has thrown something other than `cancelled`. The child still runs.
  virtual void failed(kin& child, std::exception_ptr why) noexcept = 0;
  // Called when the child has ended and its result is complete. Nothing is known of the child after that.
  virtual void ended(kin& child) noexcept = 0;

  family(const family&) = delete;
  family& operator=(const family&) = delete;

 protected:
  family() = default;
  ~family() = default;
};

// Outlives the body that it stands in front of: it is trivially destructible, and is needed until the very end.
struct kin {
  family* of = nullptr;
  task_head* task = nullptr;
  kin* next = nullptr;
  kin* previous = nullptr;
  kin* told = nullptr;  // links those whose stop_on_cancel is told, while the scope is cancelled
};

}  // namespace weft::inline v1::detail
