// The runtime, and the calls that every program starts with: run, spawn, attributes, options.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weft/deadlock.hpp>
#include <weft/detail/body.hpp>
#include <weft/detail/config.hpp>
#include <weft/detail/null_callable.hpp>
#include <weft/detail/same_sanitizer.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/dispatcher.hpp>
#include <weft/join_handle.hpp>

namespace weft::inline v1 {

enum class dump_form : unsigned char;  // observe.hpp
namespace sched {
class bystander;
}

// Urgent tasks run before all other tasks of their runtime; background tasks run when there is nothing else to do. None
// starves another: of nine dispatches at most eight are urgent, and now and then the oldest background task gets its
// turn.
enum class priority : unsigned char { normal, urgent, background };

// How the tasks of a runtime wait for descriptors: by epoll; or by epoll, and when many connections have something to read
// at a time, what they have is received with one call of io_uring. Where the kernel does not let a process use io_uring,
// epoll does it alone, and one line on stderr says so.
enum class io_backend : std::uint8_t { automatic, epoll, uring };

// The attributes of one task, for spawn(attributes, f).
struct attributes {
  std::string_view name = {};  // up to 31 characters are kept
  std::size_t stack_size = 0;  // usable bytes; 0: the runtime's default
  dispatcher on = {};  // the dispatcher that it runs on
  weft::priority priority = priority::normal;
};

struct runtime_options {
  std::size_t workers = 0;  // 0: WEFT_WORKERS, else the processors the process may use
  std::size_t stack_size = std::size_t{192} << 10;  // usable bytes of a task's stack; 0: this default
  std::size_t main_stack_size = 0;  // of the body of run(); 0: 8 MiB, or `stack_size` if larger
  // Free stacks beyond this size are given back to the system after 100 ms of idleness.
  std::size_t stack_cache_bytes = std::size_t{64} << 20;
  std::size_t max_stacks = SIZE_MAX;  // the most tasks that may have started and not yet ended
  std::size_t queue_capacity = 1024;  // of each of a worker's queues; a power of two, 8 to 65536
  std::size_t steal_scan = 4;  // workers that a searching worker looks at before it pauses
  bool stealing = true;  // false: a task stays with the worker that got it first
  // Adds workers while work waits and some workers are stuck in a task that computes or blocks. The workers that use a
  // processor grow to at most twice `workers`; together with the blocked ones they grow to at most max_workers. Without
  // stealing no worker is added.
  bool elastic = true;
  std::size_t max_workers = 512;  // a value below `workers` counts as `workers`
  // How long an added worker stays that finds nothing to do.
  std::chrono::nanoseconds keep_alive = std::chrono::milliseconds(50);
  std::size_t io_tasks = 0;  // tasks on dispatcher::io() at a time; 0: 64, or the number of workers if larger
  std::size_t leave_cores_free = 0;  // with workers = 0: so many workers fewer, but at least one
  bool pin_workers = false;  // pins each of `workers` to one processor
  io_backend io = io_backend::automatic;  // automatic: WEFT_IO, else what is usually the faster one
  // What is drawn by lot follows from it: whom a worker steals from, and which of several ready arms a select takes.
  std::uint64_t seed = 0;
  // What is done when all tasks of the process wait and nothing can wake one. A thread that belongs to neither Weft nor a
  // wait in Weft may wake a task at any time, so while there is one, nothing is said. `alone` says that such threads are
  // only helpers of some library, e.g. of an allocator, and never wake a task.
  weft::deadlock deadlock = deadlock::report_and_exit;
  bool alone = false;
  // Called with the exception of a task whose handle is gone. Without this handler such an exception ends the process
  // (but see join_handle). It must not throw.
  std::function<void(std::string_view task, std::exception_ptr error)> on_unhandled_exception = {};
};

struct runtime_statistics {
  std::uint64_t spawned = 0, finished = 0, dispatched = 0, steal_attempts = 0, steals = 0, stolen_tasks = 0,
                overflow_batches = 0, parks = 0, wakes = 0, sleeps = 0;
};

// How the pool has grown, and why it has not: one count for each look of the monitor. "Pressure" is the number of tasks
// that wait in queues. It is read while tasks move, so it may be below zero for a moment.
struct elastic_statistics {
  std::size_t workers = 0;  // at present
  std::uint64_t samples = 0;  // looks; each also counts in one of the next five or in gate_passes
  std::uint64_t no_work = 0;  // no work waits
  std::uint64_t nonpositive_pressure = 0;  // work waits, but the counters of the queues do not show it
  std::uint64_t idle_capacity = 0;  // a worker is idle
  std::uint64_t not_stuck = 0;  // every worker advances
  std::uint64_t at_limit = 0;  // twice `workers` use a processor, or there are max_workers
  std::uint64_t gate_passes = 0;  // the pool is to grow
  std::uint64_t grown = 0, failed = 0, retired = 0;  // workers: added, not to be had, left again
  std::uint64_t positive_pressure = 0, negative_pressure = 0, longest_negative_streak = 0;  // in looks
};

namespace detail {

struct runtime_access;

// The result type of spawn for an F; void for an F that spawn refuses.
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

// These stand in place of a constraint, because compilers report a failed constraint in a page of text.
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

// Two or more arguments that are not attributes and a callable.
template <class First, class... More>
concept has_arguments = sizeof...(More) > 1 || (sizeof...(More) == 1 && !std::convertible_to<First, const attributes&>);

}  // namespace detail

// Workers and their tasks. Several runtimes may live at once. Any thread may spawn into a runtime and join its tasks.
class WEFT_API runtime {
 public:
  // Starts the workers. Throws std::invalid_argument for options out of range, and std::system_error if threads cannot
  // be started.
  explicit runtime(const runtime_options& options = {});
  // Waits until every task has ended, detached tasks included, and joins every worker.
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

