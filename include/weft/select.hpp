// Select: wait for the first of several things, and do exactly that one.
//
//   int v = 0;
//   auto limit = weft::after(50ms);
//   switch (weft::alt(in >> v, out << 7, ~other, limit).index()) { case 0: … }
//
//   weft::select(in.on_recv([](int got) { … }), limit.on_expire([] { … }));
//
// prialt prefers earlier arms. select is fair, and alt is another name for it: each of the arms that are ready has the
// same chance, whatever its position and however many others there are. That is a bound in expectation: an arm that
// stays ready among at most k ready arms wins every k-th time on average, and may by chance wait longer. An arm that
// must not wait for its turn, such as an order to stop, belongs first in a prialt. The arm of an empty handle is
// disabled. The handles and variables that an arm names must outlive it. All three are always cancellation points.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <source_location>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/detail/select_core.hpp>

namespace weft::inline v1 {

namespace detail {

// The outcome of trying an arm alone. `unknown` means that it must be prepared, and looked at with its lock.
enum class tried : std::uint8_t { disabled, not_ready, won, unknown };
[[nodiscard]] constexpr tried won_if(bool ready) noexcept { return ready ? tried::won : tried::not_ready; }

}  // namespace detail

// An arm is something to wait for, and what to do when it has won.
class select_arm {
 public:
  // Called before anything is prepared: completes the arm if it is ready.
  [[nodiscard]] virtual detail::tried try_at_once() { return detail::tried::unknown; }
  // Called once before each wait. `what` is nullptr if the arm is disabled.
  [[nodiscard]] virtual waits::arm prepare() = 0;
  // True if this arm wins when no other is ready (`otherwise`).
  [[nodiscard]] virtual bool wins_otherwise() const noexcept { return false; }
  // Called when this arm has won. Returns false if it won by a close or a death, and not by a value or a timer.
  [[nodiscard]] virtual bool complete() = 0;

 protected:
  select_arm() = default;
  select_arm(const select_arm&) = default;
  select_arm& operator=(const select_arm&) = default;
  ~select_arm() = default;
};

// Which arm won, counted from 0. True if it won by a value sent or received, or by a timer. False if its channel was
// closed or dead.
class selected {
 public:
  constexpr selected(std::size_t index, bool ok) noexcept : index_(index), ok_(ok) {}
  [[nodiscard]] constexpr std::size_t index() const noexcept { return index_; }
  [[nodiscard]] constexpr bool ok() const noexcept { return ok_; }
  [[nodiscard]] constexpr explicit operator bool() const noexcept { return ok_; }

 private:
  std::size_t index_;
  bool ok_;
};

namespace detail {

// The arm that wins when no other is ready. A select with this arm does not wait.
class otherwise_arm final : public select_arm {
 public:
  [[nodiscard]] waits::arm prepare() noexcept override { return {}; }
  [[nodiscard]] tried try_at_once() noexcept override { return tried::disabled; }
  [[nodiscard]] bool wins_otherwise() const noexcept override { return true; }
  [[nodiscard]] bool complete() noexcept override { return true; }
  template <class F>
  void tell(F& f, bool) {
    f();
  }
};

}  // namespace detail

inline detail::otherwise_arm otherwise;

namespace detail {

// An arm that refers to a value, and the value may end with the expression that made the arm.
class passing_arm : public select_arm {
 public:
  // The arm must not be kept, so nobody needs its address.
  void operator&() const = delete;

