// Where a task runs: dispatchers, and moving between them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/task_core.hpp>

namespace weft::inline v1 {
namespace sched {
class lane;
class scheduler;
}  // namespace sched

// A counted handle; cheap to copy. All dispatchers of a runtime share its threads: what one limits is how many of its tasks run at a
// time. A worker that runs a task of io, custom or single is replaced while other work waits, so such tasks may block.
//
// When the last handle goes, tasks that are on the dispatcher go on there, and the dispatcher goes with the last of them.
class WEFT_API dispatcher {
 public:
  dispatcher() noexcept = default;  // the default one: as many as the runtime has workers
  // The runtime's own, for calls that block: runtime_options::io_tasks at a time.
  [[nodiscard]] static dispatcher io() noexcept;
  // At most `tasks` at a time, in the order in which they became runnable. Throws std::invalid_argument for 0.
  [[nodiscard]] static dispatcher custom(std::size_t tasks);
  // One at a time, in that order: what its tasks do between two suspension points excludes each other. Not always on the same thread.
  [[nodiscard]] static dispatcher single() { return custom(1); }
  // A task spawned on it starts at once, in place of its spawner, which goes on when it suspends for the first time or ends, perhaps on
  // another thread: such a spawn is a suspension point. From then on the task is as on the default one.
  [[nodiscard]] static dispatcher unconfined() noexcept;

  dispatcher(const dispatcher& other) noexcept;
  dispatcher(dispatcher&& other) noexcept : what_(other.what_), lane_(std::exchange(other.lane_, nullptr)) {
    if (what_ == kind::own) other.what_ = kind::standard;
  }
  dispatcher& operator=(dispatcher other) noexcept {
    std::swap(what_, other.what_);
    std::swap(lane_, other.lane_);
    return *this;
  }
  ~dispatcher();

  [[nodiscard]] friend bool operator==(const dispatcher&, const dispatcher&) = default;

 private:
  friend class sched::scheduler;
  enum class kind : std::uint8_t { standard, io, own, unconfined };

  explicit dispatcher(kind k, sched::lane* own = nullptr) noexcept : what_(k), lane_(own) {}

  kind what_ = kind::standard;
  sched::lane* lane_ = nullptr;
};

namespace detail {

// The running task is on that dispatcher while this lives.
class WEFT_API visit {
 public:
  visit(const dispatcher& d, std::source_location where);
  ~visit();
  visit(const visit&) = delete;
  visit& operator=(const visit&) = delete;

 private:
  void leave() noexcept;
  sched::lane* to_ = nullptr;
  sched::lane* before_ = nullptr;
};

}  // namespace detail

// Moves the running task to that dispatcher, calls f, and moves it back, also when f throws. The turn that it had on another dispatcher
// goes to somebody else meanwhile. The way in is a cancellation point: f is not called then; but a turn that it waits for it has to wait
// for. In a destructor that runs without an exception, shield it (this_task::shielded). Needs a task (usage_error).
template <std::invocable F>
decltype(auto) with(const dispatcher& d, F&& f, std::source_location where = std::source_location::current()) {
  const detail::visit there(d, where);
  return std::invoke(std::forward<F>(f));
}

// Calls f, which may block its thread: other tasks go on meanwhile, if the pool may grow (runtime_options::elastic, stealing). A
// cancellation point before it calls f; later ones do not interrupt f. Like with(), which it is, it gives a turn of single() or
// custom() back for that time. From an outside thread: just calls f.
template <std::invocable F>
decltype(auto) blocking(F&& f, std::source_location where = std::source_location::current()) {
  if (detail::running_task() == nullptr) return std::invoke(std::forward<F>(f));
  return with(dispatcher::io(), std::forward<F>(f), where);
}

}  // namespace weft::inline v1
