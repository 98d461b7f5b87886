// Select: wait for the first of several things, and do exactly that one.
//
//   int v = 0;
//   auto limit = weft::after(50ms);
//   switch (weft::alt(in >> v, out << 7, ~other, limit).index()) { case 0: … }
//
//   weft::select(in.on_recv([](int got) { … }), limit.on_expire([] { … }));
//
// prialt prefers earlier arms, alt and select are fair: of n arms one that stays ready wins every n-th time or more often. What must not
// wait for its turn, such as an order to stop, stands first in a prialt. An arm of an empty handle is disabled. The handles and
// variables an arm names must outlive it. Cancellation points, always.
//
// One name alone in parentheses would declare a variable of that name: for a single timer or list of arms write
// `weft::alt{arms};`, or use what it returns.
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

// What became of an arm that was tried alone. unknown: it must be prepared, and looked at with its lock.
enum class tried : std::uint8_t { disabled, not_ready, won, unknown };
[[nodiscard]] constexpr tried won_if(bool ready) noexcept { return ready ? tried::won : tried::not_ready; }

// What an arm is: something to wait for, and what to do when it has won.
class select_arm {
 public:
  // Before anything is prepared: completes if it is ready.
  [[nodiscard]] virtual tried try_at_once() { return tried::unknown; }
  // Called once before each wait; `what` is nullptr if the arm is disabled.
  [[nodiscard]] virtual waits::arm prepare() = 0;
  // This one wins when no other is ready (`otherwise`).
  [[nodiscard]] virtual bool wins_otherwise() const noexcept { return false; }
  // This arm has won. False: by a close or a death, not by a value or a timer.
  [[nodiscard]] virtual bool complete() = 0;

 protected:
  select_arm() = default;
  select_arm(const select_arm&) = default;
  select_arm& operator=(const select_arm&) = default;
  ~select_arm() = default;
};

// Which arm it was, counted from 0. True: by a value sent or received or a timer. False: its channel was closed or dead.
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

// The arm that wins when no other is ready: the select then does not wait.
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
inline otherwise_arm otherwise;

namespace detail {

template <class Arm>
concept arm = std::derived_from<std::remove_cvref_t<Arm>, select_arm>;
template <class Range>
concept arm_range = std::ranges::sized_range<Range> && !arm<Range> &&
                    (arm<std::ranges::range_reference_t<Range>> ||
                     std::derived_from<std::remove_pointer_t<std::ranges::range_value_t<Range>>, select_arm>);

// Tries arm after arm, each alone. True: the look is over, with a winner or because the rest must not be tried.
class first_look {
 public:
  explicit first_look(waits::reach how_far) noexcept : how_far_(how_far) {}
  [[nodiscard]] bool is_over(std::size_t i, tried t) noexcept {
    switch (t) {
      case tried::disabled: return false;
      case tried::not_ready: return how_far_ == waits::reach::first;
      case tried::won: winner_ = i; break;
      case tried::unknown: break;  // whoever comes after it must not be preferred
    }
    return true;
  }
  [[nodiscard]] std::size_t winner() const noexcept { return winner_; }

 private:
  waits::reach how_far_;
  std::size_t winner_ = waits::nothing_ready;
};

// The arms of one select.
template <class... Arms>
class arm_pack {
 public:
  explicit arm_pack(Arms&... arms) noexcept : arms_(arms...) {}

  [[nodiscard]] std::size_t short_look(waits::glance look) {
    return look_around(look, std::index_sequence_for<Arms...>());
  }
  [[gnu::noinline]] std::size_t long_look(waits::preference p, waits::glance look, std::source_location where) {
    const bool or_nothing = std::apply([](auto&... a) { return (a.wins_otherwise() || ...); }, arms_);
    const std::array<waits::arm, sizeof...(Arms)> prepared =
        std::apply([](auto&... a) { return std::array<waits::arm, sizeof...(Arms)>{a.prepare()...}; }, arms_);
    return waits::select_with_locks(prepared, p, look.start, or_nothing, where);
  }

 private:
  template <std::size_t... Index>
  std::size_t look_around(waits::glance look, std::index_sequence<Index...>) {
    first_look seen(look.how_far);
    (void)(((Index >= look.start && seen.is_over(Index, std::get<Index>(arms_).try_at_once())) || ...) ||
           ((Index < look.start && seen.is_over(Index, std::get<Index>(arms_).try_at_once())) || ...));
    return seen.winner();
  }