 protected:
  passing_arm() = default;
  passing_arm(const passing_arm&) = default;
  passing_arm& operator=(const passing_arm&) = default;
  ~passing_arm() = default;
};
template <class Arm>
concept passing = std::derived_from<std::remove_cvref_t<Arm>, passing_arm>;

template <class Arm>
concept arm = std::derived_from<std::remove_cvref_t<Arm>, select_arm>;
template <class Range>
concept arm_range = std::ranges::sized_range<Range> && !arm<Range> &&
                    (arm<std::ranges::range_reference_t<Range>> ||
                     std::derived_from<std::remove_pointer_t<std::ranges::range_value_t<Range>>, select_arm>);

// Tries one arm after the other, each alone. is_over() returns true when the look is over: there is a winner, or the
// rest must not be tried.
class first_look {
 public:
  explicit first_look(waits::reach how_far) noexcept : how_far_(how_far) {}
  [[nodiscard]] bool is_over(std::size_t i, tried t) noexcept {
    switch (t) {
      case tried::disabled: return false;
      case tried::not_ready: return how_far_ == waits::reach::first;
      case tried::won: winner_ = i; break;
      case tried::unknown: break;  // an arm after this one must not be preferred to it
    }
    return true;
  }
  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }

 private:
  waits::reach how_far_;
  std::size_t winner_ = waits::nothing_ready;
};

// The arms of one call, at most look_order::most_packed of them.
template <class First, class... Others>
class arm_pack {
 public:
  explicit arm_pack(First& first, Others&... others) noexcept
      : arms_{std::addressof(first), std::addressof(others)...} {}

  template <waits::preference P>
  [[nodiscard]] std::size_t short_look(waits::glance look) {
    first_look seen(look.how_far);
    const auto ends_it = [&](std::size_t i, auto& a) { return seen.is_over(i, a.try_at_once()); };
    if constexpr (P == waits::preference::in_order)
      each_until(ends_it);
    else
      (void)waits::look_order(look.order).find(size, [&](std::size_t i) {
        return at(i, [&](auto& a) { return ends_it(i, a); });
      });
    return seen.winner();
  }
  [[gnu::noinline]] std::size_t long_look(waits::preference p, waits::glance look, std::source_location where) {
    bool or_nothing = false;
    each_until([&](std::size_t, auto& a) { return or_nothing = a.wins_otherwise(); });
    const auto prepared = std::apply([](auto*... a) { return std::array<waits::arm, size>{a->prepare()...}; }, arms_);
    const std::size_t winner = waits::select_with_locks(prepared, p, waits::look_order(look.order), or_nothing, where);
    return winner == waits::nothing_ready ? otherwise_place() : winner;
  }
  [[nodiscard]] bool complete(std::size_t winner) {
    return at(winner, [](auto& a) { return a.complete(); });
  }

 private:
  static constexpr std::size_t size = 1 + sizeof...(Others);
  // Arms of one type are found by their index, without a branch that depends on the order that was drawn.
  static constexpr bool alike = (std::same_as<First, Others> && ...);

  // Calls f with the i-th arm.
  template <std::size_t I = 0, class F>
  decltype(auto) at(std::size_t i, F&& f) {
    if constexpr (alike)
      return f(*arms_[i]);
    else if constexpr (I + 1 == size)
      return f(*std::get<I>(arms_));
    else
      return i == I ? f(*std::get<I>(arms_)) : at<I + 1>(i, f);
  }
  // Calls f(index, arm) from front to back, until it returns true.
  template <class F>
  void each_until(F&& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (void)(f(I, *std::get<I>(arms_)) || ...);
    }(std::make_index_sequence<size>());
  }
  [[nodiscard]] std::size_t otherwise_place() {
    std::size_t place = 0;
    each_until([&](std::size_t i, auto& a) {
      place = i;
      return a.wins_otherwise();
    });
    return place;
  }

  std::conditional_t<alike, std::array<First*, size>, std::tuple<First*, Others*...>> arms_;
};

template <waits::preference P, class... Arms>
selected select_among(std::source_location where, Arms&... arms) {
  arm_pack<Arms...> pack(arms...);
  const waits::glance look = waits::begin_select(sizeof...(Arms), P);
  std::size_t winner = waits::nothing_ready;
  if (look.how_far != waits::reach::nowhere) [[likely]]
    winner = pack.template short_look<P>(look);
  if (winner == waits::nothing_ready) winner = pack.long_look(P, look, where);
  return {winner, pack.complete(winner)};
}

