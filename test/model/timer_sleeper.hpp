// A thread that waits for a timer in the wheel of some worker.
#pragma once

#include "base/clock.hpp"
#include "sched/scheduler.hpp"
#include "time/wheel.hpp"
#include "wait/thread_waiter.hpp"

namespace model {

inline constexpr weft::base::time_ns soon = (weft::base::time_ns{1} << 40) + 100'000;

// A timer in the wheel of a worker that is stuck, and somebody who waits for it.
struct sleeper {
  weft::waits::thread_waiter who;
  weft::timing::entry timer;
  weft::sched::timer_source& timers;
  explicit sleeper(weft::sched::worker& stuck) : timers(stuck.timers()) {
    timer.deadline = soon;
    timers.own_lock().acquire();
    const std::uint64_t word = who.word.begin_park(0);
    timer.waiter.who = &who;
    timer.waiter.ticket = weft::task::state_word::ticket_of(word);
    timers.insert(timer);
    (void)who.word.commit_park();
    timers.own_lock().release();
  }
};

}  // namespace model
