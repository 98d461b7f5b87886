// Run several callables at once, and wait for all of them or for the first of them. Each runs as a task of a scope made
// for the call, so none outlives the call.
//
//   auto [a, b] = weft::join_all([&] { return fetch(x); }, [&] { return fetch(y); });
//   auto quickest = weft::race([&] { return ask(near); }, [&] { return ask(far); });
//
// Each function takes callables, or one range of callables. A callable that returns void has the result std::monostate;
// a range of such callables has no result. All are cancellation points: cancelling the caller cancels the tasks.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <weft/scope.hpp>
#include <weft/select.hpp>

namespace weft::inline v1 {

// How one of several tasks ended: with a value or an exception.
template <class T>
class [[nodiscard]] settled {
 public:
  using value_type = std::conditional_t<std::is_void_v<T>, std::monostate, std::remove_cv_t<T>>;  // may be a reference

  [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
  // Throws the exception of the task, if it ended with one.
  [[nodiscard]] value_type& value() & {
    rethrow();
    return get(content_);
  }
  [[nodiscard]] const value_type& value() const& {
    rethrow();
    return get(content_);
  }
  [[nodiscard]] value_type&& value() && {
    rethrow();
    return static_cast<value_type&&>(get(content_));
  }
  // The exception of the task; nullptr if there is a value.
  [[nodiscard]] std::exception_ptr error() const noexcept {
    const auto* e = std::get_if<1>(&content_);
    return e == nullptr ? nullptr : *e;
  }

  // Calls f() and keeps its value or its exception. `cancelled` is not kept; it propagates.
  template <class F>
  static settled of(F& f) {
    try {
      if constexpr (std::is_void_v<T>) {
        std::invoke(f);
        return settled(std::in_place_index<0>);
      } else if constexpr (std::is_reference_v<T>) {
        auto&& referred = std::invoke(f);
        return settled(std::in_place_index<0>, std::addressof(referred));
      } else {
        return settled(std::in_place_index<0>, std::invoke(f));
      }
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      return settled(std::in_place_index<1>, std::current_exception());
    }
  }

 private:
  template <std::size_t I, class... Arguments>
  explicit settled(std::in_place_index_t<I> which, Arguments&&... arguments)
      : content_(which, std::forward<Arguments>(arguments)...) {}
  void rethrow() const {
    if (auto e = error()) std::rethrow_exception(e);
  }
  template <class Content>
  static auto& get(Content& content) {
    if constexpr (std::is_reference_v<T>)
      return *std::get<0>(content);
    else
      return std::get<0>(content);
  }
  using stored = std::conditional_t<std::is_reference_v<T>, std::add_pointer_t<T>, value_type>;
  std::variant<stored, std::exception_ptr> content_;
};

namespace detail {

template <class F>
using result_without_arguments = std::invoke_result_t<std::decay_t<F>&>;

template <class R>
concept callables =
    std::ranges::input_range<R> && std::invocable<std::ranges::range_value_t<R>&> && !std::invocable<std::decay_t<R>&>;
template <class R>
using result_of_each = result_without_arguments<std::ranges::range_value_t<R>>;

template <class T>
decltype(auto) join_kept(child<T>& c) {
  if constexpr (std::is_void_v<T>) {
    c.join();
    return std::monostate();
  } else {
    return c.join();
  }
}
template <class T>
using kept = decltype(join_kept(std::declval<child<T>&>()));

// Wraps f so that what it throws becomes a value.
template <class F>
auto settling(F&& f) {
  return [f = std::forward<F>(f)]() mutable { return settled<result_without_arguments<F>>::of(f); };
}

// Calls take(f) for each element of a range. The elements are moved if the range is a temporary that owns them.
template <class Range, class Take>
void take_each(Range&& range, Take&& take) {
  constexpr bool gives_away = !std::is_lvalue_reference_v<Range> && !std::ranges::view<Range> &&
                              std::is_lvalue_reference_v<std::ranges::range_reference_t<Range>>;
  for (auto&& f : range) {
    if constexpr (gives_away)
      take(std::move(f));
    else
      take(std::forward<decltype(f)>(f));
  }
}

// Spawns each element of a range.
template <class Range>
auto spawn_each(scope& s, Range&& range) {
  std::vector<child<result_of_each<Range>>> children;
  take_each(std::forward<Range>(range), [&]<class F>(F&& f) { children.push_back(s.spawn(std::forward<F>(f))); });
  return children;
}
template <class Range>
auto spawn_each_settling(scope& s, Range&& range) {
  std::vector<child<settled<result_of_each<Range>>>> children;
  take_each(std::forward<Range>(range),
            [&]<class F>(F&& f) { children.push_back(s.spawn(settling(std::forward<F>(f)))); });
  return children;
}

// The common result type of callables of which one is to win.
template <class F, class... More>
struct same_result {
  using type = result_without_arguments<F>;
  static_assert((std::same_as<type, result_without_arguments<More>> && ...),
                "these callables must have the same result type: whichever is first, its result is returned");
};
template <class... Fs>
auto spawn_these_settling(scope& s, Fs&&... fs) {
  std::vector<child<settled<typename same_result<Fs...>::type>>> children;
  children.reserve(sizeof...(Fs));
  (children.push_back(s.spawn(settling(std::forward<Fs>(fs)))), ...);
  return children;
}

// The container for the results of a range.
template <class T>
struct results_of {
  static_assert(!std::is_reference_v<T>,
                "a range of references cannot be returned: have the callables return pointers");
  using type = std::vector<std::remove_cv_t<T>>;
};

template <class T>
std::size_t first_to_end(const std::vector<child<T>>& children) {
  std::vector<end_arm> ends;
  ends.reserve(children.size());
  for (const child<T>& c : children) ends.push_back(~c);
  return select(ends).index();
}

// Runs in the body of a scope, and returns how the first child to end has ended. What the other children return or
// throw afterwards is dropped.
template <class T>
settled<T> race_in(scope& s, std::vector<child<settled<T>>> children) {
  if (children.empty()) throw_usage("race was given nothing to run");
  settled<T> outcome = children[first_to_end(children)].join();
  s.cancel();
  return outcome;
}

// Runs in the body of a scope, and returns the first success.
template <class T>
settled<T> any_in(scope& s, std::vector<child<settled<T>>> children) {
  if (children.empty()) throw_usage("any was given nothing to run");
  std::vector<std::exception_ptr> errors;
  errors.reserve(children.size());
  while (!children.empty()) {
    const auto first = children.begin() + static_cast<std::ptrdiff_t>(first_to_end(children));
    settled<T> outcome = first->join();
    if (outcome) {
      s.cancel();
      return outcome;
    }
    errors.push_back(outcome.error());
    children.erase(first);
  }
  throw scope_failures(std::move(errors));
}

}  // namespace detail

// Returns the results of all. The first callable to throw cancels the others; its exception is thrown when they have
// ended.
template <class... Fs>
  requires(std::invocable<std::decay_t<Fs>&> && ...)
auto join_all(Fs&&... fs) {
  return with_scope([&](scope& s) {
    std::tuple<child<detail::result_without_arguments<Fs>>...> children{s.spawn(std::forward<Fs>(fs))...};
    return std::apply(
        [](auto&... c) {
          return std::tuple<detail::kept<detail::result_without_arguments<Fs>>...>{detail::join_kept(c)...};
        },
        children);
  });
}
template <detail::callables Range>
auto join_all(Range&& range) {
  using T = detail::result_of_each<Range>;
  return with_scope([&](scope& s) {
    auto children = detail::spawn_each(s, std::forward<Range>(range));
    if constexpr (std::is_void_v<T>) {
      for (auto& c : children) c.join();
    } else {
      typename detail::results_of<T>::type results;
      results.reserve(children.size());
      for (auto& c : children) results.push_back(c.join());
      return results;
    }
  });
}

// Returns how each of them ended. A failure does not disturb the others.
template <class... Fs>
  requires(std::invocable<std::decay_t<Fs>&> && ...)
auto join_settled(Fs&&... fs) {
  return join_all(detail::settling(std::forward<Fs>(fs))...);
}
template <detail::callables Range>
auto join_settled(Range&& range) {
  return with_scope([&](scope& s) {
    auto children = detail::spawn_each_settling(s, std::forward<Range>(range));
    std::vector<settled<detail::result_of_each<Range>>> results;
    results.reserve(children.size());
    for (auto& c : children) results.push_back(c.join());
    return results;
  });
}

namespace detail {

// The value or the exception, handed out of the scope.
template <class T>
T value_out_of(settled<T>&& outcome) {
  if constexpr (std::is_void_v<T>)
    (void)std::move(outcome).value();
  else
    return static_cast<T>(std::move(outcome).value());
}

}  // namespace detail

// Returns what the first callable to end returns, or throws what it throws. The others are cancelled, and have ended
// when race returns.
template <class... Fs>
  requires(sizeof...(Fs) > 0 && (std::invocable<std::decay_t<Fs>&> && ...))
decltype(auto) race(Fs&&... fs) {
  return detail::value_out_of(with_scope(
      [&](scope& s) { return detail::race_in(s, detail::spawn_these_settling(s, std::forward<Fs>(fs)...)); }));
}
template <detail::callables Range>
decltype(auto) race(Range&& range) {
  return detail::value_out_of(with_scope(
      [&](scope& s) { return detail::race_in(s, detail::spawn_each_settling(s, std::forward<Range>(range))); }));
}

// Returns what the first callable to succeed returns. The others are cancelled. If all fail, it throws scope_failures.
template <class... Fs>
  requires(sizeof...(Fs) > 0 && (std::invocable<std::decay_t<Fs>&> && ...))
decltype(auto) any(Fs&&... fs) {
  return detail::value_out_of(with_scope(
      [&](scope& s) { return detail::any_in(s, detail::spawn_these_settling(s, std::forward<Fs>(fs)...)); }));
}
template <detail::callables Range>
decltype(auto) any(Range&& range) {
  return detail::value_out_of(with_scope(
      [&](scope& s) { return detail::any_in(s, detail::spawn_each_settling(s, std::forward<Range>(range))); }));
}

}  // namespace weft::inline v1
