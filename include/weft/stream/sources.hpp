// Where streams begin: count, enumerate, cycle, mute. With a writer as first argument they run in the calling task.
// Without one they spawn a task and return a reader.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <type_traits>
#include <utility>

#include <weft/detail/task_core.hpp>
#include <weft/stream/elements.hpp>

namespace weft::inline v1::stream {
namespace detail {

template <class T>
concept number = std::copyable<T> && std::totally_ordered<T> && requires(T a, const T& b) {
  a += b;
  a -= b;
  T(1);
};

template <number T>
[[nodiscard]] T checked_step(T step) {
  if (!(T() < step)) weft::detail::throw_usage("count goes up: its step is above zero");
  return step;
}

template <number T>
void count_to(writer<T>& out, T from, T to, T step, bool cyclic) {
  if (!(from < to)) return;
  for (T i = from;; i -= to - from) {
    for (; i < to; i += step)
      if (!out.send(i)) return;
    if (!cyclic) return;
  }
}

template <class R>
concept element_range = std::ranges::input_range<R> && !requires(R r) { r.close_error(); };

// Sends copies of the elements. Only elements that cannot be copied are moved, out of a container that it owns; the
// elements of a view belong to somebody else.
template <class T, class Range>
void send_all(writer<T>& out, Range& range, bool again) {
  constexpr bool owns = !std::ranges::view<Range> && !std::ranges::borrowed_range<Range>;
  do {
    for (auto&& e : range) {
      if constexpr (owns && !std::copy_constructible<T>) {
        if (!out.send(std::move(e))) return;
      } else {
        if (!out.send(T(std::as_const(e)))) return;
      }
    }
  } while (again && !std::ranges::empty(range));
}

struct count_source : combinator<make_count> {
  using combinator<make_count>::operator();
  template <number T>
  void operator()(writer<T> out, std::type_identity_t<T> from, std::type_identity_t<T> to,
                  std::type_identity_t<T> step = T(1), bool cyclic = false) const {
    telling(out, [&] { count_to<T>(out, from, to, checked_step<T>(step), cyclic); });
  }
  template <number T>
  [[nodiscard]] reader<T> operator()(T from, std::type_identity_t<T> to, std::type_identity_t<T> step = T(1),
                                     bool cyclic = false) const {
    return produce<T>(
        "count", [=, by = checked_step<T>(step)](writer<T>& out) { count_to<T>(out, from, to, by, cyclic); }, 0);
  }
};

struct enumerate_source : combinator<make_enumerate> {
  using combinator<make_enumerate>::operator();
  template <class T, element_range R>
  void operator()(writer<T> out, R range) const {
    telling(out, [&] { send_all<T>(out, range, false); });
  }
  template <element_range R>
  [[nodiscard]] auto operator()(R range) const {
    using T = std::ranges::range_value_t<R>;
    return produce<T>(
        "enumerate", [range = std::move(range)](writer<T>& out) mutable { send_all<T>(out, range, false); }, 0);
  }
};

struct cycle_source {
  template <class T, element_range R>
  void operator()(writer<T> out, R range) const {
    telling(out, [&] { send_all<T>(out, range, true); });
  }
  template <element_range R>
  [[nodiscard]] auto operator()(R range) const {
    using T = std::ranges::range_value_t<R>;
    return produce<T>(
        "cycle", [range = std::move(range)](writer<T>& out) mutable { send_all<T>(out, range, true); }, 0);
  }
};

struct count_forever_source {
  template <number T>
  void operator()(writer<T> out, std::type_identity_t<T> from, std::type_identity_t<T> step = T(1)) const {
    telling(out, [&] {
      for (T i = from; out.send(i); i += step) {}
    });
  }
  template <number T>
  [[nodiscard]] reader<T> operator()(T from, std::type_identity_t<T> step = T(1)) const {
    return produce<T>("count", [*this, from, step](writer<T>& out) { (*this)(out, from, step); }, 0);
  }
};

}  // namespace detail

// (from, to, step = 1, cyclic = false): sends from, from + step, … below `to`. If cyclic, it then starts again and
// keeps the remainder. As a stage, (): sends the number of elements, once they have ended.
inline constexpr detail::count_source count{};
inline constexpr detail::count_forever_source count_forever{};  // (from, step = 1)
// (range): sends its elements. As a stage, (): sends each element with its index, counted from 0.
inline constexpr detail::enumerate_source enumerate{};
inline constexpr detail::cycle_source cycle{};  // (range): sends its elements, again and again

// Sends nothing; ends when nobody reads.
template <channel_element T>
void mute(writer<T> out) {
  (void)prialt(~out);
}
template <channel_element T>
[[nodiscard]] reader<T> mute() {
  return detail::produce<T>("mute", [](writer<T>& out) { (void)prialt(~out); }, 0);
}

}  // namespace weft::inline v1::stream
