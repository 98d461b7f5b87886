// A process whose monitor does not look: what happens meanwhile, the workers have done without its help.
#pragma once

#include "sched/scheduler.hpp"

namespace support {

// Holds the monitor of the only runtime, asleep, until this object ends, which must be before the runtime ends.
class held_monitor {
 public:
  explicit held_monitor(const weft::sched::scheduler& of);
  ~held_monitor();
  held_monitor(const held_monitor&) = delete;
  held_monitor& operator=(const held_monitor&) = delete;
};

}  // namespace support