template <class Arm>
select_arm& as_arm(Arm& a) {
  if constexpr (std::is_pointer_v<Arm>)
    return *a;
  else
    return a;
}

template <waits::preference P, arm_range Range>
selected select_in(std::source_location where, Range& arms) {
  std::vector<select_arm*> all;
  all.reserve(std::ranges::size(arms));
  for (auto& a : arms) all.push_back(&as_arm(a));
  const waits::glance look = waits::begin_select(all.size(), P);
  waits::look_order order(look.order);
  std::vector<std::uint32_t> long_order;
  if (P == waits::preference::fair && all.size() > waits::look_order::most_packed) {
    long_order.resize(all.size());
    waits::draw_order(long_order);
    order = waits::look_order(long_order);
  }
  first_look seen(look.how_far);
  if (look.how_far != waits::reach::nowhere) [[likely]]
    (void)order.find(all.size(), [&](std::size_t i) { return seen.is_over(i, all[i]->try_at_once()); });
  std::size_t winner = seen.winner();
  if (winner == waits::nothing_ready) {
    std::vector<waits::arm> table;
    table.reserve(all.size());
    for (select_arm* a : all) table.push_back(a->prepare());
    const auto nothing = std::ranges::find_if(all, &select_arm::wins_otherwise);
    winner = waits::select_with_locks(table, P, order, nothing != all.end(), where);
    if (winner == waits::nothing_ready) winner = static_cast<std::size_t>(nothing - all.begin());
  }
  return {winner, all[winner]->complete()};
}

// For arms that have nothing to settle after they completed under the lock.
inline tried try_with_lock(waits::waitable& w) noexcept { return won_if(waits::look_with_lock(w)); }

// An arm that calls f when it has won.
template <class Arm, class F>
class handled_arm final : public select_arm {
 public:
  handled_arm(Arm a, F f) : arm_(std::move(a)), f_(std::move(f)) {}
  [[nodiscard]] waits::arm prepare() override { return arm_.prepare(); }
  [[nodiscard]] tried try_at_once() override { return arm_.try_at_once(); }
  [[nodiscard]] bool wins_otherwise() const noexcept override { return arm_.wins_otherwise(); }
  [[nodiscard]] bool complete() override {
    const bool ok = arm_.complete();
    arm_.tell(f_, ok);
    return ok;
  }

 private:
  Arm arm_;
  F f_;
};

// Refers to an arm that lives elsewhere.
template <class Arm>
class referring_arm final : public select_arm {
 public:
  explicit referring_arm(Arm& a) noexcept : arm_(&a) {}
  [[nodiscard]] tried try_at_once() override { return arm_->try_at_once(); }
  [[nodiscard]] waits::arm prepare() override { return arm_->prepare(); }
  [[nodiscard]] bool complete() override { return arm_->complete(); }
  template <class F>
  void tell(F& f, bool) {
    f();
  }

 private:
  Arm* arm_;
};

template <class Arm>
class conditional_arm final : public std::conditional_t<passing<Arm>, passing_arm, select_arm> {
 public:
  conditional_arm(bool enabled, Arm a) : arm_(std::move(a)), enabled_(enabled) {}
  [[nodiscard]] waits::arm prepare() override { return enabled_ ? arm_.prepare() : waits::arm{}; }
  [[nodiscard]] tried try_at_once() override { return enabled_ ? arm_.try_at_once() : tried::disabled; }
  [[nodiscard]] bool wins_otherwise() const noexcept override { return enabled_ && arm_.wins_otherwise(); }
  [[nodiscard]] bool complete() override { return arm_.complete(); }

 private:
  Arm arm_;
  bool enabled_;
};

// A parameter of the call that was left empty.
struct no_arm {};

template <class First, class... Others>
concept arms_of_call = (arm<First> && ((arm<Others> || std::same_as<Others, no_arm>) && ...)) ||
                       (arm_range<First> && (std::same_as<Others, no_arm> && ...));

