// Errors of I/O that are Weft's own. Everything else has the numbers of errno, in std::generic_category().
#pragma once

#include <system_error>

#include <weft/detail/config.hpp>

namespace weft::inline v1 {

enum class io_errc {
  stream_ended = 1,  // the stream ended before everything was read that was asked for
};

[[nodiscard]] WEFT_API const std::error_category& io_category() noexcept;
[[nodiscard]] inline std::error_code make_error_code(io_errc e) noexcept {
  return {static_cast<int>(e), io_category()};
}

}  // namespace weft::inline v1

template <>
struct std::is_error_code_enum<weft::io_errc> : std::true_type {};
