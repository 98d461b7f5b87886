// Named points at which the mutation run breaks a protocol on purpose (docs/verification.md, `./dev mutate`).
//
// In the product each of these is its argument and nothing else. In the model build the explorer's twin of this header
// is used, and one named point at a time is weakened: an order becomes relaxed, a fence or a check disappears.
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

// order<"ring.push.tail">(release): the named order; relaxed when mutated.
template <point_name Name, class Order>
constexpr Order order(Order o) noexcept {
  return o;
}

// check<"park.lost_wake">(condition): the condition; `false` when mutated.
template <point_name Name>
constexpr bool check(bool condition) noexcept {
  return condition;
}

// step<"idle.s1">(f): does f(); nothing when mutated.
template <point_name Name, class F>
constexpr void step(F&& f) {
  f();
}

}  // namespace weft::inline v1::base
#endif
