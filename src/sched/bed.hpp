// Where an idle worker sleeps: on a word of its own, or in the runtime's driver. Only one worker at a time sleeps in
// the driver (poller.hpp).
//
// A wake that comes before the sleep leaves a token, and the sleep then returns at once. The sleeper finds out by
// itself why it was woken. A token that is left over from an earlier wake costs one more look.
//
// sched.B1. No wake is lost, wherever the worker sleeps. A wake that comes before the worker lies down finds no sleeper
//     and leaves the token, which the worker sees as it lies down. A later wake finds where the worker sleeps.
//     model/bed_*
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.hpp"
#include "base/cache_line.hpp"
#include "sched/chain.hpp"
#include "task/task.hpp"

namespace weft::inline v1::sched {

class driver;

class alignas(base::cache_line) bed {
 public:
  explicit bed(driver* of_the_runtime) noexcept : driver_(of_the_runtime) {}
  bed(const bed&) = delete;
  bed& operator=(const bed&) = delete;

  // Sleeps until wake() or the deadline. Returns at once if there is a token, and takes it.
  void sleep(base::time_ns deadline) noexcept;
  // The same in the driver, which the caller has for itself (poller.hpp). It also returns when the driver has woken a
  // task.
  void sleep_in_driver(base::time_ns deadline, std::size_t most, chain<task::record>& woken) noexcept;
  // Any thread may call this.
  void wake() noexcept;

 private:
  static constexpr std::uint32_t token = 0, nothing = 1, asleep = 2, in_driver = 3;
  base::atomic<std::uint32_t> state_{nothing};
  driver* const driver_;
};

}  // namespace weft::inline v1::sched
