// A child's place in its scope. It stands at the beginning of the child's body, so a task without a scope has no room for it.
#pragma once

#include <exception>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1::detail {

struct kin;

// What a scope is to the tasks in it.
class family {
 public:
  // The child has thrown something other than `cancelled`; it still runs.
  virtual void failed(kin& child, std::exception_ptr why) noexcept = 0;
  // The child has ended, result and all; the last thing that is known of it.
  virtual void ended(kin& child) noexcept = 0;

  family(const family&) = delete;
  family& operator=(const family&) = delete;

 protected:
  family() = default;
  ~family() = default;
};

// Outlives the body that it stands before: trivially destructible, and needed until the very end.
struct kin {
  family* of = nullptr;
  task_head* task = nullptr;
  kin* next = nullptr;
  kin* previous = nullptr;
  kin* told = nullptr;  // while its scope is cancelled
};

}  // namespace weft::inline v1::detail
