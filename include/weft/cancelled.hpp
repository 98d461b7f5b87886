#pragma once

#include <stdexcept>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

// Thrown by a cancellation point of a task whose cancellation was requested; unwinds it with its destructors run. Not a
// std::exception, so that `catch (const std::exception&)` does not stop it. Whoever swallows it with `catch (...)` meets it
// again at the next cancellation point.
class WEFT_API cancelled {
 public:
  [[nodiscard]] const char* what() const noexcept { return "weft: task cancelled"; }
};

// What join() throws when the *joined* task ended by cancellation; the joiner itself is not cancelled.
class WEFT_API task_cancelled : public std::runtime_error {
 public:
  task_cancelled();
  ~task_cancelled() override;
};

}  // namespace weft::inline v1
