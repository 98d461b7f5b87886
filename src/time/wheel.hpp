// The timers of one worker: a hierarchical wheel with eight levels of 64 slots and ticks of 2^15 ns.
//
// A timer lies on the level of the highest bit in which its tick differs from the wheel's own time, so inserting and
// removing are O(1). When the wheel's time reaches a slot of a higher level, the timers in it move down.
//
// time.H1. No timer fires early: its tick is rounded up, and it fires when that whole tick has passed.
//     test time/no_sleep_ends_early, time/none_expires_early_*
// time.H2. No timer is lost: insert, remove and fire happen under one lock. The earliest deadline can be read without
//     it.
//     model/timer, test time/wheel_*
//     Timers that are due together fire in any order, because sorting them would first move each down the levels.
// time.H3. A removed timer costs nothing any more. At most one wake-up finds its slot empty.
//     test time/cancelled_sleeps_leave_no_timer_*, time/*_is_removed_at_once
//
// Rejected: a heap (O(log n) with a cache miss per level: 100,000 sleeping tasks), and one wheel for all workers (all
// sleeping tasks would meet on its lock).
#pragma once

#include <cstdint>

#include "base/atomic.hpp"
#include "base/lock.hpp"
#include "sched/timer_source.hpp"
#include "wait/fiber_wait.hpp"
#include <weft/detail/timer_core.hpp>

namespace weft::inline v1::timing {

class wheel final : public sched::timer_source {
 public:
  [[nodiscard]] base::time_ns next_deadline() const noexcept override { return next_.load(base::acquire); }
  std::size_t fire(base::time_ns now, std::size_t most, sched::fired_timers& into) noexcept override;

  void set(sched::alarm& a, base::time_ns when) noexcept override;
  [[nodiscard]] bool clear(sched::alarm& a) noexcept override;
  void end() noexcept override;

  void insert(entry& t) noexcept override;
  void remove(entry& t) noexcept override;

 private:
  static constexpr int tick_shift = 15;
  static constexpr int levels = 8;
  static constexpr int slots = 64;

  struct position {
    int level = -1;  // -1: there is no timer
    int slot = 0;
    std::uint64_t tick = 0;
  };
  void place(entry& t) noexcept;
  [[nodiscard]] position earliest() const noexcept;
  void publish_earliest() noexcept;

  // Written under lock_ and read without it. publish_earliest() has the release, next_deadline() the acquire.
  base::atomic<base::time_ns> next_{base::never_ns};
  std::uint64_t elapsed_ = 0;  // every tick up to here has fired; under lock_, like the next two
  std::uint64_t occupied_[levels] = {};
  waits::node* lists_[levels * slots] = {};
};

}  // namespace weft::inline v1::timing
