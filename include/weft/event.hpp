// Events: tasks and threads wait until something has happened. An event may live on the stack of the one that waits.
//
//   weft::event ready;
//   auto task = weft::spawn([&] { …; ready.set(); });
//   ready.wait();
#pragma once

#include <chrono>
#include <concepts>
#include <source_location>
#include <utility>

#include <weft/detail/signal_core.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1 {

namespace detail {

// `Takes` means that the waiter takes the signal, so each set() ends one wait.
template <bool Takes>
class event_base {
 public:
  constexpr event_base() noexcept = default;

  // Always cancellation points.
  void wait(std::source_location where = std::source_location::current()) {
    locks::wait_for(signal_.core(), {.takes = Takes}, locks::event_kind, where);
  }
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point when,
                                std::source_location where = std::source_location::current()) {
    return locks::wait_until(signal_.core(), {.takes = Takes}, locks::event_kind, when, where);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time,
                              std::source_location where = std::source_location::current()) {
    return wait_until(time_after(time), where);
  }
  // Never cancellation points.
  void set() noexcept {
    if constexpr (Takes)
      locks::set_for_one(signal_.core());
    else
      locks::set_for_all(signal_.core());
  }
  void reset() noexcept { locks::reset(signal_.core()); }
  [[nodiscard]] bool is_set() noexcept { return locks::is_set(signal_.core()); }

  // Arms of a select. An arm that wins has ended its wait, as wait() does.
  [[nodiscard]] auto on_set() {
    return sync_arm(locks::signal_operation(signal_.core(), locks::until_set{.takes = Takes}, locks::event_kind));
  }
  template <std::invocable F>
  [[nodiscard]] auto on_set(F f) {
    return handled_arm(on_set(), std::move(f));
  }

 private:
  locks::signal_room signal_;
};

}  // namespace detail

// Manual reset: once the event is set, every wait ends at once until reset().
class event final : public detail::event_base<false> {};

// Auto reset: each set() ends one wait, that of the longest waiter. If nobody waits, it ends the next wait; several
// calls of set() before that count as one.
class auto_event final : public detail::event_base<true> {};

}  // namespace weft::inline v1
