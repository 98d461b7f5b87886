// Stages that map elements in several tasks at a time.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <weft/stream/stage.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1::stream {
namespace detail {

// A set of tasks that do not outlive this object: the destructor cancels them and waits for them, whatever the reason.
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

  // This task hands out elements and collects results. At most `tasks` elements are between the two, so neither of the
  // two inner channels is ever full. An exception of f is also a result, and takes its turn.
  template <class T, class U>
  void run(reader<T>& in, writer<U>& out) {
    channel_ends<numbered<T>> work = make_channel<numbered<T>>(tasks);
    channel_ends<result<U>> results = make_channel<result<U>>(tasks);
    crew hands;
    for (std::size_t i = 0; i < tasks; ++i)
      hands.add([this, to_do = work.in, done = results.out]() mutable {
        only_telling(done, [&] {
          while (std::optional<numbered<T>> v = to_do.recv())
            if (!done.send(result_of<U>(std::move(*v)))) return;
        });
      });
    work.in.reset();
    results.out.reset();
    collect(in, out, work.out, results.in);
  }

 private:
  template <class T>
  struct numbered {
    std::size_t number;
    T value;
  };
  template <class U>
  struct result {
    std::size_t number;
    std::optional<U> value;
    std::exception_ptr error;  // instead of a value
  };

  template <class U, class T>
  result<U> result_of(numbered<T>&& v) {
    try {
      return {v.number, std::optional<U>(std::invoke(f, std::move(v.value))), nullptr};
    } catch (...) {
      if (this_task::is_cancelled()) throw;
      return {v.number, std::nullopt, std::current_exception()};
    }
  }

  template <class T, class U>
  void collect(reader<T>& in, writer<U>& out, writer<numbered<T>>& work, reader<result<U>>& results) {
    std::vector<std::optional<result<U>>> waiting(tasks);  // results that wait for their turn, by number
    std::size_t taken = 0, sent = 0;
    bool ended = false, failed = false;
    // Returns false if nobody reads any more.
    const auto pass_on = [&](result<U>& r) {
      if (r.error != nullptr) std::rethrow_exception(r.error);
      ++sent;
      return bool(out.send(std::move(*r.value)));
    };
    while (!ended || sent < taken) {
      std::optional<T> got;
      std::optional<result<U>> done;
      bool lost = false;
      const std::size_t won =
          prialt(~out, results.on_recv(catcher<result<U>>(done, lost)),
                 when(!ended && !failed && taken - sent < tasks, in.on_recv(catcher<T>(got, ended))))
              .index();
      if (won == 0) return;
      if (lost) throw_if_failed(results);
      if (got) (void)work.send({taken++, std::move(*got)});
      if (!done) continue;
      failed = failed || done->error != nullptr;
      if (!ordered) {
        if (!pass_on(*done)) return;
        continue;
      }
      waiting[done->number % tasks].emplace(std::move(*done));
      while (waiting[sent % tasks].has_value()) {
        std::optional<result<U>>& next = waiting[sent % tasks];
        result<U> first(std::move(*next));
        next.reset();
        if (!pass_on(first)) return;
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

// (n, f): sends f(element); n tasks call f at the same time. parallel_map sends in the order of the elements, and an
// exception of f takes its turn too, as map would do it. parallel_map_unordered sends results as they come, and an
// exception of f ends it at once.
inline constexpr detail::combinator<detail::make_parallel_map<true>> parallel_map{};
inline constexpr detail::combinator<detail::make_parallel_map<false>> parallel_map_unordered{};

}  // namespace weft::inline v1::stream
