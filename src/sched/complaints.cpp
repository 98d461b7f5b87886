#include "sched/complaints.hpp"

#include <cstdio>

#include "sched/scheduler.hpp"

namespace weft::inline v1::sched {
namespace {

constexpr base::time_ns look_every = 100'000'000;
// If a look comes later than this, the monitor itself was kept from looking.
constexpr base::time_ns too_late = 3 * look_every;

void tell_of_turns(const lane::load& io) noexcept {
  std::fprintf(
      stderr,
      "weft: all %zu turns for blocking() and dispatcher::io() have been taken for a second, and %zu task%s for "
      "one; runtime_options::io_tasks sets how many there are\n",
      io.turns, io.waiting, io.waiting == 1 ? " waits" : "s wait");
}

void tell_of_workers(const pool_sample& p) noexcept {
  std::fprintf(
      stderr,
      "weft: no task has had its turn for a second, and others wait: all %zu workers are kept by tasks that do "
      "not end, %zu of them blocked. Let tasks that compute call weft::yield(), and those that block do it in "
      "weft::blocking(); runtime_options::workers and max_workers set how many workers there may be\n",
      p.workers, p.blocked);
}

std::uint64_t dispatched(scheduler& s) noexcept {
  std::uint64_t sum = 0;
  for (const worker* w : s.workers()) sum += w->counters().dispatched.get();
  return sum;
}

}  // namespace

void complaints::look(scheduler& s, const pool_sample& p, base::time_ns now) noexcept {
  if (looked_at_ == 0) looked_at_ = now;
  const base::time_ns passed = now - looked_at_;
  if (passed < look_every) return;
  looked_at_ = now;
  if (passed >= too_late) {
    turns_.forget();
    workers_.forget();
  }
  const lane::load io = s.io().look();
  if (turns_.has_lasted(io.waiting != 0, io.given_back, now)) tell_of_turns(io);
  if (workers_.has_lasted(p.work_waits && p.idle == 0, dispatched(s), now)) tell_of_workers(p);
}

}  // namespace weft::inline v1::sched
