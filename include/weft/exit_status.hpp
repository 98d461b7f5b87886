// How a child process has ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

class exit_status {
 public:
  constexpr exit_status() noexcept = default;  // unknown
  [[nodiscard]] static constexpr exit_status exited(int code) noexcept { return {how::exited, code}; }
  [[nodiscard]] static constexpr exit_status signalled(int number) noexcept { return {how::signalled, number}; }

  // It has ended by itself, with the code 0.
  [[nodiscard]] constexpr bool ok() const noexcept { return how_ == how::exited && number_ == 0; }
  // The code with which it has ended by itself.
  [[nodiscard]] constexpr std::optional<int> code() const noexcept {
    return how_ == how::exited ? std::optional(number_) : std::nullopt;
  }
  // The number of the signal that has ended it.
  [[nodiscard]] constexpr std::optional<int> signal() const noexcept {
    return how_ == how::signalled ? std::optional(number_) : std::nullopt;
  }
  // Somebody else in this process has waited for the child and has got its status, or this process ignores SIGCHLD. All
  // that is known is that the child has ended.
  [[nodiscard]] constexpr bool is_unknown() const noexcept { return how_ == how::unknown; }

  // "exited with code 1", "ended by signal 9 (Killed)", "ended, and somebody else has taken its status"
  [[nodiscard]] WEFT_API std::string to_string() const;
  [[nodiscard]] friend constexpr bool operator==(const exit_status&, const exit_status&) noexcept = default;

 private:
  enum class how : std::uint8_t { unknown, exited, signalled };
  constexpr exit_status(how h, int number) noexcept : how_(h), number_(number) {}
  how how_ = how::unknown;
  int number_ = 0;
};

}  // namespace weft::inline v1
