#pragma once

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>

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
  task_cancelled(std::string_view name, std::uint64_t id);
  ~task_cancelled() override;

  [[nodiscard]] std::string_view task_name() const noexcept { return name_; }
  [[nodiscard]] std::uint64_t task_id() const noexcept { return id_; }

 private:
  std::uint64_t id_;
  char name_[detail::name_capacity];  // not a string: exceptions are copied without throwing
};

}  // namespace weft::inline v1
