// The timers of one worker: a hierarchical wheel, eight levels of 64 slots, ticks of 2^15 ns.
//
// A timer lies on the level of the highest bit in which its tick differs from the wheel's own time, so inserting and removing
// are O(1); when the wheel's time reaches a slot of a higher level, its timers move down.
//
// H1. None fires early: its tick is rounded up, and fires when that whole tick has passed.  test time/never_early
// H2. None is lost: insert, remove and fire are under one lock; the earliest deadline is readable without it.
//     Those that are due together fire in any order: sorting them would move each down the levels first.
// H3. A removed timer costs nothing any more; at most one wake-up finds its slot empty.     test time/cancel_*
//
// Rejected: a heap (O(log n) with a cache miss per level: 100,000 sleeping tasks), one wheel for all workers (every sleep
// would meet on its lock).
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sched/driver.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/detail/timer_core.hpp>

namespace weft::inline v1::timing {

class wheel final : public sched::timer_source {
 public:
  [[nodiscard]] base::time_ns next_deadline() const noexcept override { return next_.load(base::acquire); }
  std::size_t fire(base::time_ns now, sched::worker& on, std::size_t most = SIZE_MAX) noexcept override;

  void set(sched::alarm& a, base::time_ns when) noexcept override;
  [[nodiscard]] bool clear(sched::alarm& a) noexcept override;

  void lock() noexcept { lock_.acquire(); }
  void unlock() noexcept { lock_.release(); }
  [[nodiscard]] base::lock& own_lock() noexcept { return lock_; }
  // With the lock.
  void insert(entry& t) noexcept;
  void remove(entry& t) noexcept;

 private:
  static constexpr int tick_shift = 15;
  static constexpr int levels = 8;
  static constexpr int slots = 64;

  struct position {
    int level = -1;  // -1: none
    int slot = 0;
    std::uint64_t tick = 0;
  };
  void place(entry& t) noexcept;
  [[nodiscard]] position earliest() const noexcept;
  void publish_earliest() noexcept;

  base::lock lock_;
  base::atomic<base::time_ns> next_{base::never_ns};
  std::uint64_t elapsed_ = 0;  // every tick up to here has fired
  std::uint64_t occupied_[levels] = {};
  waits::node* lists_[levels * slots] = {};
};

}  // namespace weft::inline v1::timing
