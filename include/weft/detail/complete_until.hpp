#pragma once

#include <chrono>
#include <source_location>

#include <weft/detail/select_core.hpp>
#include <weft/detail/timer_core.hpp>

namespace weft::inline v1::detail {

// Waits for an operation, but not beyond that time. Returns false if the time was up first. A cancellation point.
template <class Operation>
[[nodiscard]] bool complete_until(Operation& op, std::chrono::steady_clock::time_point when,
                                  std::source_location where) {
  timing::timer_operation limit(when.time_since_epoch().count());
  const waits::arm arms[] = {{&op, &op.node()}, {&limit, &limit.node()}};
  return waits::select_in_order(arms, where) == 0;
}

}  // namespace weft::inline v1::detail