  std::tuple<Arms&...> arms_;
};

template <waits::preference P, class... Arms>
selected select_among(std::source_location where, Arms&... arms) {
  arm_pack<Arms...> pack(arms...);
  const waits::glance look = waits::begin_select(sizeof...(Arms), P);
  std::size_t winner = waits::nothing_ready;
  if (look.how_far != waits::reach::nowhere) [[likely]]
    winner = pack.short_look(look);
  if (winner == waits::nothing_ready) winner = pack.long_look(P, look, where);
  std::size_t i = 0, index = 0;
  bool ok = false;
  bool told = false;
  const auto complete = [&](auto& a) {
    if (!told && (winner == waits::nothing_ready ? a.wins_otherwise() : i == winner)) {
      told = true;
      index = i;
      ok = a.complete();
    }
    ++i;
  };
  (complete(arms), ...);
  return {index, ok};
}

template <class Arm>
select_arm& as_arm(Arm& a) {
  if constexpr (std::is_pointer_v<Arm>)
    return *a;
  else
    return a;
}

inline std::size_t short_look(std::span<select_arm* const> arms, waits::glance look) {
  first_look seen(look.how_far);
  for (std::size_t n = 0; n < arms.size(); ++n)
    if (const std::size_t i = (look.start + n) % arms.size(); seen.is_over(i, arms[i]->try_at_once())) break;
  return seen.winner();
}

template <waits::preference P, arm_range Range>
selected select_in(std::source_location where, Range& arms) {
  std::vector<select_arm*> all;
  all.reserve(std::ranges::size(arms));
  for (auto& a : arms) all.push_back(&as_arm(a));
  const waits::glance look = waits::begin_select(all.size(), P);
  std::size_t winner = waits::nothing_ready;
  if (look.how_far != waits::reach::nowhere) [[likely]]
    winner = short_look(all, look);
  if (winner == waits::nothing_ready) {
    std::vector<waits::arm> table;
    table.reserve(all.size());
    for (select_arm* a : all) table.push_back(a->prepare());
    const auto nothing = std::ranges::find_if(all, &select_arm::wins_otherwise);
    winner = waits::select_with_locks(table, P, look.start, nothing != all.end(), where);
    if (winner == waits::nothing_ready) winner = static_cast<std::size_t>(nothing - all.begin());
  }
  return {winner, all[winner]->complete()};
}

// For arms of which nothing is left to be settled.
inline tried try_with_lock(waits::waitable& w) noexcept {
  w.lock();
  const bool ready = w.try_locked();
  w.unlock();
  return won_if(ready);
}

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

// Stands for an arm that lives elsewhere.
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
class conditional_arm final : public select_arm {
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

template <class... Arms>
concept arms = (sizeof...(Arms) > 0) && ((arm<Arms> && ...) || (sizeof...(Arms) == 1 && (arm_range<Arms> && ...)));

template <waits::preference P, class... Arms>
selected select_call(std::source_location where, Arms&... arms) {
  if constexpr ((arm_range<Arms> && ...))
    return select_in<P>(where, arms...);
  else
    return select_among<P>(where, arms...);
}

}  // namespace detail

// The arm only if the condition holds.
template <detail::arm Arm>
[[nodiscard]] detail::conditional_arm<std::remove_cvref_t<Arm>> when(bool condition, Arm&& a) {
  return {condition, std::forward<Arm>(a)};
}
// otherwise, with something to do.
template <class F>
  requires std::invocable<F>
[[nodiscard]] auto on_nothing(F f) {
  return detail::handled_arm(otherwise_arm(), std::move(f));
}

// Each takes arms, or one range of arms (or of pointers to arms), and is the `selected` it ends with. Classes only because a
// function cannot have a place behind a list of arms.
template <class... Arms>
class prialt : public selected {
 public:
  explicit prialt(Arms&&... arms, std::source_location where = std::source_location::current())
      : selected(detail::select_call<waits::preference::in_order>(where, arms...)) {}
};
template <class... Arms>
  requires detail::arms<Arms...>
prialt(Arms&&...) -> prialt<Arms...>;

template <class... Arms>
class alt : public selected {
 public:
  explicit alt(Arms&&... arms, std::source_location where = std::source_location::current())
      : selected(detail::select_call<waits::preference::fair>(where, arms...)) {}
};
template <class... Arms>
  requires detail::arms<Arms...>
alt(Arms&&...) -> alt<Arms...>;

template <class... Arms>
class select : public selected {
 public:
  explicit select(Arms&&... arms, std::source_location where = std::source_location::current())
      : selected(detail::select_call<waits::preference::fair>(where, arms...)) {}
};
template <class... Arms>
  requires detail::arms<Arms...>
select(Arms&&...) -> select<Arms...>;

}  // namespace weft::inline v1
