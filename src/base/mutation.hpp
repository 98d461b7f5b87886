// Named points at which the mutation run breaks a protocol on purpose (docs/verification.md, `./dev mutate`).
//
// In the product each of these returns its argument and does nothing else. The model build uses the explorer's twin of
// this header, which weakens one named point at a time: an order becomes relaxed, a fence or a check disappears.
#pragma once

#if defined(WEFT_MODEL)
#include "explore/mutation.hpp"
#else

#include <cstddef>

namespace weft::inline v1::base {

template <std::size_t N>
struct point_name {
  char text[N];
  constexpr point_name(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

// order<"ring.push.tail">(release) is the named order, and relaxed when mutated.
template <point_name Name, class Order>
constexpr Order order(Order o) noexcept {
  return o;
}

// check<"park.lost_wake">(condition) is the condition, and `false` when mutated.
template <point_name Name>
constexpr bool check(bool condition) noexcept {
  return condition;
}

// step<"idle.s1">(f) calls f(), and does nothing when mutated.
template <point_name Name, class F>
constexpr void step(F&& f) {
  f();
}

}  // namespace weft::inline v1::base
#endif
