// What the process and its surroundings say about how to run: environment variables and CPUs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::inline v1 {
enum class io_backend : std::uint8_t;  // weft/runtime.hpp
}

namespace weft::inline v1::sched {

inline constexpr std::size_t most_workers = 4096;

// A number of workers and its source: "WEFT_WORKERS", "affinity mask" or "cgroup quota".
struct worker_choice {
  std::size_t count;
  const char* from;
};
// The value of WEFT_WORKERS if that is set, not empty and sensible. Otherwise the answer of choose_cpus().
[[nodiscard]] worker_choice choose_workers();
// The CPUs this process may use: its affinity mask, cut down to the cgroup's quota, at least 1.
[[nodiscard]] worker_choice choose_cpus();
[[nodiscard]] inline std::size_t default_workers() { return choose_workers().count; }
[[nodiscard]] inline std::size_t available_cpus() { return choose_cpus().count; }
// The quota in whole CPUs, rounded up, from the text of cpu.max ("max 100000", "150000 100000"). 0 if there is none.
[[nodiscard]] std::size_t cpus_from_quota(const char* text) noexcept;

// The value of WEFT_IO: auto, epoll or uring. Unset or empty means auto. Any other value is reported on stderr and counts
// as auto.
[[nodiscard]] io_backend io_from_environment();

// "1" means yes; unset or "0" means no. Any other value is reported on stderr and counts as no.
[[nodiscard]] bool flag_from_environment(const char* variable);

// WEFT_DEADLOCK_ABORT: "0" means no; unset or "1" means yes. Any other value is reported on stderr and counts as yes.
[[nodiscard]] bool aborts_on_deadlock();

}  // namespace weft::inline v1::sched
