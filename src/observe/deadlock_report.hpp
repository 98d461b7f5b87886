// The text of the report on a deadlock.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "observe/deadlock_rule.hpp"
#include "observe/snapshot.hpp"

namespace weft::inline v1::observe {

// Both throw std::bad_alloc.
[[nodiscard]] std::string report_of(std::span<sched::scheduler* const> all, const proof& p);
// The report on cycles alone, in a process that goes on otherwise. The snapshots have stacks.
[[nodiscard]] std::string report_of_cycles(const std::vector<snapshot>& seen);

}  // namespace weft::inline v1::observe
