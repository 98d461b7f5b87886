// Stages that work by the clock: debounce, throttle.
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include <weft/stream/stage.hpp>
#include <weft/timer.hpp>

namespace weft::inline v1::stream {
namespace detail {

struct debounce_core : same_type {
  static constexpr std::string_view name = "debounce";
  std::chrono::nanoseconds quiet;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    for (bool ended = false; !ended;) {
      std::optional<T> newest = next(in, out);
      if (!newest) return;
      for (bool loud = true; loud && !ended;) {
        std::optional<T> got;
        const std::size_t won = prialt(~out, in.on_recv(catcher<T>(got, ended)), after(quiet)).index();
        if (won == 0) return;
        if (got) newest.emplace(std::move(*got));
        loud = won == 1;
      }
      if (!out.send(std::move(*newest))) return;
    }
    throw_if_failed(in);
  }
};
struct make_debounce {
  template <class Rep, class Period>
  auto operator()(std::chrono::duration<Rep, Period> quiet) const {
    return debounce_core{{}, std::chrono::ceil<std::chrono::nanoseconds>(quiet)};
  }
};

struct throttle_core : same_type {
  static constexpr std::string_view name = "throttle";
  std::chrono::nanoseconds period;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    while (std::optional<T> v = next(in, out)) {
      if (!out.send(std::move(*v))) return;
      if (prialt(~out, after(period)).index() == 0) return;  // from the delivery on, so a slow reader gets no burst
    }
  }
};
struct make_throttle {
  template <class Rep, class Period>
  auto operator()(std::chrono::duration<Rep, Period> period) const {
    return throttle_core{{}, std::chrono::ceil<std::chrono::nanoseconds>(period)};
  }
};

}  // namespace detail

// (time): sends the newest element once nothing has come for that time.
inline constexpr detail::combinator<detail::make_debounce> debounce{};
// (time): sends at most one element in that time; the others wait.
inline constexpr detail::combinator<detail::make_throttle> throttle{};

}  // namespace weft::inline v1::stream
