// Stages that work on one element at a time: map, where, take, enumerate, count, buffer, tee, latch, killswitch.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

#include <weft/stream/stage.hpp>

namespace weft::inline v1::stream {
namespace detail {

template <class F>
struct map_core {
  static constexpr std::string_view name = "map";
  template <class T>
  using output = std::remove_cvref_t<std::invoke_result_t<F&, T>>;
  template <class>
  using input = parameter_of<F>;
  F f;

  template <class T, class U>
  void run(reader<T>& in, writer<U>& out) {
    while (std::optional<T> v = next(in, out))
      if (!out.send(std::invoke(f, std::move(*v)))) return;
  }
};
struct make_map {
  template <class F>
  auto operator()(F f) const {
    return map_core<F>{std::move(f)};
  }
};

template <class P>
struct where_core : same_type {
  static constexpr std::string_view name = "where";
  P predicate;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    while (std::optional<T> v = next(in, out))
      if (std::invoke(predicate, std::as_const(*v)) && !out.send(std::move(*v))) return;
  }
};
struct make_where {
  template <class P>
  auto operator()(P predicate) const {
    return where_core<P>{{}, std::move(predicate)};
  }
};

struct take_core : same_type {
  static constexpr std::string_view name = "take";
  std::size_t count;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    for (std::size_t i = 0; i < count; ++i) {
      std::optional<T> v = next(in, out);
      if (!v || !out.send(std::move(*v))) return;
    }
  }
};
struct make_take {
  auto operator()(std::size_t count) const { return take_core{{}, count}; }
};

// Ends only when everything that it holds is delivered. A failure of `in` is thrown after that.
struct buffer_core : same_type {
  static constexpr std::string_view name = "buffer";
  std::size_t most;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    std::deque<T> held;
    std::optional<T> got;
    bool ended = false;
    while (!ended || !held.empty()) {
      if (held.empty()) {
        std::optional<T> first = next(in, out);
        if (!first) return;
        held.push_back(std::move(*first));
      } else if (!ended && held.size() < most) {
        const selected s = alt(in.on_recv(catcher<T>(got, ended)), out << std::move(held.front()));
        if (s.index() == 0 && s.ok()) held.push_back(std::move(*got));
        if (s.index() == 1 && !s.ok()) return;
        if (s.index() == 1) held.pop_front();
      } else {
        if (!out.send(std::move(held.front()))) return;
        held.pop_front();
      }
    }
    throw_if_failed(in);
  }
};
struct make_buffer {
  auto operator()(std::size_t most) const { return buffer_core{{}, most == 0 ? 1 : most}; }
  auto operator()(unlimited_t) const { return buffer_core{{}, SIZE_MAX}; }
};

template <class S>
struct tee_core : same_type {
  static constexpr std::string_view name = "tee";
  writer<S> side;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    while (std::optional<T> v = next(in, out)) {
      std::optional<S> copy;
      if (side) copy.emplace(std::as_const(*v));
      if (!out.send(std::move(*v))) return;
      if (!copy) continue;
      const selected s = prialt(~out, side << std::move(*copy));
      if (s.index() == 0) return;
      if (!s.ok()) side.reset();
    }
  }
};
struct make_tee {
  template <class S>
  auto operator()(writer<S> side) const {
    return tee_core<S>{{}, std::move(side)};
  }
};

struct latch_core : same_type {
  static constexpr std::string_view name = "latch";

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    std::optional<T> newest = next(in, out);
    if (!newest) return;
    for (bool ended = false; !ended;) {
      std::optional<T> got;
      const selected s = prialt(in.on_recv(catcher<T>(got, ended)), out << std::as_const(*newest));
      if (s.index() == 1 && !s.ok()) return;
      if (got) newest.emplace(std::move(*got));
    }
    throw_if_failed(in);
    while (out.send(*newest)) {}
  }
};
struct make_latch {
  auto operator()() const { return latch_core{}; }
};

template <class K>
struct killswitch_core : same_type {
  static constexpr std::string_view name = "killswitch";
  reader<K> keepalive;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    for (;;) {
      std::optional<T> got;
      bool ended = false;
      (void)prialt(~keepalive, ~out, in.on_recv(catcher<T>(got, ended)));
      if (ended) throw_if_failed(in);
      if (!got || !prialt(~keepalive, out << std::move(*got)).ok()) return;
    }
  }
};
struct make_killswitch {
  template <class K>
  auto operator()(reader<K> keepalive) const {
    return killswitch_core<K>{{}, std::move(keepalive)};
  }
};

struct enumerate_core {
  static constexpr std::string_view name = "enumerate";
  template <class T>
  using output = std::pair<std::size_t, T>;
  template <class U>
  using input = typename U::second_type;

  template <class T>
  void run(reader<T>& in, writer<std::pair<std::size_t, T>>& out) {
    std::size_t index = 0;
    while (std::optional<T> v = next(in, out))
      if (!out.send(std::pair<std::size_t, T>(index++, std::move(*v)))) return;
  }
};
struct make_enumerate {
  auto operator()() const { return enumerate_core{}; }
};

struct count_core {
  static constexpr std::string_view name = "count";
  template <class>
  using output = std::size_t;
  template <class>
  using input = unknown;

  template <class T>
  void run(reader<T>& in, writer<std::size_t>& out) {
    std::size_t number = 0;
    while (next(in, out)) ++number;
    (void)out.send(number);
  }
};
struct make_count {
  auto operator()() const { return count_core{}; }
};

}  // namespace detail

// docs/streams.md says what each stage does and when it ends; stage.hpp shows the forms in which each can be called.
inline constexpr detail::combinator<detail::make_map> map{};  // (f): sends f(element)
inline constexpr detail::combinator<detail::make_where> where{};  // (p): passes the elements with p(element)
inline constexpr detail::combinator<detail::make_take> take{};  // (n): passes the first n elements
inline constexpr detail::combinator<detail::make_buffer> buffer{};  // (n) or (unlimited): holds up to n elements
inline constexpr detail::combinator<detail::make_tee> tee{};  // (writer<T>): copies to a side channel
inline constexpr detail::combinator<detail::make_latch> latch{};  // (): sends the newest element, as often as asked for
// (reader<K>): passes elements until the writers of that channel are gone.
inline constexpr detail::combinator<detail::make_killswitch> killswitch{};

}  // namespace weft::inline v1::stream
