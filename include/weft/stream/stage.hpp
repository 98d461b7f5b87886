// A stage is a description of what stands between a reader and a writer; it does not run yet. This file says how stages
// are put together.
//
//   in | map(f) | where(p)          reader | stage: spawns the stage; the result is a reader
//   map(f) | where(p) | out         stage | writer: spawns the stage; the result is a writer
//   auto both = map(f) | where(p)   stage | stage: a longer stage; nothing runs yet
//   in | map(f) | sink(g)           reader | sink: runs the sink in this task, until the stream has ended
//   map(f) | sink(g)                stage | sink: a longer sink; nothing runs yet
//
// Every combinator `c` has these forms, which differ by their arguments:
//
//   c(in, out, args…)   runs in this task; returns when the stream has ended
//   c(in, args…)        = in | c(args…)          a reader
//   c(out, args…)       = c(args…) | out         a writer
//   c(args…)            a stage; filter<T>(c(args…)) makes both of its ends
//
// A stage before a writer must know the type that goes in: from what comes out, from the function's parameter, or from
// c(args…).from<T>().
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weft/stream/signature.hpp>
#include <weft/stream/spawn.hpp>

namespace weft::inline v1::stream {
namespace detail {

// For code that runs a stage in a task which tells its ends itself.
struct stage_access {
  template <class Stage>
  [[nodiscard]] static auto& core(Stage& s) noexcept {
    return s.core_;
  }
};

// The types of a core that passes elements through unchanged.
struct same_type {
  template <class T>
  using output = T;
  template <class U>
  using input = U;
};

}  // namespace detail

// A Core has `name`, run(reader<T>&, writer<U>&), output<T> (what comes out if T goes in) and input<U> (the other way
// round).
template <class Core, class In = detail::unknown>
class stage {
 public:
  static constexpr std::string_view name = Core::name;
  template <class T>
  using output = typename Core::template output<T>;
  template <class U>
  using input =
      typename std::conditional_t<std::same_as<In, detail::unknown>,
                                  std::type_identity<typename Core::template input<U>>, std::type_identity<In>>::type;

  explicit stage(Core c) : core_(std::move(c)) {}

  // Runs the stage in this task. Returns when `in` has ended or nobody reads `out`. Throws what `in` was closed with
  // and what its functions throw; the readers of `out` are told as well.
  template <class T, class U>
  void operator()(reader<T> in, writer<U> out) && {
    detail::telling(out, [&] { core_.run(in, out); });
    detail::tell_upstream(in, out);
  }
  template <class T, class U>
  void operator()(reader<T> in, writer<U> out) const& {
    stage copy(*this);
    std::move(copy)(std::move(in), std::move(out));
  }

  template <channel_element T>
  [[nodiscard]] stage<Core, T> from() const& {
    return stage<Core, T>(core_);
  }
  template <channel_element T>
  [[nodiscard]] stage<Core, T> from() && {
    return stage<Core, T>(std::move(core_));
  }

 private:
  friend struct detail::stage_access;
  Core core_;
};

// A Core has `name`, run(reader<T>&) and `input`: the type that goes in, or unknown.
template <class Core>
class sink_stage {
 public:
  static constexpr std::string_view name = Core::name;
  using input = typename Core::input;

  explicit sink_stage(Core c) : core_(std::move(c)) {}

  // Runs the sink in this task until `in` has ended.
  template <class T>
  void operator()(reader<T> in) && {
    core_.run(in);
  }
  template <class T>
  void operator()(reader<T> in) const& {
    sink_stage copy(*this);
    std::move(copy)(std::move(in));
  }

 private:
  friend struct detail::stage_access;
  Core core_;
};

namespace detail {

template <class T>
inline constexpr bool is_stage = false;
template <class Core, class In>
inline constexpr bool is_stage<stage<Core, In>> = true;
template <class Core>
inline constexpr bool is_sink<sink_stage<Core>> = true;

// Two stages with a channel between them. The first gets a task of its own; the second runs in the given task.
template <class First, class Second>
struct composed {
  static constexpr std::string_view name = Second::name;
  template <class T>
  using output = typename Second::template output<typename First::template output<T>>;
  template <class U>
  using input = typename First::template input<typename Second::template input<U>>;

