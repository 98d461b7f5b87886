// Who polls the driver: one thread at a time, whichever worker comes by, and one of the sleepers.
//
// A worker that looks up, or has run out of work, takes the events that have come. The first worker that goes to sleep
// while a task waits for an event sleeps in the driver. When it leaves the driver to work, it wakes nobody, because
// workers that are awake poll. Otherwise each event would wake a second thread only to wait in the driver. While a
// timer is due soon it still hands on the watch, if it had it (sched.V2). If none of the workers comes to poll, the monitor
// sees that nobody has polled for a while, and wakes a sleeper.
//
// sched.Q1. While a task waits for an event, a worker is awake, or a sleeper is in the driver, or the monitor is awake.
//     The worker that is the last to sleep finds the driver free and sleeps in it, or another sleeper is in it already.
//     One that leaves the pool from there wakes another sleeper, which takes its place (worker::drain()).
//     model/poller_*, test sched/driver_*
// sched.Q2. One thread polls at a time. A worker that finds another one there does something else.
//     model/poller_*, test sched/driver_*
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "sched/driver.hpp"

namespace weft::inline v1::sched {

class intake;

class poller {
 public:
  explicit poller(std::unique_ptr<driver> d) noexcept : driver_(std::move(d)) {}
  poller(const poller&) = delete;
  poller& operator=(const poller&) = delete;

  [[nodiscard]] driver* polled() const noexcept { return driver_.get(); }
  // Whether some task waits for an event.
  [[nodiscard]] bool is_wanted() const noexcept { return driver_ != nullptr && driver_->is_wanted(); }
  // How many tasks one poll wakes for this worker. What does not fit into its ring would go behind all others; the
  // kernel keeps the rest.
  [[nodiscard]] static std::size_t most_for(const intake& on) noexcept;

  // --- a worker that is awake ---------------------------------------------------------------------------------------
  // Wakes the tasks whose events have come, and queues them on `on`, the calling worker. Returns how many they were.
  std::size_t poll(base::time_ns now, intake& on) noexcept;

  // --- a worker that goes to sleep ----------------------------------------------------------------------------------
  // Returns true if a task waits for an event and nobody polls. The caller then sleeps in the driver, and calls leave()
  // afterwards.
  [[nodiscard]] bool try_enter() noexcept { return is_wanted() && take(use::slept_in); }
  // polled_at_ is relaxed, because it is only a measure for the monitor. What one poll leaves for the next is in the
  // kernel.
  void leave(base::time_ns now) noexcept {
    polled_at_.store(now, base::relaxed);
    used_.store(use::free, base::order<"poller.leave">(base::release));  // pairs with the acquire in take()
  }

  // --- anybody ------------------------------------------------------------------------------------------------------
  // Whether a task waits for an event while no sleeper is in the driver, so that only workers that are awake poll.
  [[nodiscard]] bool depends_on_workers() const noexcept {
    return is_wanted() && used_.load(base::relaxed) != use::slept_in;
  }
  // Whether nobody has polled since that time either.
  [[nodiscard]] bool is_overdue(base::time_ns since) const noexcept {
    return depends_on_workers() && polled_at_.load(base::relaxed) < since;
  }
  // In the child of a fork: the driver and what it has of the kernel's belong to the parent.
  void leak() noexcept { [[maybe_unused]] auto* left = driver_.release(); }

 private:
  enum class use : std::uint8_t { free, polled, slept_in };
  [[nodiscard]] bool take(use how) noexcept {
    use seen = use::free;
    return used_.load(base::relaxed) == use::free &&
           used_.compare_exchange_strong(seen, how, base::order<"poller.take">(base::acquire), base::relaxed);
  }

  std::unique_ptr<driver> driver_;
  alignas(base::cache_line) base::atomic<use> used_{use::free};
  base::atomic<base::time_ns> polled_at_{0};
};

}  // namespace weft::inline v1::sched
