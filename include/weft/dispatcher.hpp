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

// A counted handle to a dispatcher; cheap to copy. All dispatchers of a runtime share its worker threads. A dispatcher
// limits how many of its tasks run at a time. A worker that runs a task of io, custom or single is replaced while other
// work waits, so such tasks may block.
//
// When the last handle is gone, the tasks on the dispatcher continue there, and the dispatcher ends with the last of
// them.
class WEFT_API dispatcher {
 public:
  dispatcher() noexcept = default;  // the default: as many tasks at a time as there are workers
  // The runtime's dispatcher for calls that block: runtime_options::io_tasks tasks at a time.
  [[nodiscard]] static dispatcher io() noexcept;
  // At most `tasks` tasks at a time, in the order in which they became runnable. Throws std::invalid_argument for 0.
  [[nodiscard]] static dispatcher custom(std::size_t tasks);
  // One task at a time, in that order. Between two suspension points its tasks exclude each other. They do not always
  // run on the same thread.
  [[nodiscard]] static dispatcher single() { return custom(1); }
  // A task that is spawned on it starts at once, in place of its spawner. The spawner continues when the task suspends
  // for the first time or ends, perhaps on another thread, so such a spawn is a suspension point. From then on the task
  // behaves as on the default dispatcher.
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

// The running task is on this dispatcher while this object lives.
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

// Moves the running task to the dispatcher, calls f, and moves the task back, also when f throws. Meanwhile the turn
// that the task had on its own dispatcher goes to another task. The way in is a cancellation point: a task that is
// cancelled there does not call f. A task that already waits for a turn cannot be cancelled until it gets one. In a
// destructor that runs without an exception in flight, shield the call (this_task::shielded). Needs a task
// (usage_error).
template <std::invocable F>
decltype(auto) with(const dispatcher& d, F&& f, std::source_location where = std::source_location::current()) {
  const detail::visit there(d, where);
  return std::invoke(std::forward<F>(f));
}

// Calls f, which may block its thread. Other tasks continue meanwhile, if the pool may grow (runtime_options::elastic,
// stealing). There is a cancellation point before the call of f; a later cancellation does not interrupt f. This is
// with() on the io dispatcher, so it gives up a turn on single() or custom() for that time. An outside thread just
// calls f.
template <std::invocable F>
decltype(auto) blocking(F&& f, std::source_location where = std::source_location::current()) {
  if (detail::running_task() == nullptr) return std::invoke(std::forward<F>(f));
  return with(dispatcher::io(), std::forward<F>(f), where);
}

}  // namespace weft::inline v1
