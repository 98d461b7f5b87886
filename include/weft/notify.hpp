// Tells tasks that something has changed, without saying what. The tasks look for themselves.
//
//   while (!queue_has_something()) changed.wait();      // one task
//   put_something(); changed.notify_one();              // another: never missed, even between the look and the wait
#pragma once

#include <chrono>
#include <concepts>
#include <source_location>
#include <utility>

#include <weft/detail/signal_core.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1 {

class notify {
 public:
  constexpr notify() noexcept = default;

  // Always cancellation points.
  void wait(std::source_location where = std::source_location::current()) {
    locks::wait_for(signal_.core(), {.takes = true}, locks::notify_kind, where);
  }
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point when,
                                std::source_location where = std::source_location::current()) {
    return locks::wait_until(signal_.core(), {.takes = true}, locks::notify_kind, when, where);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time,
                              std::source_location where = std::source_location::current()) {
    return wait_until(detail::time_after(time), where);
  }
  // Never a cancellation point. Ends the wait of the longest waiter. If nobody waits, the next wait ends at once; only
  // one notification is remembered, however many there were.
  void notify_one() noexcept { locks::set_for_one(signal_.core()); }
  // Never a cancellation point. Ends every wait that is under way; nothing is remembered.
  void notify_all() noexcept { locks::wake_present(signal_.core()); }

  // Arms of a select. An arm that wins has been notified.
  [[nodiscard]] auto on_notify() {
    return detail::sync_arm(
        locks::signal_operation(signal_.core(), locks::until_set{.takes = true}, locks::notify_kind));
  }
  template <std::invocable F>
  [[nodiscard]] auto on_notify(F f) {
    return detail::handled_arm(on_notify(), std::move(f));
  }

 private:
  locks::signal_room signal_;
};

}  // namespace weft::inline v1
