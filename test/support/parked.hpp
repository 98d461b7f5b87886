// Parked tasks: how to be one until somebody cancels it, to count those of a runtime, and to see that one was
// cancelled.
#pragma once

#include <cstddef>

#include <weft/cancelled.hpp>
#include <weft/this_task.hpp>

#include "base/atomic.hpp"
#include "sched/scheduler.hpp"

namespace support {

// Called in a task. Only a cancellation ends it.
[[noreturn]] inline void wait_for_ever() {
  const weft::base::atomic<bool> never{false};
  for (;;) weft::park_if(never, false);
}

[[nodiscard]] bool throws_cancelled(auto&& f) {
  try {
    f();
  } catch (const weft::cancelled&) {
    return true;
  }
  return false;
}

// nullptr: a task that has not said who it is.
[[nodiscard]] inline bool is_parked(const weft::task::record* t) {
  return t != nullptr && weft::task::state_word::phase_of(t->word.load()) == weft::task::phase::parked;
}

[[nodiscard]] inline std::size_t parked_tasks(weft::sched::scheduler& s) {
  std::size_t count = 0;
  s.records().walk([&](const weft::task::record& t) { count += is_parked(&t) ? 1 : 0; });
  return count;
}

}  // namespace support
