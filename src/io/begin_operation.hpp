// What an operation does first that uses no descriptor's record, or none yet.
#pragma once

#include <source_location>
#include <system_error>

#include "sync/caller.hpp"

namespace weft::inline v1::io {

// A cancellation point, and the turn of others if the budget of the task is spent. A loop of cached reads would keep its
// worker otherwise.
inline void begin_operation(std::source_location where) {
  if (waits::undisturbed() == nullptr) [[unlikely]]
    locks::pass_suspension_point(where);
}
inline void begin_operation(std::source_location where, std::error_code& why) {
  why.clear();
  begin_operation(where);
}

}  // namespace weft::inline v1::io
