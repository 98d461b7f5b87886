// A timer's entry in a worker's wheel, and the wait for it.
#pragma once

#include <cstdint>

#include <weft/detail/config.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::sched {
class timer_source;
}

namespace weft::inline v1::timing {

// Belongs to the waiter. It must not move until it is on no list.
struct entry {
  waits::node waiter;
  std::int64_t deadline = 0;  // nanoseconds of the steady clock
  std::uint64_t tick = 0;
};

// Can be moved while nobody waits. The wheel of the worker that a task parks on wakes the task; an outside thread wakes
// itself.
class WEFT_API timer_operation final : public waits::waitable {
 public:
  explicit timer_operation(std::int64_t deadline) noexcept { entry_.deadline = deadline; }

  void prepare() noexcept override;
  bool try_complete() noexcept override;
  bool try_locked() noexcept override { return try_complete(); }
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] std::int64_t deadline() const noexcept override { return entry_.deadline; }
  [[nodiscard]] waits::subject what() const noexcept override;

  [[nodiscard]] waits::node& node() noexcept { return entry_.waiter; }
  void set_deadline(std::int64_t deadline) noexcept { entry_.deadline = deadline; }

 private:
  entry entry_;
  sched::timer_source* timers_ = nullptr;
};

}  // namespace weft::inline v1::timing
