#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1 {

// Thrown by a cancellation point of a task whose cancellation was requested. It unwinds the task, so the task's
// destructors run. It is not a std::exception, so `catch (const std::exception&)` does not stop it. Code that swallows
// it with `catch (...)` gets it again at the next cancellation point.
class WEFT_API cancelled {
 public:
  [[nodiscard]] const char* what() const noexcept { return "weft: task cancelled"; }
};

// join() throws this when the *joined* task ended by cancellation. The joiner itself is not cancelled.
class WEFT_API task_cancelled : public std::runtime_error {
 public:
  task_cancelled(std::string_view name, std::uint64_t id);
  ~task_cancelled() override;

  [[nodiscard]] std::string_view task_name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t task_id() const noexcept { return id_; }

 private:
  std::uint64_t id_;
  char name_[detail::name_capacity];  // not a std::string: copying an exception must not throw
};

}  // namespace weft::inline v1
