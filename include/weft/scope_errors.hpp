// The exceptions with which a scope can end.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

// Thrown by a spawn into a scope that has ended. The callable was not run.
class WEFT_API scope_closed : public std::runtime_error {
 public:
  scope_closed();
  ~scope_closed() override;
};

// The scope was cancelled by cancel(), by its deadline or by its stop_token, and that cut its body short, so there is
// no result. There is a second use, for runtime_options::on_unhandled_exception only: a task_group was left without
// join(), and that cut tasks of it short.
class WEFT_API scope_cancelled : public std::runtime_error {
 public:
  scope_cancelled();
  explicit scope_cancelled(const char* what);
  ~scope_cancelled() override;
};

// Everything that was thrown in a scope that collects failures, in the order in which it was thrown. what() describes
// the first.
class WEFT_API scope_failures : public std::runtime_error {
 public:
  explicit scope_failures(std::vector<std::exception_ptr> all);
  ~scope_failures() override;

  [[nodiscard]] std::span<const std::exception_ptr> all() const noexcept { return *all_; }

 private:
  std::shared_ptr<const std::vector<std::exception_ptr>> all_;  // copying an exception must not throw
};

}  // namespace weft::inline v1
