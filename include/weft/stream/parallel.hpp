// map by several tasks at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/stream/stage.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1::stream {
namespace detail {

// Tasks that do not outlive it: cancelled and awaited at the end, whatever the reason.
class crew {
 public:
  crew() = default;
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;
  ~crew() {
    const this_task::shield whatever_happens;
    for (auto& h : hands_) h.cancel();
    for (auto& h : hands_) h.wait();
  }
  template <class Body>
  void add(Body&& body) {
    hands_.push_back(weft::spawn(attributes{.name = "parallel_map"}, std::forward<Body>(body)));
  }

 private:
  std::vector<join_handle<void>> hands_;
};

template <class F>
struct parallel_map_core {
  static constexpr std::string_view name = "parallel_map";
  template <class T>
  using output = std::remove_cvref_t<std::invoke_result_t<F&, T>>;
  template <class>
  using input = parameter_of<F>;
  std::size_t tasks;
  bool ordered;
  F f;

  // This task hands out elements and collects results; up to `tasks` elements are in between, so neither of the two inner
  // channels is ever full. A failing f fails the results, which fails this.
  template <class T, class U>
  void run(reader<T>& in, writer<U>& out) {
    channel_ends<numbered<T>> work = make_channel<numbered<T>>(tasks);
    channel_ends<numbered<U>> results = make_channel<numbered<U>>(tasks);
    crew hands;
    for (std::size_t i = 0; i < tasks; ++i)
      hands.add([this, to_do = work.in, done = results.out]() mutable {
        only_telling(done, [&] {
          while (std::optional<numbered<T>> v = to_do.recv())
            if (!done.send({v->number, std::invoke(f, std::move(v->value))})) return;
        });
      });
    work.in.reset();
    results.out.reset();
    collect(in, out, work.out, results.in);
  }

 private:
  template <class V>
  struct numbered {
    std::size_t number;
    V value;
  };

  template <class T, class U>
  void collect(reader<T>& in, writer<U>& out, writer<numbered<T>>& work, reader<numbered<U>>& results) {
    std::vector<std::optional<U>> waiting(tasks);  // for their turn, by number
    std::size_t taken = 0, sent = 0;
    for (bool ended = false; !ended || sent < taken;) {
      std::optional<T> got;
      std::optional<numbered<U>> result;
      bool failed = false;
      const std::size_t won = prialt(~out, results.on_receive(catcher<numbered<U>>(result, failed)),
                                     when(!ended && taken - sent < tasks, in.on_receive(catcher<T>(got, ended))))
                                  .index();
      if (won == 0) return;
      if (failed) throw_if_failed(results);
      if (got) work.send({taken++, std::move(*got)});
      if (!result) continue;
      if (!ordered) {
        ++sent;
        if (!out.send(std::move(result->value))) return;
        continue;
      }
      waiting[result->number % tasks].emplace(std::move(result->value));
      for (std::optional<U>* first = &waiting[sent % tasks]; first->has_value(); first = &waiting[sent % tasks]) {
        if (!out.send(std::move(**first))) return;
        first->reset();
        ++sent;
      }
    }
    throw_if_failed(in);
  }
};
template <bool Ordered>
struct make_parallel_map {
  template <class F>
  auto operator()(std::size_t tasks, F f) const {
    if (tasks == 0) weft::detail::throw_usage("a parallel_map needs at least one task");
    return parallel_map_core<F>{tasks, Ordered, std::move(f)};
  }
};

}  // namespace detail

// (n, f): f(element), n at a time, from n tasks at once. In the order of the elements, or as they come.
inline constexpr detail::combinator<detail::make_parallel_map<true>> parallel_map{};
inline constexpr detail::combinator<detail::make_parallel_map<false>> parallel_map_unordered{};

}  // namespace weft::inline v1::stream
