#include "observe/cycle_watch.hpp"

#include <cstdio>
#include <exception>
#include <utility>

#include "base/clock.hpp"
#include "observe/deadlock_report.hpp"
#include "observe/deadlock_rule.hpp"
#include "observe/wait_graph.hpp"
#include "sched/scheduler.hpp"
#include "sched/upcalls.hpp"

namespace weft::inline v1::observe {
namespace {

constexpr std::uint64_t most_tasks_watched = 1000;
// A walk visits the records of tasks that have ended, too. So many slabs hold some 10,000 records; a guess.
constexpr std::size_t most_slabs_while_busy = 16;
constexpr std::size_t most_slabs_at_rest = 1024;  // a second of the monitor's time at most; a guess
constexpr std::chrono::milliseconds usual_wait(500);

// Whether at least two tasks have long waited for something that another task has to do.
bool some_wait_long(sched::scheduler& s, std::chrono::milliseconds waited_for) noexcept {
  const auto now = static_cast<std::uint32_t>(base::now() / 1'000'000);
  std::size_t found = 0;
  s.records().walk([&](const task::record& t) {
    if (task::state_word::phase_of(t.word.load()) != task::phase::parked) return;
    const waits::wait_kind* const kind_of_wait = t.waits_for.load(base::relaxed);
    if (kind_of_wait == nullptr || static_cast<std::int32_t>(now - t.since_ms.load(base::relaxed)) < waited_for.count())
      return;
    switch (kind_of_wait->number) {
      case waits::kind_number::join:
      case waits::kind_number::scope:
      case waits::kind_number::mutex:
      case waits::kind_number::shared_mutex_write:
      case waits::kind_number::shared_mutex_read: ++found; break;
      default: break;
    }
  });
  return found >= 2;
}

// The cycles that are certain, as one number: the ids of the tasks and the tickets of their waits. 0: there is none.
std::uint64_t certain_cycles(const snapshot& seen) {
  const wait_graph graph({&seen, 1});
  const auto cycles = graph.cycles();
  base::fence_seq_cst();
  std::uint64_t sum = 0;
  for (const auto& c : cycles) {
    for (const std::size_t i : c) {
      const task_view& t = *graph.nodes()[i].task;
      if (!still_waits(t)) return 0;
      sum += t.id * 31 + task::state_word::ticket_of(t.word) + 1;
    }
  }
  return sum;
}

}  // namespace

void watch_cycles(sched::scheduler& s, std::chrono::milliseconds waited_for, std::uint64_t& told) {
  if (s.options().when_stuck == deadlock::off || live_tasks_in(s) > most_tasks_watched) return;
  const std::size_t most_slabs = waited_for.count() != 0 ? most_slabs_while_busy : most_slabs_at_rest;
  if (s.records().slab_count() > most_slabs) return;
  if (!some_wait_long(s, waited_for)) return;
  if (certain_cycles(take_snapshot(s, {.stacks = false, .running = false, .names = false})) == 0) return;
  std::vector<snapshot> seen;
  seen.push_back(take_snapshot(s, {.stacks = true, .running = false, .objects = true}));
  const std::uint64_t found = certain_cycles(seen.front());
  if (found == 0 || std::exchange(told, found) == found) return;
  std::fputs((report_of_cycles(seen) + "weft: going on; this is reported once\n").c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace weft::inline v1::observe

namespace weft::inline v1::sched {

void look_for_cycles(scheduler& of, std::uint64_t& told) noexcept {
  try {
    observe::watch_cycles(of, observe::usual_wait, told);
  } catch (const std::exception&) {
    // No memory. The next look tries again.
  }
}

}  // namespace weft::inline v1::sched
