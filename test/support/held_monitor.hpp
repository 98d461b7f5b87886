// A process whose monitor does not look: what happens now, workers have seen to themselves.
#pragma once

#include "sched/scheduler.hpp"

namespace support {

// Holds the monitor of the only runtime, asleep, until the end of this, which must be before the runtime's.
class held_monitor {
 public:
  explicit held_monitor(const weft::sched::scheduler& of);
  ~held_monitor();
  held_monitor(const held_monitor&) = delete;
  held_monitor& operator=(const held_monitor&) = delete;
};

}  // namespace support
