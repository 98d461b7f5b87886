// What the monitor decides (sched/monitor_policy.hpp), look by look. model/monitor_test and elastic_test have it at work.
#include "sched/monitor_policy.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace {

using weft::base::time_ns;
using weft::sched::monitor_policy;
using weft::sched::plan;
using weft::sched::pool_look;
using weft::sched::question;
using weft::sched::question_about;
using weft::sched::taken_over;
using weft::sched::worker_look;
using limits = weft::sched::monitor_limits;

constexpr time_ns ms = 1'000'000;
constexpr time_ns s = 1'000 * ms;
constexpr time_ns start = 100 * s;

// Workers as a look may see them.
worker_look advances() { return {}; }
worker_look stuck(time_ns since = limits::stuck_after) {
  worker_look w;
  w.same_task_for = since;
  return w;
}
worker_look put_aside() {
  worker_look w = stuck();
  w.is_held = false;
  return w;
}
worker_look blocked() {
  worker_look w = stuck();
  w.sleeps_in_kernel = true;
  return w;
}
worker_look gives_way() {
  worker_look w;
  w.gives_way = true;
  return w;
}
worker_look sleeps(time_ns length = 0) {
  worker_look w;
  w.asleep_for = length;
  return w;
}
worker_look with_ring(worker_look w) {
  w.has_visible_work = true;
  w.queued = 1;
  return w;
}
worker_look with_slot(worker_look w) {
  w.has_slot = true;
  w.queued = 1;
  return w;
}

// A policy and the time that passes for it.
class looks {
 public:
  explicit looks(std::size_t workers, std::size_t most = 0, time_ns keep_alive = 50 * ms, bool stealing = true)
      : policy(
            {.workers = workers, .most = most == 0 ? workers : most, .stealing = stealing, .keep_alive = keep_alive}) {
    now.now = start;
  }
  // The workers are seen like this, after that much time.
  const plan& see(std::vector<worker_look> workers, time_ns after = limits::shortest_nap) {
    now.now += after;
    now.workers = std::move(workers);
    return policy.decide(now);
  }
  const plan& see_all_sleep(std::size_t workers, time_ns after = limits::shortest_nap) {
    now.someone_works = false;
    now.idle = workers;
    return see(std::vector<worker_look>(workers, sleeps()), after);
  }
  // So many looks at workers that all advance, each after the nap before it.
  time_ns nap_after(int count, std::size_t workers) {
    time_ns nap = limits::shortest_nap;
    for (int i = 0; i < count; ++i) nap = see(std::vector<worker_look>(workers, advances()), nap).nap;
    return nap;
  }
  monitor_policy policy;
  pool_look now;
};

// ---- naps (sched.M2) -------------------------------------------------------------------------------------------------------

// req: CC-16
TEST(MonitorNaps, double_while_all_advance_up_to_the_longest) {
  looks l(2);
  time_ns expected = limits::shortest_nap;
  for (int i = 0; i < 12; ++i) {
    expected = std::min(2 * expected, limits::longest_nap);
    EXPECT_EQ(l.see({advances(), advances()}).nap, expected);
  }
  EXPECT_EQ(expected, limits::longest_nap);
}

struct seen {
  const char* what;
  std::vector<worker_look> workers;
  std::size_t idle;
  time_ns nap;  // after the longest one
};

// req: CC-16
TEST(MonitorNaps, are_shorter_by_what_is_seen) {
  const std::vector<seen> table = {
      {"all advance", {advances(), advances()}, 0, limits::longest_nap},
      {"all advance, one is idle", {advances(), sleeps()}, 1, limits::longest_nap},
      {"one is idle and does not see what lies behind the other",
       {with_ring(advances()), sleeps()},
       1,
       limits::careful_nap},
      {"nobody is idle who should see it", {with_ring(advances()), advances()}, 0, limits::longest_nap},
      {"one stands still", {stuck(), advances()}, 0, limits::shortest_nap},
      {"one has not come to another task, though not for long", {stuck(1), advances()}, 0, limits::shortest_nap},
      {"one was put aside by the system", {put_aside(), advances()}, 0, limits::shortest_nap},
      {"one may block, others are busy", {gives_way(), advances()}, 0, limits::shortest_nap},
      {"one may block, another is idle", {gives_way(), sleeps()}, 1, limits::longest_nap},
  };
  for (const seen& t : table) {
    SCOPED_TRACE(t.what);
    looks l(2);
    ASSERT_EQ(l.nap_after(10, 2), limits::longest_nap);
    l.now.idle = t.idle;
    EXPECT_EQ(l.see(t.workers).nap, t.nap);
  }
}

