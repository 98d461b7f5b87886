// Tells valgrind where stacks are, so that it does not take a switch for a huge allocation. Called once for each stack
// and mapping. Does nothing where valgrind's header is not installed.
#pragma once

#include "context/stack.hpp"

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>

namespace weft::inline v1::context {

inline bool running_on_valgrind() noexcept { return RUNNING_ON_VALGRIND != 0; }

inline void valgrind_know(stack& s) noexcept {
  if (s.valgrind_id == 0 && running_on_valgrind())
    s.valgrind_id = 1 + static_cast<std::uint32_t>(VALGRIND_STACK_REGISTER(s.base, s.base + s.size));
}
inline void valgrind_forget(stack& s) noexcept {
  if (s.valgrind_id != 0) VALGRIND_STACK_DEREGISTER(s.valgrind_id - 1);
}

}  // namespace weft::inline v1::context

#else

namespace weft::inline v1::context {

inline bool running_on_valgrind() noexcept { return false; }
inline void valgrind_know(stack&) noexcept {}
inline void valgrind_forget(stack&) noexcept {}

}  // namespace weft::inline v1::context

#endif
