// See sched/worker.hpp beside this.
#pragma once

#include <exception>

#include "sched/upcalls.hpp"
#include "sched/worker.hpp"

namespace weft::inline v1::sched {

class scheduler {
 public:
  static void schedule(record* t) noexcept;
  static void schedule_joiner(record* t) noexcept { schedule(t); }
  static void schedule_all(chain<record>&& claimed) noexcept {
    while (record* t = claimed.pop_front()) schedule(t);
  }
  void finish(record* t, task::phase how) noexcept;  // as in sched/scheduler.cpp
  [[nodiscard]] task::record_pool& records() noexcept { return records_; }

 private:
  task::record_pool records_;
};

scheduler& the_scheduler() noexcept;

void report_unhandled(const record& t, const std::exception_ptr& error) noexcept;
[[nodiscard]] inline std::uint32_t fork_generation() noexcept { return 0; }
void add_reference(record* t) noexcept;
void drop_reference(record* t) noexcept;

}  // namespace weft::inline v1::sched
