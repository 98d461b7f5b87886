// Events and notify: set against wait, cancel and time-out (src/sync/signal).
// sources: sync/signal.cpp sync/caller.cpp wait/select.cpp time/timer.cpp time/wheel.cpp wait/fiber_wait.cpp wait/stop_bridge.cpp wait/thread_waiter.cpp wait/join.cpp wait/errors.cpp task/state.cpp sched/reference.cpp task/locals.cpp
// abstract lock
// abstract scheduler
//
// sync.E1. Nobody waits for a flag that is set (a deadlock here).
// sync.E2. A set for one goes to one, or stays; a waiter that leaves takes none with it (a deadlock here).
#include "sync/signal.hpp"

#include "sync.hpp"

using namespace model;

namespace {

constexpr locks::until_set stays{.takes = false};
constexpr locks::until_set takes{.takes = true};
void wait(locks::signal_core& s, locks::until_set u) { locks::wait_for(s, u, locks::event_kind, {}); }

}  // namespace

// req: BZ-13
MODEL_TEST(event_set_against_two_waits) {
  locks::signal_core s;
  base::plain<int> told{0};
  const auto waits = [&] {
    wait(s, stays);
    model_assert(told == 1);
  };
  fiber a(waits);
  fiber b(waits);
  fiber setter([&] {
    told = 1;
    s.set_for_all();
  });
  join_all();
}

// The event is the waiter's, and goes while set() is not yet over.
// req: BZ-13
MODEL_TEST(event_who_waits_destroys, .preemptions = -1) {
  auto* s = new locks::signal_core;
  fiber waiter([=] {
    wait(*s, stays);
    delete s;
  });
  fiber setter([=] { s->set_for_all(); });
  join_all();
}

// req: BZ-13 CC-10
MODEL_TEST(event_cancel_against_set) {
  locks::signal_core s;
  fiber a([&] { wait(s, stays); });
  fiber b([&] { wait(s, stays); });
  thread([&] { a.cancel(); });
  fiber setter([&] { s.set_for_all(); });
  join_all();
  model_assert(!s.is_waited_for() && s.is_set());
}

// req: BZ-13 BZ-11
MODEL_TEST(event_time_out_against_set) {
  locks::signal_core s;
  weft::timing::wheel w;
  bool got = false;
  fiber late([&] { got = locks::wait_until(s, takes, locks::event_kind, at(begin + 3 * tick), {}); }, &w);
  fiber setter([&] { s.set_for_one(); });
  thread([&] { fire(w, begin + 5 * tick); });
  join_all();
  model_assert(s.is_set() != got && !s.is_waited_for());
}

// One for each, whatever comes first.
// req: BZ-13
MODEL_TEST(notify_two_and_two) {
  locks::signal_core s;
  base::atomic<int> woken{0};
  fiber a([&] {
    wait(s, takes);
    woken.fetch_add(1, base::relaxed);
  });
  fiber giver([&] {
    s.set_for_one();
    while (woken.load(base::relaxed) == 0) base::cpu_relax();
    s.set_for_one();
  });
  fiber b([&] {
    wait(s, takes);
    woken.fetch_add(1, base::relaxed);
  });
  join_all();
  model_assert(!s.is_set() && !s.is_waited_for());
}

// The one notification goes to the one who stays.
// req: BZ-13 CC-10 LS-P3
MODEL_TEST(notify_cancel_against_notify) {
  locks::signal_core s;
  fiber a([&] { wait(s, takes); });
  thread([&] { a.cancel(); });
  fiber giver([&] { s.set_for_one(); });
  join_all();
  model_assert(s.is_set() == a.cancelled && !s.is_waited_for());
}

// req: BZ-13 CC-10 LS-P3
MODEL_TEST(notify_a_cancelled_waiter_takes_none_with_it) {
  locks::signal_core s;
  fiber leaves([&] { wait(s, takes); });
  fiber stays_on([&] { wait(s, takes); });
  thread([&] { leaves.cancel(); });
  fiber giver([&] { s.set_for_one(); });
  thread([&] {
    explore::when_quiet();
    if (s.is_waited_for()) s.set_for_one();  // the first went to the one that was to leave
  });
  join_all();
  model_assert(!s.is_waited_for());
}

// req: BZ-13
MODEL_TEST(notify_all_wakes_those_who_wait) {
  locks::signal_core s;
  base::atomic<int> ended{0};
  const auto waits = [&] {
    wait(s, takes);
    ended.fetch_add(1, base::relaxed);
  };
  fiber a(waits);
  fiber b(waits);
  fiber giver([&] {
    while (ended.load(base::relaxed) < 2) {
      s.wake_present();
      base::cpu_relax();
    }
  });
  join_all();
}
