// What a task notes when it parks, for those who want to know why it waits: the kind, the object, the place, and since when.
#include <span>

#include "base/clock.hpp"
#include "chan/channels.hpp"
#include "sched/scheduler.hpp"
#include <weft/detail/select_core.hpp>

namespace {

using namespace chan_test;
namespace waits = weft::waits;

// The record of the one task that waits so.
weft::task::record* waiter_of(watched_runtime& rt, waits::kind_number kind) {
  weft::task::record* found = nullptr;
  until([&] {
    rt.core().records().walk([&](weft::task::record& t) {
      const waits::wait_kind* noted = t.waits_for.load();
      if (weft::task::state_word::phase_of(t.word.load()) == weft::task::phase::parked && noted != nullptr &&
          noted->number == kind)
        found = &t;
    });
    return found != nullptr;
  });
  return found;
}

// How late the clock was that the wait was stamped with, in milliseconds.
std::int32_t lateness(const weft::task::record& t, weft::base::time_ns parked_at) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(parked_at / 1'000'000) - t.since_ms.load());
}

// Ten times what it is to be: with a clock that nobody refreshes it would be the length of the pause.
constexpr std::int32_t most_late = 100;
constexpr auto pause = 400ms;

// req: CC-18
TEST(Site, a_task_that_parks_after_a_long_time_without_a_suspension_knows_when) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  auto [out, in] = weft::make_channel<int>();
  weft::base::time_ns parked_at = 0;
  auto task = rt->spawn([&] {
    const auto end = std::chrono::steady_clock::now() + pause;
    while (std::chrono::steady_clock::now() < end) {}
    parked_at = weft::base::now();
    (void)in.recv();
  });
  const weft::task::record* t = waiter_of(rt, waits::kind_number::receive);
  EXPECT_LE(lateness(*t, parked_at), most_late);
  EXPECT_GE(lateness(*t, parked_at), -1);
  EXPECT_TRUE(out.send(1));
  task.join();
}

// req: CC-18
TEST(Site, a_task_on_a_worker_that_has_slept_knows_when_it_parks) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  auto [out, in] = weft::make_channel<int>();
  std::this_thread::sleep_for(pause);  // nobody looks at the clock meanwhile
  weft::base::time_ns parked_at = 0;
  auto task = rt->spawn([&] {
    parked_at = weft::base::now();
    (void)in.recv();
  });
  const weft::task::record* t = waiter_of(rt, waits::kind_number::receive);
  EXPECT_LE(lateness(*t, parked_at), most_late);
  EXPECT_TRUE(out.send(1));
  task.join();
}

// req: CSP-14
TEST(Site, a_select_notes_its_arms_with_their_kinds_and_objects) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  auto [out, in] = weft::make_channel<int>();
  auto [back, answers] = weft::make_channel<int>();
  auto task = rt->spawn([&] {
    int v = 0;
    auto limit = weft::after(1h);
    (void)weft::alt(in >> v, back << 1, limit);
  });
  const weft::task::record* t = waiter_of(rt, waits::kind_number::select);
  const auto& arms = *static_cast<const std::span<const waits::arm>*>(t->waits_on().load());
  ASSERT_EQ(arms.size(), 3u);
  EXPECT_STREQ(arms[0].what->what().kind->name, "receive");
  EXPECT_STREQ(arms[1].what->what().kind->name, "send");
  EXPECT_STREQ(arms[2].what->what().kind->name, "timer");
  EXPECT_NE(arms[0].what->what().object, arms[1].what->what().object);
  EXPECT_TRUE(out.send(1));
  task.join();
}

}  // namespace
