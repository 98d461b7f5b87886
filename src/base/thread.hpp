// Threads and thread-local values. Like those of atomic.hpp these are aliases: the explorer runs workers on virtual
// threads.
#pragma once

#if defined(WEFT_MODEL)
#include "explore/thread.hpp"
#else

#include <thread>

namespace weft::inline v1::base {

using thread = std::thread;

// For loops that wait for another thread and cannot sleep.
inline void yield_thread() noexcept { std::this_thread::yield(); }

// The value of a thread_local variable: declare it `thread_local per_thread<T>`. The explorer keeps one value for each
// virtual thread.
template <class T>
class per_thread {
 public:
  [[nodiscard]] T get() const noexcept { return value_; }
  void set(T value) noexcept { value_ = value; }

 private:
  T value_{};
};

}  // namespace weft::inline v1::base
#endif
