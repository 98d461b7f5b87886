// Tasks that hold ends of channels: producer, consumer, filter; and what the bodies of all streams share.
//
//   reader<int> in = stream::producer<int>([](writer<int>& out) { for (int i = 0; out.send(i); ++i) {} });
//
// An exception of the body goes downstream: recv() throws it after everything that was sent before it. A body that is
// cancelled ends its stream with task_cancelled, so that nobody takes a part for the whole. A consumer has nobody
// downstream: its exception closes its channel, and upstream finds it in close_error(). An exception that nobody can be
// told of is an unhandled one (runtime_options). None of these calls is a cancellation point. As spawn, they can be
// called by tasks only.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weft/cancelled.hpp>
#include <weft/channel.hpp>
#include <weft/runtime.hpp>
#include <weft/select.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1::stream {

// The two ends of a task in the middle, named as those of a channel: what is sent to `out` arrives at `in`, perhaps as
// something else.
template <class T, class U>
struct filter_ends {
  writer<T> out;
  reader<U> in;
};

namespace detail {

template <class F>
inline constexpr bool is_sink = false;  // stage.hpp

template <class T>
void throw_if_failed(const reader<T>& in) {
  if (std::exception_ptr e = in.close_error()) std::rethrow_exception(std::move(e));
}

// Stores what one receive brings into a place that need not be assignable.
template <class T>
class catcher {
 public:
  catcher(std::optional<T>& to, bool& ended) noexcept : to_(&to), ended_(&ended) {}
  void operator()(std::optional<T> got) const {
    to_->reset();
    if (got)
      to_->emplace(std::move(*got));
    else
      *ended_ = true;
  }

 private:
  std::optional<T>* to_;
  bool* ended_;
};

// Returns the next element. The result is empty if `in` has ended or nobody reads `out` any more. Throws what `in` was
// closed with.
template <class T, class U>
[[nodiscard]] std::optional<T> next(reader<T>& in, const writer<U>& out) {
  std::optional<T> got;
  bool ended = false;
  (void)prialt(~out, in.on_recv(catcher<T>(got, ended)));
  if (ended) throw_if_failed(in);
  return got;
}

// Runs body(). If it throws, the readers of `out` are told, and the exception propagates to the caller.
template <class U, class Body>
void telling(writer<U>& out, Body&& body) {
  try {
    std::forward<Body>(body)();
  } catch (const cancelled&) {
    if (out) out.close(std::make_exception_ptr(task_cancelled(this_task::name(), this_task::id())));
    throw;
  } catch (...) {
    if (out) out.close(std::current_exception());
    throw;
  }
}

// The same for a task, where there is no caller. If the body has given its end away, nobody can be told, and the
// exception propagates.
template <class U, class Body>
void only_telling(writer<U>& out, Body&& body) {
  try {
    telling(out, std::forward<Body>(body));
  } catch (const cancelled&) {
    throw;
  } catch (...) {
    if (!out) throw;
  }
}

// Passes upstream why the readers of `out` left, if they said so.
template <class T, class U>
void tell_upstream(reader<T>& in, const writer<U>& out) {
  if (!in || !out) return;
  if (std::exception_ptr why = out.close_error()) in.close(std::move(why));
}

template <class Body>
void spawn_detached(std::string_view name, Body&& body) {
  weft::spawn(attributes{.name = name}, std::forward<Body>(body)).detach();
}

template <class T, class F>
reader<T> produce(std::string_view name, F f, std::size_t capacity) {
  channel_ends<T> ends = make_channel<T>(capacity);
  spawn_detached(name, [f = std::move(f), out = std::move(ends.out)]() mutable {
    only_telling(out, [&] { std::invoke(f, out); });
  });
  return std::move(ends.in);
}

template <class T, class F>
writer<T> consume(std::string_view name, F f, std::size_t capacity) {
  channel_ends<T> ends = make_channel<T>(capacity);
  spawn_detached(name, [f = std::move(f), in = std::move(ends.in)]() mutable {
    try {
      std::invoke(f, in);
    } catch (const cancelled&) {
      throw;
    } catch (...) {
      if (!in || in.is_closed()) throw;
      in.close(std::current_exception());
    }
  });
  return std::move(ends.out);
}

// Spawns f between two given ends.
template <class T, class U, class F>
void connect(std::string_view name, reader<T> in, writer<U> out, F f) {
  spawn_detached(name, [f = std::move(f), in = std::move(in), out = std::move(out)]() mutable {
    only_telling(out, [&] { std::invoke(f, in, out); });
    tell_upstream(in, out);
  });
}

}  // namespace detail

// Spawns f(writer<T>&), which sends. The stream ends when f returns.
template <channel_element T, class F>
  requires std::invocable<std::decay_t<F>&, writer<T>&>
[[nodiscard]] reader<T> producer(F&& f, std::size_t capacity = 0) {
  return detail::produce<T>("producer", std::decay_t<F>(std::forward<F>(f)), capacity);
}

// Spawns f(reader<T>&), which receives. When f has returned, sends fail.
template <channel_element T, class F>
  requires(std::invocable<std::decay_t<F>&, reader<T>&> && !detail::is_sink<std::decay_t<F>>)
[[nodiscard]] writer<T> consumer(F&& f, std::size_t capacity = 0) {
  return detail::consume<T>("consumer", std::decay_t<F>(std::forward<F>(f)), capacity);
}

// Spawns f(reader<T>&, writer<U>&) between the two ends.
template <channel_element T, channel_element U, class F>
  requires std::invocable<std::decay_t<F>&, reader<T>&, writer<U>&>
[[nodiscard]] filter_ends<T, U> filter(F&& f, std::size_t capacity = 0) {
  auto [out, from] = make_channel<T>(capacity);
  auto [to, in] = make_channel<U>(capacity);
  detail::connect("filter", std::move(from), std::move(to), std::decay_t<F>(std::forward<F>(f)));
  return {std::move(out), std::move(in)};
}

}  // namespace weft::inline v1::stream