// The machine is busy enough: naps beside one that the system has put aside grow, but not beyond careful_nap.
// req: CC-16
TEST(MonitorNaps, beside_one_that_was_put_aside_stay_careful) {
  looks l(2);
  time_ns nap = 0;
  for (int i = 0; i < 10; ++i) {
    nap = l.see({put_aside(), advances()}).nap;
    EXPECT_LE(nap, limits::careful_nap);
  }
  EXPECT_EQ(nap, limits::careful_nap);
}

// req: CC-16
TEST(MonitorNaps, stay_short_for_ten_seconds_after_one_was_held_while_others_waited) {
  looks l(2);
  l.now.shared = 1;
  (void)l.see({stuck(), advances()});
  l.now.shared = 0;
  const time_ns alert_until = l.now.now + limits::stay_alert;
  while (l.now.now + limits::alert_nap < alert_until)
    ASSERT_LE(l.see({advances(), advances()}, limits::alert_nap).nap, limits::alert_nap);
  l.now.now = alert_until;
  for (int i = 0; i < 10; ++i) (void)l.see({advances(), advances()});
  EXPECT_EQ(l.nap_after(1, 2), limits::longest_nap);
}

// req: CC-16
TEST(MonitorNaps, are_not_kept_short_by_a_block_that_nobody_waited_for_unless_it_is_long) {
  for (const time_ns length : {limits::stuck_after, limits::alarming_after}) {
    looks l(2);
    (void)l.see({stuck(length), advances()});
    (void)l.nap_after(10, 2);
    EXPECT_EQ(l.nap_after(1, 2), length == limits::alarming_after ? limits::alert_nap : limits::longest_nap);
  }
}

// req: CC-14
TEST(MonitorNaps, are_short_while_somebody_starves_for_a_stack) {
  looks l(2);
  (void)l.nap_after(10, 2);
  l.now.somebody_starves = true;
  const plan& p = l.see({advances(), advances()});
  EXPECT_EQ(p.nap, limits::alert_nap);
  EXPECT_TRUE(p.notify);
  EXPECT_FALSE(p.retry_starved);
  l.now.starving_is_due = true;
  EXPECT_TRUE(l.see({advances(), advances()}).retry_starved);
}

// req: CC-16
TEST(MonitorNaps, begin_anew_after_a_look_that_came_too_late) {
  looks l(2);
  (void)l.nap_after(10, 2);
  l.now.comes_late = true;
  EXPECT_LE(l.see({advances(), advances()}, s).nap, 2 * limits::shortest_nap);
}

// ---- what lies behind a stuck worker ----------------------------------------------------------------------------------

struct rescue {
  const char* what;
  std::vector<worker_look> workers;
  std::size_t idle;
  bool can_grow;
  bool stealing;
  taken_over from_first;
  bool notify;
};

// req: CC-16 W-4
TEST(MonitorRescue, takes_what_nobody_else_reaches) {
  constexpr auto nothing = taken_over::nothing, slot = taken_over::slot, all = taken_over::all;
  const std::vector<rescue> table = {
      {"it advances", {with_ring(advances()), advances()}, 0, true, true, nothing, false},
      {"an idle one steals the rest", {with_ring(stuck()), sleeps()}, 1, true, true, slot, true},
      {"nobody is idle", {with_ring(stuck()), advances()}, 0, true, true, all, true},
      {"nobody else will come to the global queue", {with_ring(stuck()), stuck()}, 0, true, true, slot, true},
      {"the slot counts as work", {with_slot(stuck()), advances()}, 0, true, true, all, true},
      {"it will go on by itself", {with_ring(put_aside()), advances()}, 0, true, true, slot, true},
      {"nothing waits", {stuck(), advances()}, 0, true, true, all, false},
      {"the only one, and no other will be added", {with_slot(stuck())}, 0, false, true, nothing, true},
      {"the only one, but others can be added", {with_slot(stuck())}, 0, true, true, slot, true},
      {"tasks stay where they are", {with_ring(stuck()), advances()}, 0, false, false, nothing, true},
  };
  for (const rescue& t : table) {
    SCOPED_TRACE(t.what);
    const std::size_t workers = t.workers.size();
    looks l(workers, t.can_grow ? 8 : workers, 50 * ms, t.stealing);
    l.now.idle = t.idle;
    const plan& p = l.see(t.workers);
    EXPECT_EQ(p.workers[0].take, t.from_first);
    EXPECT_EQ(p.workers[0].is_stuck, t.workers[0].is_stuck());
    EXPECT_EQ(p.notify, t.notify);
  }
}

