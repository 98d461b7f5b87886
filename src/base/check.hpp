// Checks: always on for misuse by the caller, in checked builds only for our own invariants.
#pragma once

#include <source_location>

namespace weft::inline v1::base {

#if defined(WEFT_CHECKED)
inline constexpr bool checked_build = true;
#else
inline constexpr bool checked_build = false;
#endif

// Prints "weft: <what> (file:line in function)" with an optional "to do" line and aborts.
[[noreturn]] void fail(const char* what, std::source_location where = std::source_location::current()) noexcept;
[[noreturn]] void failf(const char* format, ...) noexcept __attribute__((format(printf, 1, 2)));

// Checks an invariant of ours. It costs nothing outside of checked builds.
inline void invariant(bool holds, const char* what,
                      std::source_location where = std::source_location::current()) noexcept {
  if constexpr (checked_build)
    if (!holds) [[unlikely]]
      fail(what, where);
}

// Checks for a mistake of the caller, in every build.
inline void require(bool holds, const char* what,
                    std::source_location where = std::source_location::current()) noexcept {
  if (!holds) [[unlikely]]
    fail(what, where);
}

}  // namespace weft::inline v1::base
