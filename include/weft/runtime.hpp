// The runtime, and what every program starts with: run, spawn, attributes, options.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weft/detail/body.hpp>
#include <weft/detail/config.hpp>
#include <weft/detail/null_callable.hpp>
#include <weft/detail/same_sanitizer.hpp>
#include <weft/dispatcher.hpp>
#include <weft/join_handle.hpp>

namespace weft::inline v1 {

// Urgent tasks come before all others of their runtime, background ones when there is nothing else; none starves another: of nine
// dispatches at most eight are urgent, and now and then the oldest background task has its turn.
enum class priority : unsigned char { normal, urgent, background };

// Of one task, for spawn(attributes, f).
struct attributes {
  std::string_view name = {};  // up to 31 characters are kept
  std::size_t stack_size = 0;  // usable bytes; 0: the runtime's default
  dispatcher on = {};  // where it runs
  weft::priority priority = priority::normal;
};

struct runtime_options {
  std::size_t workers = 0;  // 0: WEFT_WORKERS, else what the process may use of the machine
  std::size_t stack_size = std::size_t{192} << 10;  // usable bytes of a task's stack; 0: this default
  std::size_t main_stack_size = 0;  // the same of the body of run(); 0: 8 MiB, or `stack_size` if that is more
  std::size_t stack_cache_bytes = std::size_t{64}
                                  << 20;  // free stacks kept beyond this go back after 100 ms of idleness
  std::size_t max_stacks = SIZE_MAX;  // tasks that have started and not ended, at most
  std::size_t queue_capacity = 1024;  // of a worker's own queues; a power of two, 8 to 65536
  std::size_t steal_scan = 4;  // victims a searching worker looks at before it pauses
  bool stealing = true;  // false: a task stays with the worker that got it first
  // More workers while some are stuck in a task that computes or blocks, and work waits: to twice `workers` that use a processor,
  // and to max_workers with those that are blocked. Without stealing there are never more.
  bool elastic = true;
  std::size_t max_workers = 512;  // less than `workers` counts as that
  std::chrono::nanoseconds keep_alive =
      std::chrono::milliseconds(50);  // how long one of them stays that finds nothing to do
  std::size_t io_tasks = 0;  // tasks on dispatcher::io() at a time; 0: 64, or the number of workers if that is more
  std::size_t leave_cores_free = 0;  // with workers = 0: so many fewer than the machine offers, but at least one
  bool pin_workers = false;  // each of `workers` to one processor
  // Called for the exception of a task whose handle is gone; without it such an exception ends the process (but see
  // join_handle). It must not throw.
  std::function<void(std::string_view task, std::exception_ptr error)> on_unhandled_exception = {};
};

struct runtime_statistics {
  std::uint64_t spawned = 0, finished = 0, dispatched = 0, steal_attempts = 0, steals = 0, stolen_tasks = 0,
                overflow_batches = 0, parks = 0, wakes = 0, sleeps = 0;
};

// How the pool has grown, and why it has not, look by look of the monitor. Pressure is the number of tasks that wait in queues; it is
// read without stopping anybody, so that it may be below zero for a moment.
struct elastic_statistics {
  std::size_t workers = 0;  // now
  std::uint64_t samples = 0;  // looks; each counts as one of the next five, or as one of gate_passes
  std::uint64_t no_work = 0;  // nothing waits
  std::uint64_t nonpositive_pressure = 0;  // nor does it by the numbers
  std::uint64_t idle_capacity = 0;  // a worker has nothing to do
  std::uint64_t not_stuck = 0;  // all get on
  std::uint64_t at_limit = 0;  // twice as many as `workers` compute, or there are max_workers
  std::uint64_t gate_passes = 0;  // it is to grow
  std::uint64_t grown = 0, failed = 0, retired = 0;  // workers that came, could not be had, and left again
  std::uint64_t positive_pressure = 0, negative_pressure = 0, longest_negative_streak = 0;  // looks
};

namespace detail {

struct runtime_access;

// What spawn returns for an F; join_handle<void> if it was given something that it refuses.
template <class F>
struct task_result {
  using type = void;
};
template <class F>
  requires std::invocable<F>
struct task_result<F> {
  using type = std::invoke_result_t<F>;
};
template <class F>
using handle_for = join_handle<typename task_result<std::decay_t<F>>::type>;

// Instead of a constraint, of whose failure compilers tell in a page.
template <bool Holds>
constexpr void check_takes_no_arguments() noexcept {
  static_assert(Holds, "weft::spawn takes a callable without arguments; wrap it: spawn([=] { return f(x); })");
}
template <bool Holds>
constexpr void check_can_be_kept() noexcept {
  static_assert(Holds,
                "weft::spawn copies a callable that is not a temporary, and this one cannot be copied; give it away: "
                "spawn(std::move(f))");
}

// Two arguments or more that are not attributes and a callable.
template <class First, class... More>
concept has_arguments = sizeof...(More) > 1 || (sizeof...(More) == 1 && !std::convertible_to<First, const attributes&>);

}  // namespace detail

// Workers and their tasks. Several may live at once; any thread may spawn into one and join.
class WEFT_API runtime {
 public:
  // Starts the workers. Throws std::invalid_argument for options out of range, std::system_error if threads cannot be had.
  explicit runtime(const runtime_options& options = {});
  // Waits until every task has ended, detached ones too, and joins every worker.
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  template <class F>
  detail::handle_for<F> spawn(F&& f);
  template <class F>
  detail::handle_for<F> spawn(const attributes& a, F&& f);
  template <class F, class... Arguments>  // only to say that there is no such thing
    requires detail::has_arguments<F, Arguments...>
  join_handle<void> spawn(F&& f, Arguments&&...);