// req: LS-K2
TEST(MonitorRescue, takes_all_that_came_to_one_who_left) {
  looks l(2, 2, 50 * ms, false);
  worker_look dead;
  dead.is_dead = true;
  EXPECT_EQ(l.see({dead, advances()}).workers[0].take, taken_over::nothing);
  EXPECT_EQ(l.see({with_ring(dead), advances()}).workers[0].take, taken_over::all);
}

// req: W-4
TEST(MonitorRescue, has_timers_fired_that_nobody_comes_to) {
  looks l(2);
  EXPECT_FALSE(l.see({advances(), advances()}).wake_for_those_outside);
  l.now.timer_is_overdue = true;
  EXPECT_TRUE(l.see({advances(), sleeps()}).wake_for_those_outside);
}

// Who is idle sleeps, and somebody waits for events that only those who are awake poll for.
// req: W-4
TEST(MonitorNaps, stay_careful_while_events_wait_for_workers_that_are_awake) {
  const auto longest_nap_with = [](bool events_wait) {
    looks l(2);
    l.now.idle = 1;
    l.now.events_wait_for_workers = events_wait;
    time_ns nap = 0;
    for (int i = 0; i < 20; ++i) nap = l.see({advances(), sleeps()}).nap;
    return nap;
  };
  EXPECT_EQ(longest_nap_with(true), limits::careful_nap);
  EXPECT_EQ(longest_nap_with(false), limits::longest_nap);
}

// An acceptor waits for events as long as a server lives. That alone is no work.
TEST(MonitorGrowth, adds_one_worker_for_events_if_all_are_kept_by_their_tasks_and_keeps_it) {
  looks l(2, 8);
  l.now.poll_is_overdue = l.now.events_are_wanted = true;
  EXPECT_EQ(l.see({advances(), stuck()}).more_workers, 0u) << "one of them comes to it";
  const plan& p = l.see({stuck(), stuck()});
  EXPECT_EQ(p.more_workers, 1u);
  EXPECT_TRUE(p.wake_for_those_outside);
  EXPECT_FALSE(p.pool.work_waits);
  l.policy.added(1, false, l.now.now);
  l.now.poll_is_overdue = false;
  l.now.idle = 1;
  worker_look rested = sleeps();
  rested.asleep_for = 10'000 * ms;
  EXPECT_EQ(l.see({stuck(), stuck(), rested}).retired, plan::nobody);
  l.now.events_are_wanted = false;
  EXPECT_EQ(l.see({stuck(), stuck(), rested}).retired, 2);
}

// ---- questions to the system ------------------------------------------------------------------------------------------

// req: CC-16
TEST(MonitorQuestions, are_asked_only_where_the_answer_decides_something) {
  pool_look p;
  const auto asked = [&](const worker_look& w, bool work_waits, std::size_t idle) {
    p.idle = idle;
    return question_about(w, p, work_waits);
  };
  EXPECT_EQ(asked(advances(), true, 0), question::none);
  EXPECT_EQ(asked(stuck(), true, 0), question::is_it_held) << "does the pool grow?";
  EXPECT_EQ(asked(stuck(), false, 0), question::none) << "nothing hangs on it";
  EXPECT_EQ(asked(stuck(), true, 1), question::does_it_compute) << "is it to be alert?";
  EXPECT_EQ(asked(with_slot(stuck()), true, 1), question::none) << "an idle one has it now";
  EXPECT_EQ(asked(stuck(limits::alarming_after), false, 0), question::does_it_compute);
  worker_look says_so = stuck(limits::alarming_after);
  says_so.gives_way = true;
  EXPECT_EQ(asked(says_so, false, 0), question::none) << "it has said that it may block";
}

