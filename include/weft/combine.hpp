// Several callables at once: all of them, the first of them. Each runs as a task of a scope of its own, so none outlives the call.
//
//   auto [a, b] = weft::join_all([&] { return fetch(x); }, [&] { return fetch(y); });
//   auto quickest = weft::race([&] { return ask(near); }, [&] { return ask(far); });
//
// Each takes callables, or one range of callables. Results of void are std::monostate; of a range without results, nothing. All are
// cancellation points: cancelling the caller cancels the tasks.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
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
  using value_type = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

  [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }
  [[nodiscard]] explicit operator bool() const noexcept { return has_value(); }
  // Throws what the task threw.
  [[nodiscard]] value_type& value() & {
    rethrow();
    return std::get<0>(content_);
  }
  [[nodiscard]] value_type&& value() && {
    rethrow();
    return std::get<0>(std::move(content_));
  }
  // nullptr if there is a value.
  [[nodiscard]] std::exception_ptr error() const noexcept {
    const auto* e = std::get_if<1>(&content_);
    return e == nullptr ? nullptr : *e;
  }

  // What f() ends with; `cancelled` goes on.
  template <class F>
  static settled of(F& f) {
    try {
      if constexpr (std::is_void_v<T>) {
        std::invoke(f);
        return settled(std::in_place_index<0>);
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
  std::variant<value_type, std::exception_ptr> content_;
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

// f, with what it throws as a value.
template <class F>
auto settling(F&& f) {
  return [f = std::forward<F>(f)]() mutable { return settled<result_without_arguments<F>>::of(f); };
}

// Spawns each of a range.
template <class Range>
auto spawn_each(scope& s, Range&& range) {
  std::vector<child<result_of_each<Range>>> children;
  for (auto&& f : range) children.push_back(s.spawn(std::forward<decltype(f)>(f)));
  return children;
}
template <class... Fs>
auto spawn_these(scope& s, Fs&&... fs) {
  using T = std::common_type_t<result_without_arguments<Fs>...>;
  static_assert((std::same_as<T, result_without_arguments<Fs>> && ...),
                "these callables must have the same result type: whichever is first, its result is returned");
  std::vector<child<T>> children;
  children.reserve(sizeof...(Fs));
  (children.push_back(s.spawn(std::forward<Fs>(fs))), ...);
  return children;
}

template <class T>
std::size_t first_to_end(const std::vector<child<T>>& children) {
  std::vector<end_arm> ends;
  ends.reserve(children.size());
  for (const child<T>& c : children) ends.push_back(~c);
  return select(ends).index();
}

// In the body of a scope: what the first to end returns or throws.
template <class T>
T race_in(scope& s, std::vector<child<T>> children) {
  if (children.empty()) throw_usage("race was given nothing to run");
  child<T>& first = children[first_to_end(children)];
  if constexpr (std::is_void_v<T>) {
    first.join();
    s.cancel();
  } else {
    T value = first.join();
    s.cancel();
    return value;
  }
}

// The same with the first success.
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

// The results of all. The first to throw cancels the others, and its exception is thrown when they have ended.
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
      std::vector<T> results;
      results.reserve(children.size());
      for (auto& c : children) results.push_back(c.join());
      return results;
    }
  });
}

// How each of them ended; no failure disturbs the others.
template <class... Fs>
  requires(std::invocable<std::decay_t<Fs>&> && ...)
auto join_settled(Fs&&... fs) {
  return join_all(detail::settling(std::forward<Fs>(fs))...);
}
template <detail::callables Range>
auto join_settled(Range&& range) {
  return with_scope([&](scope& s) {
    using T = settled<detail::result_of_each<Range>>;
    std::vector<child<T>> children;
    for (auto&& f : range) children.push_back(s.spawn(detail::settling(std::forward<decltype(f)>(f))));
    std::vector<T> results;
    results.reserve(children.size());
    for (auto& c : children) results.push_back(c.join());
    return results;
  });
}

// What the first to end returns or throws; the others are cancelled, and have ended when it returns.
template <class... Fs>
  requires(sizeof...(Fs) > 0 && (std::invocable<std::decay_t<Fs>&> && ...))
auto race(Fs&&... fs) {
  return with_scope([&](scope& s) { return detail::race_in(s, detail::spawn_these(s, std::forward<Fs>(fs)...)); });
}
template <detail::callables Range>
auto race(Range&& range) {
  return with_scope([&](scope& s) { return detail::race_in(s, detail::spawn_each(s, std::forward<Range>(range))); });
}

// What the first to succeed returns; the others are cancelled. If all fail: scope_failures.
template <class... Fs>
  requires(sizeof...(Fs) > 0 && (std::invocable<std::decay_t<Fs>&> && ...))
auto any(Fs&&... fs) {
  using T = std::common_type_t<detail::result_without_arguments<Fs>...>;
  auto first = with_scope([&](scope& s) {
    return detail::any_in<T>(s, detail::spawn_these(s, detail::settling(std::forward<Fs>(fs))...));
  });
  if constexpr (!std::is_void_v<T>) return T(std::move(first).value());
}
template <detail::callables Range>
auto any(Range&& range) {
  using T = detail::result_of_each<Range>;
  auto first = with_scope([&](scope& s) {
    std::vector<child<settled<T>>> children;
    for (auto&& f : range) children.push_back(s.spawn(detail::settling(std::forward<decltype(f)>(f))));
    return detail::any_in<T>(s, std::move(children));
  });
  if constexpr (!std::is_void_v<T>) return T(std::move(first).value());
}

}  // namespace weft::inline v1
