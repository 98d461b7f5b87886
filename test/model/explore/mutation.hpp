// The exploring twin of src/base/mutation.hpp: one named point at a time is broken on purpose.
//
// A point registers itself when its template is instantiated, so a test program lists exactly the points compiled into it
// (--points). The environment variable WEFT_MUTATION names the one that is active.
#pragma once

#include <cstddef>

#include "explore/ops.hpp"

namespace explore {

struct mutation_point {
  explicit mutation_point(const char* name, const char* kind) noexcept;
  const char* name;
  const char* kind;
  bool active;
  bool reached = false;
  mutation_point* next;
};

}  // namespace explore

namespace weft::inline v1::base {

template <std::size_t N>
struct point_name {
  char text[N];
  constexpr point_name(const char (&from)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = from[i];
  }
};

namespace twin {

struct order_kind {
  static constexpr const char* text = "order";
};
struct check_kind {
  static constexpr const char* text = "check";
};
struct step_kind {
  static constexpr const char* text = "step";
};

template <point_name Name, class Kind>
inline explore::mutation_point point{Name.text, Kind::text};

template <point_name Name, class Kind>
bool mutated() noexcept {
  explore::mutation_point& p = point<Name, Kind>;
  p.reached = true;
  if (explore::exploring) explore::at_point(p.name);
  return p.active;
}

}  // namespace twin

template <point_name Name, class Order>
Order order(Order o) noexcept {
  return twin::mutated<Name, twin::order_kind>() ? static_cast<Order>(std::memory_order_relaxed) : o;
}

template <point_name Name>
bool check(bool condition) noexcept {
  return twin::mutated<Name, twin::check_kind>() ? false : condition;
}

template <point_name Name, class F>
void step(F&& f) {
  if (!twin::mutated<Name, twin::step_kind>()) f();
}

}  // namespace weft::inline v1::base
