// A timer's place in a worker's wheel, and the wait for it.
#pragma once

#include <cstdint>

#include <weft/detail/config.hpp>
#include <weft/detail/time_point.hpp>
#include <weft/detail/waitable.hpp>

namespace weft::inline v1::sched {
class scheduler;
}

namespace weft::inline v1::timing {

class wheel;

// Belongs to the one who waits; stays where it is until it is on no list.
struct entry {
  waits::node waiter;
  std::int64_t deadline = 0;  // nanoseconds of the steady clock
  std::uint64_t tick = 0;
};

// Movable while nobody waits. A task is woken by the wheel of the worker it parks on, an outside thread by itself.
class WEFT_API timer_operation final : public waits::waitable {
 public:
  explicit timer_operation(std::int64_t deadline) noexcept { entry_.deadline = deadline; }

  void prepare() noexcept override;
  bool try_complete() noexcept override;
  bool try_locked() noexcept override { return try_complete(); }
  bool publish(waits::node& n) noexcept override;
  void unpublish(waits::node& n) noexcept override;
  void lock() noexcept override;
  void unlock() noexcept override;
  [[nodiscard]] base::lock* own_lock() noexcept override;
  [[nodiscard]] std::int64_t deadline() const noexcept override { return entry_.deadline; }
  [[nodiscard]] const char* reason() const noexcept override { return "timer"; }
  [[nodiscard]] const void* object() const noexcept override { return nullptr; }

  [[nodiscard]] waits::node& node() noexcept { return entry_.waiter; }
  void set_deadline(std::int64_t deadline) noexcept { entry_.deadline = deadline; }

 private:
  entry entry_;
  wheel* wheel_ = nullptr;
};

}  // namespace weft::inline v1::timing
