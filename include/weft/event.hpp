// Events: something that happened, for those who wait for it. May live on the stack of the one who waits.
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

// Takes: each set() ends one wait.
template <bool Takes>
class event_base {
 public:
  constexpr event_base() noexcept = default;

  // Cancellation points, always.
  void wait(std::source_location where = std::source_location::current()) {
    locks::wait_for(signal_.core(), {.takes = Takes}, "event", where);
  }
  [[nodiscard]] bool wait_until(std::chrono::steady_clock::time_point when,
                                std::source_location where = std::source_location::current()) {
    return locks::wait_until(signal_.core(), {.takes = Takes}, "event", when, where);
  }
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time,
                              std::source_location where = std::source_location::current()) {
    return wait_until(time_after(time), where);
  }
  // Never.
  void set() noexcept {
    if constexpr (Takes)
      locks::set_for_one(signal_.core());
    else
      locks::set_for_all(signal_.core());
  }
  void reset() noexcept { locks::reset(signal_.core()); }
  [[nodiscard]] bool is_set() noexcept { return locks::is_set(signal_.core()); }

  // Arms of a select: the one that wins has waited.
  [[nodiscard]] auto on_set() {
    return sync_arm(locks::signal_operation(signal_.core(), locks::until_set{.takes = Takes}, "event"));
  }
  template <std::invocable F>
  [[nodiscard]] auto on_set(F f) {
    return handled_arm(on_set(), std::move(f));
  }

 private:
  locks::signal_room signal_;
};

}  // namespace detail

// Manual reset: once set, every wait ends at once, until reset().
class event final : public detail::event_base<false> {};

// Auto reset: a set() ends one wait: that of the one who has waited longest, or else the next. Several before that are one.
class auto_event final : public detail::event_base<true> {};

}  // namespace weft::inline v1
