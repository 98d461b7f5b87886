// What is done about a deadlock: it is told once, on stderr, and the process ends or goes on.
//
// A monitor that goes to rest asks here, with nothing else to do. Whoever asks looks at all runtimes of the process, so it
// does not matter whose monitor is the last to rest.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/known_threads.hpp"
#include "base/thread.hpp"
#include "observe/cycle_watch.hpp"
#include "observe/deadlock_report.hpp"
#include "observe/deadlock_rule.hpp"
#include "sched/runtimes.hpp"
#include "sched/scheduler.hpp"
#include "sched/upcalls.hpp"

namespace weft::inline v1::observe {
namespace {

constexpr int exit_code = 124;

// An outside thread has begun to rest in Weft. A monitor that was at rest before looks again, because that thread may have
// been the last one that could wake a task.
void wake_monitors() noexcept {
  const sched::runtimes list;
  for (sched::scheduler* s : list.all()) s->monitoring().ensure_awake();
}

// What those runtimes want whose tasks are stuck: the strongest of it, but nothing if one of them wants nothing. Something
// that Weft does not see may wake the tasks of that one, and they may wake the others.
deadlock wanted_by(std::span<sched::scheduler* const> all) noexcept {
  deadlock strongest = deadlock::off;
  for (sched::scheduler* s : all) {
    if (live_tasks_in(*s) == 0) continue;
    if (s->options().when_stuck == deadlock::off) return deadlock::off;
    strongest = std::min(strongest, s->options().when_stuck);
  }
  return strongest;
}

// Each of them has to say so: a library may have a runtime that knows nothing of the threads of another one.
bool are_alone(std::span<sched::scheduler* const> all) noexcept {
  return std::all_of(all.begin(), all.end(), [](auto* s) { return s->options().alone || live_tasks_in(*s) == 0; });
}

void say(const std::string& text) noexcept {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

// What the program has written and not flushed. A stuck task may hold the lock of a stream for ever, so another thread
// does it, and is not waited for long.
void flush_all() {
  static constinit base::atomic<std::uint32_t> is_done{0};
  base::thread([] {
    std::fflush(nullptr);
    is_done.store(1, base::release);  // pairs with the acquire below: nothing else follows, but it should be seen soon
    base::futex_wake(&is_done, 1);
  }).detach();
  const base::time_ns until = base::now() + 500'000'000;
  while (is_done.load(base::acquire) == 0 && base::now() < until) base::futex_wait(is_done, 0, until);
}

// The threads are asked for at most so often: outside threads that wait for each other in Weft rest all the time.
constexpr base::time_ns pause_between_proofs = 100'000'000;

struct verdict {
  bool is_over = false;  // the deadlock was told, now or before
  base::time_ns ask_again = base::never_ns;  // it is too early to tell
};

verdict tell_if_proved(std::span<sched::scheduler* const> all, deadlock wanted) {
  static stillness told;  // under the list's lock
  static base::time_ns proved_at = -pause_between_proofs;  // likewise
  const std::optional<stillness> still = look_for_stillness(all);
  if (!still || still->tasks == 0) return {};
  if (*still == told) return {.is_over = true};
  const base::time_ns now = base::now();
  if (now - proved_at < pause_between_proofs) return {.ask_again = proved_at + pause_between_proofs};
  proved_at = now;
  base::tell_of_rests(&wake_monitors);  // before the threads are looked at (base.T3)
  const std::optional<proof> found = prove_deadlock(all, are_alone(all));
  if (!found) return {};
  told = found->what;
  say(report_of(all, *found));
  if (wanted != deadlock::report_and_exit) {
    say("weft: going on; this is reported once\n");
    return {.is_over = true};
  }
  say("weft: exit 124 (WEFT_DEADLOCK_ABORT=0 goes on)\n");
  // Not std::exit: destructors of statics may wait for the very tasks that are stuck.
  try {
    flush_all();
  } catch (const std::exception&) {
    // No thread can be had. What is in the buffers is lost, as at any _exit.
  }
  ::_exit(exit_code);
}

}  // namespace
}  // namespace weft::inline v1::observe

namespace weft::inline v1::sched {

// The runtime has nothing else to do, so it does not matter how long this takes.
base::time_ns look_for_deadlock(scheduler& of, std::uint64_t& told_cycles) noexcept {
  observe::verdict proved;
  try {
    {
      const runtimes list;
      const deadlock wanted = observe::wanted_by(list.all());
      if (wanted != deadlock::off) proved = observe::tell_if_proved(list.all(), wanted);
    }
    // Something may still wake somebody, but nobody who is on a cycle. This needs one runtime only, and others must not
    // wait for the list meanwhile.
    if (!proved.is_over) observe::watch_cycles(of, std::chrono::milliseconds(0), told_cycles);
  } catch (const std::exception&) {
    // No memory for the report. The next rest tries again.
  }
  return proved.ask_again;
}

}  // namespace weft::inline v1::sched
