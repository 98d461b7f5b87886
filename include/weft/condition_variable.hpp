// A condition variable for weft::mutex, as std::condition_variable is for std::mutex.
//
//   std::unique_lock lock(m);
//   changed.wait(lock, [&] { return !queue.empty(); });
//
// Every wait is a cancellation point. However a wait ends, also by weft::cancelled, the mutex is locked again first;
// taking that lock is not a cancellation point. If a notification reaches a waiter that is already leaving, the
// notification goes to the next waiter. There are no spurious wake-ups.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <source_location>
#include <utility>

#include <weft/detail/config.hpp>
#include <weft/detail/room.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/mutex.hpp>

namespace weft::inline v1 {

// std::unique_lock<weft::mutex>, or a type with the same two functions.
template <class Lock>
concept mutex_lock = requires(Lock& l) {
  { l.mutex() } -> std::same_as<mutex*>;
  { l.owns_lock() } -> std::convertible_to<bool>;
};

enum class cv_status : std::uint8_t { no_timeout, timeout };

class WEFT_API condition_variable {
 public:
  constexpr condition_variable() noexcept = default;
  ~condition_variable();
  condition_variable(const condition_variable&) = delete;
  condition_variable& operator=(const condition_variable&) = delete;

  // Never cancellation points.
  void notify_one() noexcept;
  void notify_all() noexcept;

  void wait(mutex_lock auto& lock, std::source_location where = std::source_location::current()) {
    wait_with(held(lock, where), where);
  }
  template <std::predicate Predicate>
  void wait(mutex_lock auto& lock, Predicate fulfilled, std::source_location where = std::source_location::current()) {
    look_at_cancellation();
    while (!fulfilled()) wait(lock, where);
  }
  cv_status wait_until(mutex_lock auto& lock, std::chrono::steady_clock::time_point when,
                       std::source_location where = std::source_location::current()) {
    return wait_with(held(lock, where), when, where) ? cv_status::no_timeout : cv_status::timeout;
  }
  // Returns what the predicate returned last.
  template <std::predicate Predicate>
  bool wait_until(mutex_lock auto& lock, std::chrono::steady_clock::time_point when, Predicate fulfilled,
                  std::source_location where = std::source_location::current()) {
    look_at_cancellation();
    while (!fulfilled())
      if (wait_until(lock, when, where) == cv_status::timeout) return fulfilled();
    return true;
  }
  template <class Rep, class Period>
  cv_status wait_for(mutex_lock auto& lock, std::chrono::duration<Rep, Period> time,
                     std::source_location where = std::source_location::current()) {
    return wait_until(lock, detail::time_after(time), where);
  }
  template <class Rep, class Period, std::predicate Predicate>
  bool wait_for(mutex_lock auto& lock, std::chrono::duration<Rep, Period> time, Predicate fulfilled,
                std::source_location where = std::source_location::current()) {
    return wait_until(lock, detail::time_after(time), std::move(fulfilled), where);
  }

 private:
  template <class Lock>
  static mutex& held(Lock& lock, std::source_location where) {
    if (lock.mutex() == nullptr || !lock.owns_lock()) refuse(where);
    return *lock.mutex();
  }
  static void look_at_cancellation();
  [[noreturn]] static void refuse(std::source_location where);
  void wait_with(mutex& m, std::source_location where);
  [[nodiscard]] bool wait_with(mutex& m, std::chrono::steady_clock::time_point when, std::source_location where);

  locks::room<2> room_;
};

}  // namespace weft::inline v1
