// A mutex whose waiters park instead of blocking their worker. For tasks and outside threads, with std::lock_guard,
// std::unique_lock and std::scoped_lock.
//
//   weft::mutex m;
//   std::lock_guard guard(m);
//
// It may be held across a suspension, and unlocked on another thread than it was locked on, but by the same task. An exception
// that leaves a critical section unlocks it like any other way out: there is no poisoning. docs/semantics.md has the details.
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
// As lock(), but never a cancellation point: for what must not be left half-way.
WEFT_API void lock_uninterrupted(mutex& m, std::source_location where = std::source_location::current()) noexcept;
}  // namespace detail

class WEFT_API mutex {
 public:
  constexpr mutex() noexcept = default;
  ~mutex();
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  // Cancellation points, always. Throw usage_error if the caller holds it already.
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
  // Was true at some moment of the call.
  [[nodiscard]] bool is_locked() const noexcept;

 private:
  friend class condition_variable;
  friend void detail::lock_uninterrupted(mutex& m, std::source_location where) noexcept;
  locks::room<3> room_;
};

}  // namespace weft::inline v1
