// For a wait that ends as soon as another thread has executed a few more instructions. It spins; if that thread was
// preempted, it yields so that the thread can run.
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
