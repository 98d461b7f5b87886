// What the stress tests of sockets share.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "io/faults.hpp"
#include <weft/net/unix.hpp>

namespace io_stress {

using namespace support::usual;
using namespace support;

// Keeps the worker busy for up to `most` ns, so that whatever comes next meets the others at every moment of what they do.
inline void dawdle(base::random& random, std::uint32_t most) {
  const base::time_ns end = base::now() + random.below(most);
  while (base::now() < end) base::cpu_relax();
}

// Runs body(rounds) as a task at each worker count; together they make so many rounds. Sees that no descriptor is left.
template <class Body>
void in_rounds(std::size_t usual, std::size_t full, Body body) {
  const watchdog guard(std::chrono::seconds(is_soak() ? 7'000 : 250), "a stress test of sockets");
  const std::size_t each = soaked(usual, full) / std::size(worker_counts) + 1;
  const std::size_t before = open_descriptors();
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([&] { body(each); });
  });
  EXPECT_EQ(open_descriptors(), before) << "descriptors are left open";
}

}  // namespace io_stress
