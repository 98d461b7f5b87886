// Stages that join several streams into one: chain, merge, zip.
//
// They have the forms of every stage (stage.hpp), with the other stream as argument: a | merge(b), merge(a, b),
// merge(a, out, b). They also take a list of streams: merge({a, b, c}) returns a reader, merge({a, b, c}, out) runs in
// the calling task.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <tuple>
#include <utility>
#include <vector>

#include <weft/stream/stage.hpp>

namespace weft::inline v1::stream {
namespace detail {

// Passes on one stream after the other.
template <class T>
void run_chain(std::vector<reader<T>>& ins, writer<T>& out) {
  for (reader<T>& in : ins) {
    while (std::optional<T> v = next(in, out))
      if (!out.send(std::move(*v))) return;
    in.reset();
  }
}

// Passes on whichever element comes, and passes over no stream for ever. A failure of one stream ends all.
template <class T>
void run_merge(std::vector<reader<T>>& ins, writer<T>& out) {
  std::optional<T> got;
  bool ended = false;
  auto death = ~out;
  using receiving = decltype(ins.front().on_recv(catcher<T>(got, ended)));
  std::vector<receiving> receives;
  receives.reserve(ins.size());
  std::vector<select_arm*> arms{&death};
  for (const reader<T>& in : ins) arms.push_back(&receives.emplace_back(in.on_recv(catcher<T>(got, ended))));
  while (arms.size() > 1) {
    got.reset();
    ended = false;
    const std::size_t won = alt(arms).index();
    if (won == 0) return;
    if (ended) {
      throw_if_failed(ins[won - 1]);
      std::swap(ins[won - 1], ins.back());
      ins.pop_back();
      std::swap(arms[won], arms.back());
      arms.pop_back();
    } else if (!out.send(std::move(*got))) {
      return;
    }
  }
}

struct chaining {
  static constexpr std::string_view name = "chain";
  template <class T>
  void operator()(std::vector<reader<T>>& ins, writer<T>& out) const {
    run_chain(ins, out);
  }
};
struct merging {
  static constexpr std::string_view name = "merge";
  template <class T>
  void operator()(std::vector<reader<T>>& ins, writer<T>& out) const {
    run_merge(ins, out);
  }
};

template <class How, class T>
struct with_other_core : same_type {
  static constexpr std::string_view name = How::name;
  reader<T> other;
  void run(reader<T>& in, writer<T>& out) {
    std::vector<reader<T>> all{std::move(in), std::move(other)};
    How()(all, out);
  }
};
template <class How>
struct make_with_other {
  template <class T>
  auto operator()(reader<T> other) const {
    return with_other_core<How, T>{{}, std::move(other)};
  }
};

template <class How>
struct list_combinator : combinator<make_with_other<How>> {
  using combinator<make_with_other<How>>::operator();
  template <class T>
  void operator()(std::vector<reader<T>> ins, writer<T> out) const {
    telling(out, [&] { How()(ins, out); });
  }
  template <class T>
  [[nodiscard]] reader<T> operator()(std::vector<reader<T>> ins) const {
    return produce<T>(How::name, [ins = std::move(ins)](writer<T>& out) mutable { How()(ins, out); }, 0);
  }
  template <class T>
  void operator()(std::initializer_list<reader<T>> ins, writer<T> out) const {
    (*this)(std::vector<reader<T>>(ins), std::move(out));
  }
  template <class T>
  [[nodiscard]] reader<T> operator()(std::initializer_list<reader<T>> ins) const {
    return (*this)(std::vector<reader<T>>(ins));
  }
};

template <class... Others>
struct zip_core {
  static constexpr std::string_view name = "zip";
  template <class T>
  using output = std::tuple<T, Others...>;
  template <class U>
  using input = std::tuple_element_t<0, U>;
  std::tuple<reader<Others>...> others;

  template <class T>
  void run(reader<T>& in, writer<std::tuple<T, Others...>>& out) {
    std::apply([&](auto&... other) { run_with(out, std::index_sequence_for<T, Others...>(), in, other...); }, others);
  }

 private:
  // Takes elements as they come, so that the end of any stream is noticed. One element of each makes a tuple.
  template <class... All, std::size_t... I>
  static void run_with(writer<std::tuple<All...>>& out, std::index_sequence<I...>, reader<All>&... in) {
    for (;;) {
      std::tuple<std::optional<All>...> got;
      bool ended[sizeof...(All)] = {};
      while (!(std::get<I>(got).has_value() && ...)) {
        const selected s = weft::detail::select_call<waits::preference::in_order>(
            std::source_location::current(), ~out,
            when(!std::get<I>(got), in.on_recv(catcher<All>(std::get<I>(got), ended[I])))...);
        if (s.index() == 0) return;
        ((ended[I] ? throw_if_failed(in) : void()), ...);
        if ((ended[I] || ...)) return;
      }
      if (!out.send(std::tuple<All...>(std::move(*std::get<I>(got))...))) return;
    }
  }
};
struct make_zip {
  template <class Other>
  auto operator()(reader<Other> other) const {
    return zip_core<Other>{std::tuple<reader<Other>>(std::move(other))};
  }
};
struct zip_combinator : combinator<make_zip> {
  using combinator<make_zip>::operator();
  template <class T, class U, class B, class C, class... More>
  void operator()(reader<T> in, writer<U> out, reader<B> b, reader<C> c, reader<More>... more) const {
    stage(core_of(std::move(b), std::move(c), std::move(more)...))(std::move(in), std::move(out));
  }
  template <class T, class B, class C, class... More>
  [[nodiscard]] auto operator()(reader<T> in, reader<B> b, reader<C> c, reader<More>... more) const {
    return std::move(in) | stage(core_of(std::move(b), std::move(c), std::move(more)...));
  }

 private:
  template <class... Others>
  static auto core_of(reader<Others>... others) {
    return zip_core<Others...>{std::tuple<reader<Others>...>(std::move(others)...)};
  }
};

}  // namespace detail

inline constexpr detail::list_combinator<detail::chaining> chain{};  // one stream after the other
inline constexpr detail::list_combinator<detail::merging> merge{};  // elements of all, as they come
inline constexpr detail::zip_combinator zip{};  // tuples of one element of each; ends when one of them ends

}  // namespace weft::inline v1::stream
