// Where streams end: sink, blackhole, deaf, fanout.
//
//   c(in, args…)             runs in the calling task; returns when the stream has ended, throws what it failed with
//   in | c(args…)            the same
//   consumer<T>(c(args…))    spawns it and returns a writer
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include <weft/stream/stage.hpp>

namespace weft::inline v1::stream {
namespace detail {

template <class Make>
class sink_combinator {
 public:
  template <class T, class... Args>
    requires std::invocable<Make, Args...>
  void operator()(reader<T> in, Args&&... args) const {
    sink_stage(Make()(std::forward<Args>(args)...))(std::move(in));
  }
  template <class... Args>
    requires std::invocable<Make, Args...>
  [[nodiscard]] auto operator()(Args&&... args) const {
    return sink_stage(Make()(std::forward<Args>(args)...));
  }
};

template <class F>
struct sink_core {
  static constexpr std::string_view name = "sink";
  using input = parameter_of<F>;
  F f;

  template <class T>
  void run(reader<T>& in) {
    while (std::optional<T> v = in.recv()) std::invoke(f, std::move(*v));
  }
};
struct make_sink {
  template <class F>
  auto operator()(F f) const {
    return sink_core<F>{std::move(f)};
  }
};

struct blackhole_core {
  static constexpr std::string_view name = "blackhole";
  using input = unknown;

  template <class T>
  void run(reader<T>& in) {
    while (in.recv()) {}
  }
};
struct make_blackhole {
  auto operator()() const { return blackhole_core{}; }
};

struct deaf_core {
  static constexpr std::string_view name = "deaf";
  using input = unknown;

  template <class T>
  void run(reader<T>& in) {
    (void)prialt(~in);
    throw_if_failed(in);
  }
};
struct make_deaf {
  auto operator()() const { return deaf_core{}; }
};

template <class T>
class fanout_core {
 public:
  static constexpr std::string_view name = "fanout";
  using input = T;
  fanout_core(std::vector<writer<T>> outs, reader<writer<T>> more) : outs_(std::move(outs)), more_(std::move(more)) {}

  // A failure of `in` is passed to the outputs. It is thrown only if there is none.
  void run(reader<T>& in) {
    try {
      while (std::optional<T> v = next_element(in)) send_to_all(std::move(*v));
    } catch (const cancelled&) {
      tell_all(std::make_exception_ptr(task_cancelled(this_task::name(), this_task::id())));
      throw;
    } catch (...) {
      if (outs_.empty()) throw;
      tell_all(std::current_exception());
    }
  }

 private:
  // Takes new outputs and drops dead ones until there is an element. While there is no output, one element is held, so
  // that the end of `in` is noticed and nothing is lost.
  std::optional<T> next_element(reader<T>& in) {
    std::optional<T> got;
    while (!outs_.empty() || more_) {
      if (got && !outs_.empty()) return got;
      std::optional<writer<T>> added;
      bool no_more = false;
      bool ended = false;
      auto adding = more_.on_recv(catcher<writer<T>>(added, no_more));
      auto receiving = in.on_recv(catcher<T>(got, ended));
      std::vector<death_arm> deaths;
      deaths.reserve(outs_.size());
      std::vector<select_arm*> arms{&adding};
      for (const writer<T>& out : outs_) arms.push_back(&deaths.emplace_back(~out));
      if (!got) arms.push_back(&receiving);
      const std::size_t won = prialt(arms).index();
      if (ended) throw_if_failed(in);
      if (ended) break;
      if (added) outs_.push_back(std::move(*added));
      if (no_more) more_.reset();
      if (won != 0 && won <= deaths.size()) outs_.erase(outs_.begin() + static_cast<std::ptrdiff_t>(won) - 1);
    }
    return {};
  }
  void send_to_all(T&& element) {
    for (std::size_t i = 0; i < outs_.size();) {
      const bool sent = i + 1 == outs_.size() ? static_cast<bool>(outs_[i].send(std::move(element)))
                                              : static_cast<bool>(outs_[i].send(T(std::as_const(element))));
      if (sent)
        ++i;
      else
        outs_.erase(outs_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  void tell_all(const std::exception_ptr& why) {
    for (writer<T>& out : outs_) out.close(why);
  }

  std::vector<writer<T>> outs_;
  reader<writer<T>> more_;
};
struct make_fanout {
  template <class T>
  auto operator()(std::vector<writer<T>> outs) const {
    return fanout_core<T>(std::move(outs), {});
  }
  template <class T>
  auto operator()(reader<writer<T>> outs) const {
    return fanout_core<T>({}, std::move(outs));
  }
};

template <class T>
inline constexpr bool is_writer = false;
template <class T>
inline constexpr bool is_writer<writer<T>> = true;

struct fanout_combinator : sink_combinator<make_fanout> {
  using sink_combinator<make_fanout>::operator();
  template <class T>
    requires(!is_writer<T>)
  [[nodiscard]] writer<writer<T>> operator()(reader<T> in) const {
    return consume<writer<T>>(
        "fanout",
        [in = std::move(in)](reader<writer<T>>& outs) mutable { fanout_core<T>({}, std::move(outs)).run(in); }, 0);
  }
};

}  // namespace detail

inline constexpr detail::sink_combinator<detail::make_sink> sink{};  // (f): calls f(element)
inline constexpr detail::sink_combinator<detail::make_blackhole> blackhole{};  // (): receives elements and drops them
inline constexpr detail::sink_combinator<detail::make_deaf> deaf{};  // (): receives nothing; ends when nobody can send
// (vector<writer<T>>) or (reader<writer<T>>): sends each element to every output. Outputs come and go. fanout(in) alone
// spawns a task and returns a writer<writer<T>>, which takes new outputs.
inline constexpr detail::fanout_combinator fanout{};

}  // namespace weft::inline v1::stream