template <waits::preference P, class... Arms>
selected select_call(std::source_location where, Arms&&... arms) {
  if constexpr ((arm_range<Arms> && ...)) {
    return select_in<P>(where, arms...);
  } else if constexpr (sizeof...(Arms) <= waits::look_order::most_packed) {
    return select_among<P>(where, arms...);
  } else {
    const std::array<select_arm*, sizeof...(Arms)> list{std::addressof(arms)...};
    return select_in<P>(where, list);
  }
}

// Arms may be variables or be made in the call. An arm that refers to a temporary value may only be made in the call.
template <class Arm>
constexpr bool outlives_the_call() {
  if constexpr (arm_range<Arm>)
    return !passing<std::remove_pointer_t<std::ranges::range_value_t<Arm>>>;
  else
    return !passing<Arm> || !std::is_lvalue_reference_v<Arm>;
}

// Drops the parameters that were left empty, which are the last ones.
template <waits::preference P, class... Arms, class... Given>
[[gnu::always_inline]] inline selected select_given(std::source_location where, Given&... given) {
  static_assert((outlives_the_call<Arms>() && ...),
                "this arm refers to a value that may be gone by now: write `w << std::move(v)` in the call of select "
                "itself, or let the arm have the value: w.on_send(std::move(v))");
  constexpr std::size_t n = (std::size_t{!std::same_as<Arms, no_arm>} + ...);
  return [&]<std::size_t... I>(std::tuple<Given&...> all, std::index_sequence<I...>) {
    return select_call<P>(where, std::get<I>(all)...);
  }(std::tie(given...), std::make_index_sequence<n>());
}

}  // namespace detail

// The arm takes part only if the condition holds.
template <detail::arm Arm>
[[nodiscard]] detail::conditional_arm<std::remove_cvref_t<Arm>> when(bool condition, Arm&& a) {
  return {condition, std::forward<Arm>(a)};
}
// As `otherwise`, and calls f when it wins.
template <class F>
  requires std::invocable<F>
[[nodiscard]] auto on_nothing(F f) {
  return detail::handled_arm(detail::otherwise_arm(), std::move(f));
}

// Each takes up to sixteen arms, or one range of arms (or of pointers to arms) of any length. They are functions, so
// `select(x);` is a call. The parameters are spelled out because no parameter with a default can follow a pack, and the
// place of the call has a default.
#define WEFT_SELECT(name, preferring)                                                                               \
  template <class A1, class A2 = detail::no_arm, class A3 = detail::no_arm, class A4 = detail::no_arm,              \
            class A5 = detail::no_arm, class A6 = detail::no_arm, class A7 = detail::no_arm,                        \
            class A8 = detail::no_arm, class A9 = detail::no_arm, class A10 = detail::no_arm,                       \
            class A11 = detail::no_arm, class A12 = detail::no_arm, class A13 = detail::no_arm,                     \
            class A14 = detail::no_arm, class A15 = detail::no_arm, class A16 = detail::no_arm>                     \
    requires detail::arms_of_call<A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16>            \
  [[gnu::always_inline]] inline selected name(                                                                      \
      A1&& a1, A2&& a2 = {}, A3&& a3 = {}, A4&& a4 = {}, A5&& a5 = {}, A6&& a6 = {}, A7&& a7 = {}, A8&& a8 = {},    \
      A9&& a9 = {}, A10&& a10 = {}, A11&& a11 = {}, A12&& a12 = {}, A13&& a13 = {}, A14&& a14 = {}, A15&& a15 = {}, \
      A16&& a16 = {}, std::source_location where = std::source_location::current()) {                               \
    return detail::select_given<preferring, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16>( \
        where, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16);                              \
  }

WEFT_SELECT(select, waits::preference::fair)
WEFT_SELECT(alt, waits::preference::fair)  // the same, by its name in CSP
WEFT_SELECT(prialt, waits::preference::in_order)
#undef WEFT_SELECT

}  // namespace weft::inline v1
