// What the process and its surroundings say about how to run: environment variables, CPUs.
#pragma once

#include <cstddef>

namespace weft::inline v1::sched {

inline constexpr std::size_t most_workers = 4096;

// How many, and who says so: "WEFT_WORKERS", "affinity mask", "cgroup quota".
struct worker_choice {
  std::size_t count;
  const char* from;
};
// WEFT_WORKERS if set (not to "") and sensible, else what choose_cpus() says.
[[nodiscard]] worker_choice choose_workers();
// The CPUs this process may use: its affinity mask, cut down to the cgroup's quota, at least 1.
[[nodiscard]] worker_choice choose_cpus();
[[nodiscard]] inline std::size_t default_workers() { return choose_workers().count; }
[[nodiscard]] inline std::size_t available_cpus() { return choose_cpus().count; }
// The quota in whole CPUs (rounded up) from the text of cpu.max ("max 100000", "150000 100000"), 0 if none.
[[nodiscard]] std::size_t cpus_from_quota(const char* text) noexcept;

// "1" yes; unset or "0" no; anything else is named on stderr and counts as no.
[[nodiscard]] bool flag_from_environment(const char* variable);

}  // namespace weft::inline v1::sched
