// What ThreadSanitizer must know of one flow. It is an empty class in builds without it. Only annotate.hpp uses this.
#pragma once

#include "base/atomic.hpp"  // WEFT_TSAN

#if defined(WEFT_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace weft::inline v1::context {

#if defined(WEFT_TSAN)

class tsan_flow {
 public:
  void adopt_thread() noexcept { fiber_ = __tsan_get_current_fiber(); }
  void start() noexcept { fiber_ = __tsan_create_fiber(0); }
  void end() noexcept {
    __tsan_destroy_fiber(fiber_);
    fiber_ = nullptr;
  }
  // With flags 0 the switch synchronizes, as it does for the memory: one flow runs after the other on the same thread.
  void leave_for(tsan_flow& to) noexcept { __tsan_switch_to_fiber(to.fiber_, 0); }

 private:
  void* fiber_ = nullptr;
};

// TSan remembers accesses by fiber and address, so a second task on the same stack would look like a race with the
// first.
inline constexpr bool stacks_may_be_shared = false;

#else

class tsan_flow {
 public:
  void adopt_thread() noexcept {}
  void start() noexcept {}
  void end() noexcept {}
  void leave_for(tsan_flow&) noexcept {}
};

inline constexpr bool stacks_may_be_shared = true;

#endif

}  // namespace weft::inline v1::context
