// A latch counts down to zero, once. Any number of tasks and threads can wait for that. It may live on the stack of the
// one that waits.
#pragma once

#include <chrono>
#include <cstddef>
#include <source_location>

#include <weft/detail/signal_core.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1 {

class WEFT_API latch {
 public:
  explicit latch(std::size_t count);

  // Never cancellation points. Counting below zero is a usage_error.
  void count_down(std::size_t n = 1);
  [[nodiscard]] bool try_wait() noexcept { return locks::is_set(signal_.core()); }
  // Always cancellation points. A task that is cancelled before it arrives has not counted down; one that is cancelled
  // while it waits has.
  void wait(std::source_location where = std::source_location::current()) {
    locks::wait_for(signal_.core(), locks::until_set{}, locks::latch_kind, where);
  }
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point when,
                                std::source_location where = std::source_location::current()) {
    return locks::wait_until(signal_.core(), locks::until_set{}, locks::latch_kind, when, where);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time,
                              std::source_location where = std::source_location::current()) {
    return wait_until(detail::time_after(time), where);
  }
  void arrive_and_wait(std::size_t n = 1, std::source_location where = std::source_location::current());

 private:
  friend struct detail::observer;

  locks::room<1> count_;
  locks::signal_room signal_;
};

}  // namespace weft::inline v1
