// Timers: moments to wait for, alone or as arms of a select. A timer lives where it is declared, and costs nothing
// while nobody waits for it.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <utility>

#include <weft/detail/task_core.hpp>
#include <weft/detail/timer_core.hpp>
#include <weft/select.hpp>

namespace weft::inline v1 {

// Expires at a moment, once and for all. Every wait for it after that completes at once.
class timer final : public select_arm {
 public:
  using clock = std::chrono::steady_clock;
  explicit timer(clock::time_point when) noexcept : operation_(when.time_since_epoch().count()) {}

  [[nodiscard]] clock::time_point deadline() const noexcept {
    return clock::time_point(clock::duration(operation_.deadline()));
  }
  [[nodiscard]] bool is_expired() const noexcept { return detail::clock_now() >= deadline(); }
  void restart(clock::time_point when) noexcept { operation_.set_deadline(when.time_since_epoch().count()); }
  template <class Rep, class Period>
  void restart(std::chrono::duration<Rep, Period> time) {
    restart(detail::time_after(time));
  }
  // A cancellation point.
  void wait(std::source_location where = std::source_location::current()) {
    (void)detail::select_call<waits::preference::in_order>(where, *this);
  }
  template <class F>
    requires std::invocable<F>
  [[nodiscard]] auto on_expire(F f) {
    return detail::handled_arm(detail::referring_arm<timer>(*this), std::move(f));
  }

  [[nodiscard]] detail::tried try_at_once() noexcept override { return detail::won_if(operation_.try_complete()); }
  [[nodiscard]] waits::arm prepare() noexcept override { return {&operation_, &operation_.node()}; }
  [[nodiscard]] bool complete() noexcept override { return true; }

 private:
  timing::timer_operation operation_;
};

// Makes a timer that expires after that time.
template <class Rep, class Period>
[[nodiscard]] timer after(std::chrono::duration<Rep, Period> time) {
  return timer(detail::time_after(time));
}

// Expires once in every period, counted from its start: a late wait does not shift the later ticks. Ticks that were
// missed while nobody waited are merged into one tick; missed() tells how many it stands for beyond itself.
class ticker final : public select_arm {
 public:
  using clock = std::chrono::steady_clock;
  explicit ticker(clock::duration period) : operation_(0), period_(period) {
    if (period <= clock::duration::zero()) detail::throw_usage("a ticker needs a period above zero");
    operation_.set_deadline(detail::time_after(period).time_since_epoch().count());
  }

  [[nodiscard]] clock::time_point next() const noexcept {
    return clock::time_point(clock::duration(operation_.deadline()));
  }
  [[nodiscard]] std::uint64_t missed() const noexcept { return missed_; }  // ticks merged into the last one
  // A cancellation point.
  void wait(std::source_location where = std::source_location::current()) {
    (void)detail::select_call<waits::preference::in_order>(where, *this);
  }
  template <class F>
    requires std::invocable<F>
  [[nodiscard]] auto on_tick(F f) {
    return detail::handled_arm(detail::referring_arm<ticker>(*this), std::move(f));
  }

  [[nodiscard]] detail::tried try_at_once() noexcept override { return detail::won_if(operation_.try_complete()); }
  [[nodiscard]] waits::arm prepare() noexcept override { return {&operation_, &operation_.node()}; }
  [[nodiscard]] bool complete() noexcept override {
    const auto late = (detail::clock_now().time_since_epoch() - clock::duration(operation_.deadline())) / period_;
    missed_ = late > 0 ? static_cast<std::uint64_t>(late) : 0;
    operation_.set_deadline(operation_.deadline() + (1 + static_cast<clock::rep>(missed_)) * period_.count());
    return true;
  }

 private:
  timing::timer_operation operation_;
  clock::duration period_;
  std::uint64_t missed_ = 0;
};

template <class Rep, class Period>
[[nodiscard]] ticker tick(std::chrono::duration<Rep, Period> period) {
  return ticker(detail::time_after(period) == ticker::clock::time_point::max()
                    ? ticker::clock::duration::max()
                    : std::chrono::ceil<ticker::clock::duration>(period));
}

}  // namespace weft::inline v1
