// A mutex whose waiters park instead of blocking their worker. It is for tasks and outside threads, and works with
// std::lock_guard, std::unique_lock and std::scoped_lock.
//
//   weft::mutex m;
//   std::lock_guard guard(m);
//
// A task may hold it across a suspension, and may unlock it on another thread than the one that it locked it on; but
// the task that locked it must unlock it. An exception that leaves a critical section unlocks the mutex as every other
// way out does: there is no poisoning. docs/semantics.md has the details.
#pragma once

#include <chrono>
#include <mutex>  // std::lock_guard, std::unique_lock, std::scoped_lock
#include <source_location>

#include <weft/detail/config.hpp>
#include <weft/detail/room.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1 {

class mutex;

namespace detail {
// As lock(), but never a cancellation point: for operations that must not be left half done.
WEFT_API void lock_uninterrupted(mutex& m, std::source_location where = std::source_location::current()) noexcept;
}  // namespace detail

class WEFT_API mutex {
 public:
  constexpr mutex() noexcept = default;
  ~mutex();
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // Always cancellation points. They throw usage_error if the caller holds the mutex already.
  void lock(std::source_location where = std::source_location::current());
  [[nodiscard]] bool try_lock_until(std::chrono::steady_clock::time_point when,
                                    std::source_location where = std::source_location::current());
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> time,
                                  std::source_location where = std::source_location::current()) {
    return try_lock_until(detail::time_after(time), where);
  }
  // Never cancellation points.
  [[nodiscard]] bool try_lock() noexcept;
  void unlock() noexcept;
  // The answer was true at some moment during the call.
  [[nodiscard]] bool is_locked() const noexcept;

 private:
  friend class condition_variable;
  friend void detail::lock_uninterrupted(mutex& m, std::source_location where) noexcept;
  locks::room<3> room_;
};

}  // namespace weft::inline v1
