// Errors of kernel calls on files, and how callers are told of them.
#pragma once

#include <string_view>
#include <system_error>

namespace weft::inline v1::io {

// What went wrong, and in which operation: "read", "sync", …
struct file_failure {
  std::error_code why;
  const char* operation = "";
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(why); }
};

// The error of the kernel call that this thread has made last. Never inlined, because a task may have come from another
// thread since the call before, and compilers keep the address of errno.
[[nodiscard]] std::error_code error_of_last_call() noexcept;

// Tells the caller how an operation ended: in its error_code or, if it gave none, by a std::system_error whose message
// names the operation and the path.
void tell(const file_failure& how, std::string_view path, std::error_code* caller);

// Makes a kernel call, again if a signal has interrupted it. A result below zero is an error.
template <class Call>
[[nodiscard]] std::error_code uninterrupted(Call call) noexcept {
  for (;;) {
    if (call() >= 0) return {};
    const std::error_code why = error_of_last_call();
    if (why != std::errc::interrupted) return why;
  }
}

}  // namespace weft::inline v1::io
