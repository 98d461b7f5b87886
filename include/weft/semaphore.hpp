// A counting semaphore. It serves requests in the order of their arrival: a later request for few permits does not
// overtake an earlier one for many.
//
//   weft::semaphore slots(4);
//   slots.acquire();            // parks while there is none
//   …
//   slots.release();            // in a destructor, if anything in between may throw; every cancellation point may
//   weft::select(slots.on_acquire([] { … }), limit.on_expire([] { … }));
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <utility>

#include <weft/detail/sync_core.hpp>
#include <weft/detail/time_point.hpp>

namespace weft::inline v1 {

class semaphore;

namespace locks {

class semaphore_core;

// A wait for permits, alone or as an arm of a select. It can be moved while it does not wait.
class WEFT_API permit_operation final : public waits::waitable {
 public:
  permit_operation(semaphore_core& s, std::uint64_t permits) noexcept : semaphore_(&s) { entry_.wants = permits; }

  bool try_complete() noexcept override;
  [[nodiscard]] detail::tried try_alone() noexcept { return detail::won_if(try_complete()); }
  void freeze() noexcept override;
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] waits::subject what() const noexcept override;
  [[nodiscard]] waits::node& node() noexcept { return entry_; }

 private:
  friend semaphore_core;
  struct request : waits::node {
    std::uint64_t wants = 0;
  };
  semaphore_core* semaphore_;
  request entry_;
};

}  // namespace locks

class WEFT_API semaphore {
 public:
  [[nodiscard]] static constexpr std::size_t max() noexcept { return SIZE_MAX >> 2; }
  explicit semaphore(std::size_t permits);  // usage_error above max()
  ~semaphore();
  semaphore(const semaphore&) = delete;
  semaphore& operator=(const semaphore&) = delete;

  // Always cancellation points. The caller gets all n permits or none.
  void acquire(std::size_t n = 1, std::source_location where = std::source_location::current());
  [[nodiscard]] bool try_acquire_until(std::chrono::steady_clock::time_point when, std::size_t n = 1,
                                       std::source_location where = std::source_location::current());
  template <class Rep, class Period>
  [[nodiscard]] bool try_acquire_for(std::chrono::duration<Rep, Period> time, std::size_t n = 1,
                                     std::source_location where = std::source_location::current()) {
    return try_acquire_until(detail::time_after(time), n, where);
  }
  [[nodiscard, deprecated("its name is try_acquire_until")]] bool acquire_until(auto... as) {
    return try_acquire_until(as...);
  }
  [[nodiscard, deprecated("its name is try_acquire_for")]] bool acquire_for(auto... as) {
    return try_acquire_for(as...);
  }
  // Never cancellation points. try_acquire does not overtake those that wait. Releasing more than max() permits in all
  // is a usage_error.
  [[nodiscard]] bool try_acquire(std::size_t n = 1) noexcept;
  void release(std::size_t n = 1);
  // The answer was true at some moment during the call.
  [[nodiscard]] std::size_t available() const noexcept;

  // Arms of a select. An arm that wins has acquired the permits.
  [[nodiscard]] auto on_acquire(std::size_t n = 1) { return detail::sync_arm(operation(n)); }
  template <std::invocable F>
  [[nodiscard]] auto on_acquire(std::size_t n, F f) {
    return detail::handled_arm(on_acquire(n), std::move(f));
  }
  template <std::invocable F>
  [[nodiscard]] auto on_acquire(F f) {
    return on_acquire(1, std::move(f));
  }

 private:
  [[nodiscard]] locks::permit_operation operation(std::size_t n) noexcept;
  locks::room<3> room_;
};

}  // namespace weft::inline v1