// ---- growth and retirement --------------------------------------------------------------------------------------------

// req: CC-2 CC-16
TEST(MonitorGrowth, replaces_the_blocked_and_adds_to_the_stuck) {
  looks l(2, 16);
  l.now.shared = 5;
  EXPECT_EQ(l.see({stuck(), stuck()}).more_workers, 1u);
  EXPECT_EQ(l.see({blocked(), blocked()}).more_workers, 2u);
  EXPECT_EQ(l.see({gives_way(), gives_way()}).more_workers, 2u);
  EXPECT_EQ(l.see({put_aside(), put_aside()}).more_workers, 0u);
  l.now.idle = 1;
  EXPECT_EQ(l.see({stuck(), sleeps()}).more_workers, 0u);
}

// req: CC-2
TEST(MonitorGrowth, a_pool_of_fixed_size_stays_as_it_is) {
  looks l(2);
  l.now.shared = 5;
  EXPECT_EQ(l.see({stuck(), stuck()}).more_workers, 0u);
  EXPECT_EQ(l.policy.growth().counters().samples.get(), 0u);
}

// req: W-9 CC-2
TEST(MonitorGrowth, pauses_after_a_thread_could_not_be_had) {
  looks l(1, 8);
  l.now.shared = 5;
  ASSERT_EQ(l.see({stuck()}).more_workers, 1u);
  l.policy.added(0, true, l.now.now);
  EXPECT_EQ(l.see({stuck()}, limits::growth_pause - 1).more_workers, 0u);
  EXPECT_EQ(l.see({stuck()}, 1).more_workers, 1u);
  EXPECT_EQ(l.policy.growth().counters().failed.get(), 1u);
}

// req: CC-2
TEST(MonitorGrowth, counts_who_was_added_without_waiting_for_them) {
  looks l(1, 8);
  l.now.shared = 5;
  ASSERT_EQ(l.see({stuck()}).more_workers, 1u);
  l.policy.added(1, false, l.now.now);
  EXPECT_EQ(l.see({stuck()}).more_workers, 0u) << "twice the pool's size";
  EXPECT_EQ(l.policy.growth().counters().grown.get(), 1u);
}

// req: CC-2
TEST(MonitorRetirement, sends_away_the_last_that_has_slept_long_enough_one_at_a_look) {
  looks l(1, 8, 50 * ms);
  l.policy.added(3, false, start);
  const worker_look new_sleeper = sleeps(-1);
  EXPECT_EQ(l.see({advances(), sleeps(50 * ms - 1), new_sleeper, new_sleeper}).retired, plan::nobody);
  EXPECT_EQ(l.see({advances(), sleeps(60 * ms), sleeps(50 * ms), new_sleeper}).retired, 2);
  worker_look leaving = sleeps(70 * ms);
  leaving.is_leaving = true;
  EXPECT_EQ(l.see({advances(), sleeps(60 * ms), leaving, new_sleeper}).retired, 1);
  EXPECT_EQ(l.policy.growth().counters().retired.get(), 2u);
}

// The number of live workers is late, so it counts those itself whom it has told to leave.
// req: CC-2
TEST(MonitorRetirement, the_last_worker_stays) {
  looks l(1, 8, 0);
  l.policy.added(1, false, start);
  EXPECT_EQ(l.see({sleeps(), sleeps()}).retired, 1);
  worker_look leaving = sleeps();
  leaving.is_leaving = true;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(l.see({sleeps(), leaving}).retired, plan::nobody);
}

// req: CC-2 CC-16
TEST(MonitorRetirement, who_replaces_a_blocked_worker_stays) {
  looks l(1, 8, 0);
  l.policy.added(1, false, start);
  EXPECT_EQ(l.see({blocked(), sleeps()}).retired, plan::nobody);
  EXPECT_EQ(l.see({advances(), sleeps()}).retired, 1);
}

// ---- all sleep --------------------------------------------------------------------------------------------------------

