// A process whose monitor does not look: what happens now, workers have seen to themselves.
#pragma once

namespace support {

// Holds the monitor of the only runtime until the end of this, which must be before the runtime's.
class held_monitor {
 public:
  held_monitor();
  ~held_monitor();
  held_monitor(const held_monitor&) = delete;
  held_monitor& operator=(const held_monitor&) = delete;
};

}  // namespace support