  // Spawns f, as a task named "main" with a stack of runtime_options::main_stack_size, and waits for it from this, an outside,
  // thread.
  template <class F>
  auto run(F&& f) {
    return spawn({.name = "main", .stack_size = main_stack_size_}, std::forward<F>(f)).join();
  }

  // Takes no more tasks from outside and returns when every task has ended. The destructor does it too. Not from a task.
  void shutdown();

  [[nodiscard]] std::size_t workers() const noexcept;  // of their own; there may be more for a while
  // Sums over the workers; each figure is exact, the set is not a snapshot.
  [[nodiscard]] runtime_statistics statistics() const noexcept;
  [[nodiscard]] runtime_statistics statistics_of(std::size_t worker) const;
  [[nodiscard]] elastic_statistics elasticity() const noexcept;

 private:
  friend struct detail::runtime_access;
  std::size_t main_stack_size_;
  std::unique_ptr<sched::scheduler> core_;
  bool print_statistics_ = false;
};

namespace detail {

// A task with its body, still unknown to everybody. Throws what begin_spawn and the callable's constructor throw.
template <class Body, class F, class... Before>
Body* construct_body(const spawning& s, F&& f, Before... before) {
  if constexpr (std::is_nothrow_constructible_v<std::decay_t<F>, F&&>) {
    return ::new (s.body) Body(before..., std::forward<F>(f));
  } else {
    try {
      return ::new (s.body) Body(before..., std::forward<F>(f));
    } catch (...) {
      abort_spawn(s);
      throw;
    }
  }
}

template <class F>
handle_for<F> spawn_checked(sched::scheduler* in, const attributes* a, F&& f) {
  using body_type = body<std::decay_t<F>>;
  check_not_null(f);
  const spawning s = begin_spawn(in, a, sizeof(body_type), alignof(body_type), &body_type::ops, true);
  auto* made = construct_body<body_type>(s, std::forward<F>(f));
  commit_spawn(s);
  return handle_access::make(s.task, &made->outcome());
}

// spawn(f), if f can be a task; otherwise the compiler says why not.
template <class Handle, class F, class Spawn>
Handle if_it_can_run(F&& f, Spawn spawn) {
  constexpr bool takes_none = std::invocable<std::decay_t<F>>;
  constexpr bool can_be_kept = std::constructible_from<std::decay_t<F>, F&&>;
  check_takes_no_arguments<takes_none>();
  check_can_be_kept<can_be_kept>();
  if constexpr (takes_none && can_be_kept)
    return spawn(std::forward<F>(f));
  else
    return {};
}

template <class F>
handle_for<F> spawn_in(sched::scheduler* in, const attributes* a, F&& f) {
  return if_it_can_run<handle_for<F>>(std::forward<F>(f),
                                      [&](auto&& task) { return spawn_checked(in, a, std::forward<F>(task)); });
}

}  // namespace detail

template <class F>
detail::handle_for<F> runtime::spawn(F&& f) {
  return detail::spawn_in(core_.get(), nullptr, std::forward<F>(f));
}
template <class F>
detail::handle_for<F> runtime::spawn(const attributes& a, F&& f) {
  return detail::spawn_in(core_.get(), &a, std::forward<F>(f));
}
template <class F, class... Arguments>
  requires detail::has_arguments<F, Arguments...>
join_handle<void> runtime::spawn(F&&, Arguments&&...) {
  detail::check_takes_no_arguments<sizeof...(Arguments) == 0>();
  return {};
}

// A new task in the runtime of the running one. f is any callable without arguments, move-only ones included; it is moved
// or copied into the task. Not a cancellation point. From an outside thread use runtime::spawn.
template <class F>
detail::handle_for<F> spawn(F&& f) {
  return detail::spawn_in(nullptr, nullptr, std::forward<F>(f));
}
template <class F>
detail::handle_for<F> spawn(const attributes& a, F&& f) {
  return detail::spawn_in(nullptr, &a, std::forward<F>(f));
}
template <class F, class... Arguments>  // only to say that there is no such thing
  requires detail::has_arguments<F, Arguments...>
join_handle<void> spawn(F&&, Arguments&&...) {
  detail::check_takes_no_arguments<sizeof...(Arguments) == 0>();
  return {};
}

// A new task on that dispatcher.
template <class F>
detail::handle_for<F> spawn_on(const dispatcher& d, F&& f) {
  return spawn(attributes{.on = d}, std::forward<F>(f));
}

// A runtime for the length of f, which runs as its first task, on a stack as large as a main thread's mostly is
// (runtime_options::main_stack_size). Returns what f returns, 0 for void, so that main can return it; and only when every task
// has ended, detached ones too.
template <class F>
  requires std::invocable<std::decay_t<F>>
auto run(const runtime_options& options, F&& f) {
  runtime r(options);
  if constexpr (std::is_void_v<detail::result_of<std::decay_t<F>>>) {
    r.run(std::forward<F>(f));
    return 0;
  } else {
    return r.run(std::forward<F>(f));
  }
}
template <class F>
  requires std::invocable<std::decay_t<F>>
auto run(F&& f) {
  return run(runtime_options{}, std::forward<F>(f));
}

}  // namespace weft::inline v1