  // Spawns f as a task named "main", with a stack of runtime_options::main_stack_size, and waits for it. To be called
  // from an outside thread.
  template <class F>
  auto run(F&& f) {
    return spawn({.name = "main", .stack_size = main_stack_size_}, std::forward<F>(f)).join();
  }

  // Accepts no more tasks from outside, and returns when every task has ended. The destructor does the same. Not to be
  // called from a task.
  void shutdown();
  // The same up to a limit. Returns false if tasks have not ended by then: live_tasks() of task_status.hpp names them, and
  // the destructor still waits for them.
  [[nodiscard]] bool shutdown_until(std::chrono::steady_clock::time_point when);
  template <class Rep, class Period>
  [[nodiscard]] bool shutdown_for(std::chrono::duration<Rep, Period> limit) {
    return shutdown_until(detail::time_after(limit));
  }

  [[nodiscard]] std::size_t workers() const noexcept;  // without those added for a while
  // Sums over the workers. Each figure is exact, but together they are not a snapshot.
  [[nodiscard]] runtime_statistics statistics() const noexcept;
  [[nodiscard]] runtime_statistics statistics_of(std::size_t worker) const;
  [[nodiscard]] elastic_statistics elasticity() const noexcept;

  // Writes what every task waits for, where, for how long and with which stack, and what every worker does. Any thread
  // may ask, a task as well, at any time. weft/observe.hpp has the forms; the first function writes dump_form::groups.
  void dump(std::ostream& to);
  void dump(std::ostream& to, dump_form form);

 private:
  friend struct detail::runtime_access;
  std::size_t main_stack_size_;
  std::unique_ptr<sched::scheduler> core_;
  std::unique_ptr<sched::bystander> bystander_;  // ends before the core does
  bool print_statistics_ = false;
};

namespace detail {

// Constructs the body of a task that nobody else knows yet. Throws what the callable's constructor throws.
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

// Calls spawn(f) if f can be a task; otherwise the compiler says why it cannot.
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

// Starts a new task in the runtime of the running task. f is any callable without arguments, also a move-only one; it
// is moved or copied into the task. Never a cancellation point. An outside thread uses runtime::spawn.
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

// Starts a new task on that dispatcher.
template <class F>
detail::handle_for<F> spawn_on(const dispatcher& d, F&& f) {
  return spawn(attributes{.on = d}, std::forward<F>(f));
}

// Makes a runtime for the length of f. f runs as its first task, on a stack as large as a main thread's usually is
// (runtime_options::main_stack_size). Returns what f returns, or 0 for void, so that main can return it. It returns
// only when every task has ended, detached tasks included.
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
