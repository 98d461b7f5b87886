// The one clock of Weft. The library, and what these headers compile into a program, read every deadline and every
// duration here. So a test that replaces time has one function to replace.
#pragma once

#include <chrono>

#include <weft/detail/config.hpp>

namespace weft::inline v1::detail {

using clock = std::chrono::steady_clock;

[[nodiscard]] WEFT_API clock::time_point clock_now() noexcept;

}  // namespace weft::inline v1::detail