// Looks after each other's naps until the plan is the one wanted; how long that took.
template <class Wanted>
time_ns sleeps_until(looks& l, Wanted wanted) {
  const time_ns began = l.now.now;
  time_ns nap = limits::shortest_nap;
  while (l.now.now < began + 100 * s) {
    const plan& p = l.see_all_sleep(2, nap);
    if (wanted(p)) return l.now.now - began;
    nap = p.nap;
  }
  ADD_FAILURE() << "never";
  return 0;
}

// req: KC-5
TEST(MonitorAtRest, memory_goes_back_and_it_rests_after_idleness) {
  looks l(2);
  const time_ns after = sleeps_until(l, [](const plan& p) { return p.trim; });
  EXPECT_GE(after, limits::rest_after);
  EXPECT_LE(after, limits::rest_after + 2 * limits::longest_idle_nap);
  EXPECT_TRUE(l.see_all_sleep(2).rest_if_trimmed);
  l.policy.trimmed(l.now.now, true);
  l.now.someone_works = true;
  l.now.idle = 0;
  EXPECT_LE(l.see({advances(), advances()}, s).nap, 2 * limits::shortest_nap)
      << "whoever ends the rest is looked after";
}

// req: KC-5
TEST(MonitorAtRest, it_asks_for_what_sleepers_keep_before_it_trims) {
  looks l(2);
  l.now.caches_are_kept = true;
  (void)sleeps_until(l, [](const plan& p) { return p.ask_for_caches; });
  const plan& asked = l.see_all_sleep(2);
  EXPECT_FALSE(asked.trim);
  EXPECT_TRUE(asked.ask_for_caches);
  EXPECT_EQ(asked.nap, limits::alert_nap) << "they answer soon";
  l.now.caches_are_asked_for = true;
  EXPECT_TRUE(l.see_all_sleep(2).ask_for_caches) << "one has worked meanwhile, or has no processor";
  l.now.caches_are_kept = false;
  EXPECT_TRUE(l.see_all_sleep(2).trim);
}

// They sleep at every look, and worked between any two of them.
// req: KC-5
TEST(MonitorAtRest, beside_a_heartbeat_it_trims_seldom_and_does_not_rest) {
  looks l(2);
  int trims = 0;
  const time_ns began = l.now.now;
  for (time_ns nap = limits::shortest_nap; l.now.now < began + 10 * s;) {
    ++l.now.sleeps;
    const plan& p = l.see_all_sleep(2, nap);
    nap = p.nap;
    EXPECT_FALSE(p.rest_if_trimmed);
    if (!p.trim) continue;
    ++trims;
    l.policy.trimmed(l.now.now, false);
  }
  EXPECT_GE(trims, 9);
  EXPECT_LE(trims, 11);
}

// req: CC-16
TEST(MonitorAtRest, while_alert_it_is_woken_by_whoever_goes_to_work) {
  looks l(2);
  l.now.shared = 1;
  (void)l.see({stuck(), advances()});
  l.now.shared = 0;
  const time_ns after = sleeps_until(l, [](const plan& p) { return p.then == plan::pause::rest_for_a_while; });
  EXPECT_GE(after, limits::back_off_after) << "not after every short pause";
  EXPECT_LE(l.see_all_sleep(2).nap, limits::longest_idle_rest);
}

// req: CC-16
TEST(MonitorAtRest, while_not_alert_it_naps) {
  looks l(2);
  (void)sleeps_until(l, [](const plan& p) {
    EXPECT_EQ(p.then, plan::pause::nap);
    EXPECT_LE(p.nap, limits::longest_idle_nap);
    return p.trim;
  });
}

// req: CC-16
TEST(MonitorAtRest, nobody_is_stuck_and_the_first_look_after_it_comes_soon) {
  looks l(2);
  (void)l.see({stuck(), advances()});
  for (const auto& w : l.see_all_sleep(2, 5 * ms).workers) EXPECT_FALSE(w.is_stuck);
  for (int i = 0; i < 8; ++i) (void)l.see_all_sleep(2, 5 * ms);
  l.now.someone_works = true;
  l.now.idle = 0;
  const plan& p = l.see({advances(), advances()});
  EXPECT_TRUE(p.stop_asking_for_caches);
  EXPECT_LE(p.nap, 2 * limits::shortest_nap);
}

}  // namespace
