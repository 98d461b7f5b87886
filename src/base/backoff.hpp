// For a wait that is over as soon as another thread has done a few more instructions: spin, and if that thread was preempted,
// let it run.
#pragma once

#include <thread>

#include "base/atomic.hpp"

namespace weft::inline v1::base {

class backoff {
 public:
  void pause() noexcept {
    cpu_relax();
#if !defined(WEFT_MODEL)
    if (++tries_ > spins) std::this_thread::yield();
#endif
  }

 private:
  [[maybe_unused]] static constexpr int spins = 64;
  [[maybe_unused]] int tries_ = 0;
};

}  // namespace weft::inline v1::base
