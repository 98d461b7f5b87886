// A mutex for many readers or one writer. Writers come first: a writer that waits keeps new readers out, and is served
// before readers that wait. Works with std::unique_lock, std::lock_guard and std::shared_lock.
#pragma once

#include <chrono>
#include <mutex>  // std::lock_guard, std::unique_lock
#include <shared_mutex>  // std::shared_lock
#include <source_location>

#include <weft/detail/config.hpp>
#include <weft/detail/room.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1 {

class WEFT_API shared_mutex {
 public:
  constexpr shared_mutex() noexcept = default;
  ~shared_mutex();
  shared_mutex(const shared_mutex&) = delete;
  shared_mutex& operator=(const shared_mutex&) = delete;

  // Always cancellation points. They throw usage_error if the caller already holds it as a writer.
  void lock(std::source_location where = std::source_location::current());
  [[nodiscard]] bool try_lock_until(std::chrono::steady_clock::time_point when,
                                    std::source_location where = std::source_location::current());
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(std::chrono::duration<Rep, Period> time,
                                  std::source_location where = std::source_location::current()) {
    return try_lock_until(detail::time_after(time), where);
  }
  // The same for readers. A caller that reads already must not call it: a writer may have begun to wait in between, and
  // then both would wait for ever.
  void lock_shared(std::source_location where = std::source_location::current());
  [[nodiscard]] bool try_lock_shared_until(std::chrono::steady_clock::time_point when,
                                           std::source_location where = std::source_location::current());
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_shared_for(std::chrono::duration<Rep, Period> time,
                                         std::source_location where = std::source_location::current()) {
    return try_lock_shared_until(detail::time_after(time), where);
  }
  // Never cancellation points.
  [[nodiscard]] bool try_lock() noexcept;
  [[nodiscard]] bool try_lock_shared() noexcept;
  void unlock() noexcept;
  void unlock_shared() noexcept;

 private:
  locks::room<5> room_;
};

}  // namespace weft::inline v1
