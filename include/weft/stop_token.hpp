// Passes cancellation on to code that knows std::stop_token and nothing of Weft. For the other direction see
// scope_options::stop.
#pragma once

#include <stop_token>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1 {

// While this object lives, cancelling the running task, or a scope around this object, also requests a stop of its
// token, whether the task is shielded or not:
//
//   weft::stop_on_cancel bridge;
//   long_computation(bridge.token());   // looks at stop_requested() now and then
//   weft::this_task::check();
//
// Callbacks of the token run on the thread that cancels, perhaps outside of any task, or when this object is destroyed.
// They must not block.
class WEFT_API stop_on_cancel {
 public:
  [[nodiscard("name it: the token is stopped only while this object lives")]] stop_on_cancel();  // needs a task
  ~stop_on_cancel();
  stop_on_cancel(const stop_on_cancel&) = delete;
  stop_on_cancel& operator=(const stop_on_cancel&) = delete;

  [[nodiscard]] std::stop_token token() const noexcept { return source_.get_token(); }

 private:
  friend struct detail_bridges;
  std::stop_source source_;
  detail::task_head* task_;
  const void* inside_ = nullptr;  // the innermost scope of the task around this object
  stop_on_cancel* next_ = nullptr;
};

}  // namespace weft::inline v1