  First first;
  Second second;

  template <class T, class U>
  void run(reader<T>& in, writer<U>& out) {
    auto between = std::move(in) | std::move(first);
    stage_access::core(second).run(between, out);
    tell_upstream(between, out);
  }
};

template <class First, class Sink>
struct composed_sink {
  static constexpr std::string_view name = Sink::name;
  using input = typename First::template input<typename Sink::input>;

  First first;
  Sink second;

  template <class T>
  void run(reader<T>& in) {
    auto between = std::move(in) | std::move(first);
    stage_access::core(second).run(between);
  }
};

// There is one object of this class for each combinator. Make()(args…) makes its core.
template <class Make>
class combinator {
 public:
  template <class T, class U, class... Args>
    requires std::invocable<Make, Args...>
  void operator()(reader<T> in, writer<U> out, Args&&... args) const {
    stage(Make()(std::forward<Args>(args)...))(std::move(in), std::move(out));
  }
  template <class T, class... Args>
    requires std::invocable<Make, Args...>
  [[nodiscard]] auto operator()(reader<T> in, Args&&... args) const {
    return std::move(in) | stage(Make()(std::forward<Args>(args)...));
  }
  template <class U, class... Args>
    requires std::invocable<Make, Args...>
  [[nodiscard]] auto operator()(writer<U> out, Args&&... args) const {
    return stage(Make()(std::forward<Args>(args)...)) | std::move(out);
  }
  template <class... Args>
    requires std::invocable<Make, Args...>
  [[nodiscard]] auto operator()(Args&&... args) const {
    return stage(Make()(std::forward<Args>(args)...));
  }
};

}  // namespace detail

template <class T, class Core, class In>
[[nodiscard]] auto operator|(reader<T> in, stage<Core, In> s) {
  using U = typename stage<Core, In>::template output<T>;
  auto [out, result] = make_channel<U>();
  detail::connect(
      Core::name, std::move(in), std::move(out),
      [s = std::move(s)](reader<T>& from, writer<U>& to) mutable { detail::stage_access::core(s).run(from, to); });
  return std::move(result);
}
template <class U, class Core, class In>
[[nodiscard]] auto operator|(stage<Core, In> s, writer<U> out) {
  using T = typename stage<Core, In>::template input<U>;
  static_assert(!std::same_as<T, detail::unknown>, "what goes in cannot be seen from here: say it with .from<T>()");
  auto [result, in] = make_channel<T>();
  detail::connect(
      Core::name, std::move(in), std::move(out),
      [s = std::move(s)](reader<T>& from, writer<U>& to) mutable { detail::stage_access::core(s).run(from, to); });
  return std::move(result);
}
template <class A, class InA, class B, class InB>
[[nodiscard]] auto operator|(stage<A, InA> a, stage<B, InB> b) {
  using core = detail::composed<stage<A, InA>, stage<B, InB>>;
  return stage<core>(core{std::move(a), std::move(b)});
}
template <class T, class Core>
void operator|(reader<T> in, sink_stage<Core> s) {
  std::move(s)(std::move(in));
}
template <class A, class In, class B>
[[nodiscard]] auto operator|(stage<A, In> a, sink_stage<B> b) {
  using core = detail::composed_sink<stage<A, In>, sink_stage<B>>;
  return sink_stage<core>(core{std::move(a), std::move(b)});
}

// Spawns a stage and returns both of its ends.
template <channel_element T, class S>
  requires detail::is_stage<S>
[[nodiscard]] auto filter(S s) {
  auto [out, from] = make_channel<T>();
  auto in = std::move(from) | std::move(s);
  return filter_ends<T, typename decltype(in)::value_type>{std::move(out), std::move(in)};
}
// Spawns a sink and returns its end.
template <channel_element T, class S>
  requires detail::is_sink<S>
[[nodiscard]] writer<T> consumer(S s) {
  return detail::consume<T>(
      S::name, [s = std::move(s)](reader<T>& in) mutable { detail::stage_access::core(s).run(in); }, 0);
}

}  // namespace weft::inline v1::stream
