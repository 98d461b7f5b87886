// Stages that group elements: batch, window, quantize.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <weft/detail/task_core.hpp>
#include <weft/stream/stage.hpp>
#include <weft/timer.hpp>

namespace weft::inline v1::stream {
namespace detail {

struct batch_core {
  static constexpr std::string_view name = "batch";
  template <class T>
  using output = std::vector<T>;
  template <class U>
  using input = typename U::value_type;
  std::size_t size;
  std::optional<std::chrono::nanoseconds> patience;  // counted from the first element of a batch

  // What was gathered before a failure of `in` is sent before the failure is thrown.
  template <class T>
  void run(reader<T>& in, writer<std::vector<T>>& out) {
    for (bool ended = false; !ended;) {
      std::optional<T> got = next(in, out);
      if (!got) return;
      std::vector<T> batch;
      batch.push_back(std::move(*got));
      timer limit(patience ? weft::detail::time_after(*patience) : timer::clock::time_point::max());
      while (batch.size() < size) {
        const std::size_t won =
            prialt(~out, in.on_recv(catcher<T>(got, ended)), when(patience.has_value(), limit)).index();
        if (won == 0) return;
        if (won == 2 || ended) break;
        batch.push_back(std::move(*got));
      }
      if (!out.send(std::move(batch))) return;
    }
    throw_if_failed(in);
  }
};
inline std::size_t checked_size(std::size_t n) {
  if (n == 0) weft::detail::throw_usage("a batch or window has at least one element");
  return n;
}
struct make_batch {
  auto operator()(std::size_t size) const { return batch_core{checked_size(size), {}}; }
  template <class Rep, class Period>
  auto operator()(std::size_t size, std::chrono::duration<Rep, Period> patience) const {
    return batch_core{checked_size(size), std::chrono::ceil<std::chrono::nanoseconds>(patience)};
  }
};

struct window_core {
  static constexpr std::string_view name = "window";
  template <class T>
  using output = std::vector<T>;
  template <class U>
  using input = typename U::value_type;
  std::size_t size;
  std::size_t step;

  template <class T>
  void run(reader<T>& in, writer<std::vector<T>>& out) {
    std::deque<T> held;
    std::size_t skip = 0;
    while (std::optional<T> v = next(in, out)) {
      if (skip > 0) {
        --skip;
        continue;
      }
      held.push_back(std::move(*v));
      if (held.size() < size) continue;
      if (!out.send(std::vector<T>(held.begin(), held.end()))) return;
      for (std::size_t i = 0; i < step && !held.empty(); ++i) held.pop_front();
      skip = step > size ? step - size : 0;
    }
  }
};
struct make_window {
  auto operator()(std::size_t size, std::size_t step = 1) const {
    return window_core{checked_size(size), checked_size(step)};
  }
};

// Amounts come in, quanta go out. Either every quantum is the same, or each is the next element of a stream of quanta.
template <class Q, class Quanta>
struct quantize_core : same_type {
  static constexpr std::string_view name = "quantize";
  Quanta quanta;
  writer<Q> residue;

  template <class T>
  void run(reader<T>& in, writer<T>& out) {
    T held = T();
    while (std::optional<T> quantum = next_quantum(in, out, held)) {
      bool more = true;
      while (more && held < *quantum) more = add(next(in, out), held);
      if (!more) break;
      if (!out.send(*quantum)) break;
      held -= *quantum;
    }
    if (residue) (void)residue.send(held);
  }

 private:
  template <class T>
  static bool add(const std::optional<T>& amount, T& held) {
    if (amount) held += *amount;
    return amount.has_value();
  }
  template <class T>
  std::optional<T> next_quantum(reader<T>& in, writer<T>& out, T& held) {
    if constexpr (std::same_as<Quanta, Q>) {
      return quanta;
    } else {
      std::optional<T> quantum;
      bool none = false;
      while (!quantum && !none) {
        // While nothing is held, an amount is taken early, so that the end of `in` is noticed.
        std::optional<T> amount;
        bool ended = false;
        const std::size_t won = prialt(~out, quanta.on_recv(catcher<T>(quantum, none)),
                                       when(held == T(), in.on_recv(catcher<T>(amount, ended))))
                                    .index();
        if (ended) throw_if_failed(in);
        if (won == 0 || ended) return {};
        (void)add(amount, held);
      }
      if (none) throw_if_failed(quanta);
      return quantum;
    }
  }
};
template <class T>
concept amount = std::regular<T> && std::totally_ordered<T> && requires(T a, const T& b) {
  a += b;
  a -= b;
};
struct make_quantize {
  template <amount T>
  auto operator()(T quantum, writer<T> residue = {}) const {
    if (!(T() < quantum)) weft::detail::throw_usage("a quantum is more than nothing");
    return quantize_core<T, T>{{}, std::move(quantum), std::move(residue)};
  }
  template <amount T>
  auto operator()(reader<T> quanta, writer<T> residue = {}) const {
    return quantize_core<T, reader<T>>{{}, std::move(quanta), std::move(residue)};
  }
};

}  // namespace detail

// (n) or (n, time): sends vectors of n elements; of fewer, if that time has passed since the first of them.
inline constexpr detail::combinator<detail::make_batch> batch{};
// (n, step = 1): sends vectors of n elements, each beginning `step` elements after the one before.
inline constexpr detail::combinator<detail::make_window> window{};
// (quantum) or (reader of quanta), and optionally (…, writer): takes amounts, sends quanta. The writer gets what is
// left in the end.
inline constexpr detail::combinator<detail::make_quantize> quantize{};

}  // namespace weft::inline v1::stream
