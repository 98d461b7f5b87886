// Where an idle worker sleeps, and what may wake it by itself. `sched` declares it; `time` and later `io` implement it.
#pragma once

#include <cstddef>
#include <memory>

#include "base/atomic.hpp"

namespace weft::inline v1::task {
struct record;
}

namespace weft::inline v1::sched {

class worker;
class alarm;

// One per worker. A wake before the sleep makes the sleep return at once: a token, not an event. The sleeper finds out by
// itself why it was woken; a token left over from before costs one more look.
class driver {
 public:
  virtual ~driver() = default;
  // Sleeps until wake() or the deadline. Returns at once if a token is there; takes it.
  virtual void sleep(base::time_ns deadline) noexcept = 0;
  virtual void wake() noexcept = 0;
};

[[nodiscard]] std::unique_ptr<driver> make_futex_driver();

// The timers of one worker. Any thread may fire them, so a stuck worker delays nobody.
class timer_source {
 public:
  virtual ~timer_source() = default;
  // The earliest moment at which fire() may have something to do; never_ns when empty. Any thread, no lock.
  [[nodiscard]] virtual base::time_ns next_deadline() const noexcept = 0;
  // Wakes what is due at `now`, at most `most`; returns how many were woken. What is left stays due: next_deadline() says so.
  // Runs on a worker, which gets the tasks.
  virtual std::size_t fire(base::time_ns now, worker& on, std::size_t most) noexcept = 0;
  // Has it ring at that time or, if it is past, soon.
  virtual void set(alarm& a, base::time_ns when) noexcept = 0;
  // False: it rings now or has rung.
  [[nodiscard]] virtual bool clear(alarm& a) noexcept = 0;
};

// Defined by the time layer.
[[nodiscard]] std::unique_ptr<timer_source> make_timer_source();

}  // namespace weft::inline v1::sched
