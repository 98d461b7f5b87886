// Streams against the clock: debounce, throttle.
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
      if (prialt(~out, after(period)).index() == 0) return;  // counted from the delivery: a slow reader gets no burst
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

inline constexpr detail::combinator<detail::make_debounce>
    debounce{};  // (time): the newest, once nothing came for that long
inline constexpr detail::combinator<detail::make_throttle>
    throttle{};  // (time): at most one in that time; the rest wait

}  // namespace weft::inline v1::stream
