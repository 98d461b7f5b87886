// Deadlocks: each kind is reported with names, places and a hint, and the process ends with 124.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "observe/deadlocks.hpp"

namespace {

using namespace deadlocks;

constexpr const char* here = "deadlock_test.cpp:";

std::size_t reports_in(const std::string& said, const char* head = "weft: DEADLOCK: ") {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = said.find(head, at)) != std::string::npos; ++at) ++n;
  return n;
}

void lock_both(weft::mutex& first, weft::mutex& second, weft::latch& both) {
  std::lock_guard one(first);
  both.arrive_and_wait();
  std::lock_guard two(second);
}

// req: CC-15 OB-3
TEST(Deadlock, two_crossed_mutexes_are_reported_with_the_cycle_and_the_cure) {
  const ended e = run_in_child([] {
    weft::mutex a, b;
    weft::latch both(2);
    auto alice = weft::spawn({.name = "alice"}, [&] { lock_both(a, b, both); });
    auto bob = weft::spawn({.name = "bob"}, [&] { lock_both(b, a, both); });
    alice.join();
    bob.join();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("3 tasks are parked"));
  EXPECT_THAT(e.said, HasSubstr("2 workers asleep, 0 runnable, no timers, no I/O, "));
  if (!support::under_tsan) {
    EXPECT_THAT(e.said, HasSubstr("no I/O, no other threads"));
  }
  EXPECT_THAT(e.said, HasSubstr("cycle of 2:"));
  EXPECT_THAT(e.said, ContainsRegex("#[0-9]+ \"alice\"  waits .* for mutex M[12]"));
  EXPECT_THAT(e.said, ContainsRegex("#[0-9]+ \"bob\"  waits .* for mutex M[12]"));
  EXPECT_THAT(e.said, ContainsRegex("M[12] \\(on the stack of #1 \"main\"\\) is held by"));
  EXPECT_THAT(e.said, ContainsRegex("is held by #[0-9]+ \"(alice|bob)\", which closes the cycle"));
  EXPECT_THAT(e.said, ContainsRegex("behind it:\n  #1 \"main\"  waits .* for the end of #[0-9]+ \"alice\""));
  EXPECT_THAT(e.said, HasSubstr(here));
  EXPECT_THAT(e.said, HasSubstr("hint: two locks in opposite order; std::scoped_lock takes both"));
  EXPECT_THAT(e.said, HasSubstr("weft: exit 124 (WEFT_DEADLOCK_ABORT=0 goes on)"));
}

// req: CC-15
TEST(Deadlock, a_lock_that_is_handed_on_in_a_circle_of_three) {
  const ended e = run_in_child([] {
    weft::mutex m[3];
    weft::latch all(3);
    weft::with_scope([&](weft::scope& s) {
      for (int i = 0; i < 3; ++i)
        s.spawn([&, i] {
          std::lock_guard one(m[i]);
          all.arrive_and_wait();
          std::lock_guard two(m[(i + 1) % 3]);
        });
    });
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("cycle of 3:"));
  EXPECT_THAT(e.said, HasSubstr("hint: locks that are taken in a circle"));
  EXPECT_THAT(e.said, ContainsRegex("behind it:\n  #1 \"main\"  waits .* for the end of scope"));
}

// The first thing that a newcomer meets.
// req: CC-15
TEST(Deadlock, a_receive_whose_only_writer_the_receiver_has_itself) {
  const ended e = run_in_child([] {
    auto [out, in] = weft::make_channel<int>(4);
    (void)out.send(1);
    while (in.recv()) {}
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("1 task is parked and nothing in this process can wake it"));
  EXPECT_THAT(e.said,
              ContainsRegex("#1 \"main\"  waits .* to receive from channel C1 \\(0 of 4, open, 1 writer, 1 reader"));
  EXPECT_THAT(e.said, ContainsRegex("its only writer is held by #1 \"main\" itself"));
  EXPECT_THAT(e.said, HasSubstr(here));
  EXPECT_THAT(e.said, HasSubstr("hint: reset() the writer before the loop"));
}

// req: CC-15
TEST(Deadlock, a_forgotten_close) {
  const ended e = run_in_child([] {
    auto [out, in] = weft::make_channel<int>();
    auto sum = weft::spawn({.name = "sum"}, [from = std::move(in)] {
      int all = 0;
      while (auto v = from.recv()) all += *v;
      return all;
    });
    for (int i = 0; i < 3; ++i) (void)out.send(i);
    (void)sum.join();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, ContainsRegex("\"main\"  waits .* for the end of #2 \"sum\""));
  EXPECT_THAT(e.said, ContainsRegex("\"sum\"  waits .* to receive from channel C1"));
  EXPECT_THAT(e.said, HasSubstr("its only writer is probably held by #1 \"main\""));
  EXPECT_THAT(e.said,
              HasSubstr("hint: #1 \"main\" waits for the end of a task and probably still has a writer of channel C1"));
}

// req: CC-15
TEST(Deadlock, a_reader_that_wants_to_write_waits_for_itself) {
  const ended e = run_in_child([] {
    weft::shared_mutex m;
    std::shared_lock reads(m);
    std::unique_lock writes(m);
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, ContainsRegex("#1 \"main\"  waits .* to write under shared_mutex R1 \\(held by 1 reader"));
}

// req: CC-15
TEST(Deadlock, a_send_under_a_lock_that_the_receiver_wants) {
  const ended e = run_in_child([] {
    weft::mutex m;
    auto [out, in] = weft::make_channel<int>();
    weft::event locked;
    auto sender = weft::spawn({.name = "sender"}, [&, to = std::move(out)] {
      std::lock_guard hold(m);
      locked.set();
      (void)to.send(1);
    });
    locked.wait();
    {
      std::lock_guard hold(m);
      (void)in.recv();
    }
    sender.join();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, ContainsRegex("#1 \"main\"  waits .* for mutex M1 \\(held by #2 \"sender\""));
  EXPECT_THAT(e.said, HasSubstr("hint: #2 \"sender\" sends while it holds mutex M1, for which #1 \"main\" waits"));
}

// req: CC-15
TEST(Deadlock, tasks_that_join_each_other) {
  const ended e = run_in_child([] {
    weft::join_handle<void> one, two;
    weft::event both;
    one = weft::spawn({.name = "one"}, [&] {
      both.wait();
      two.join();
    });
    two = weft::spawn({.name = "two"}, [&] {
      both.wait();
      one.join();
    });
    both.set();
    weft::event never;
    never.wait();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("cycle of 2:"));
  EXPECT_THAT(e.said, ContainsRegex("\"one\"  waits .* for the end of #[0-9]+ \"two\""));
  EXPECT_THAT(e.said, HasSubstr("hint: tasks that wait for each other's end"));
}

// req: CC-15
TEST(Deadlock, a_child_that_waits_for_the_body_of_its_scope) {
  const ended e = run_in_child([] {
    weft::join_handle<void> parent;
    weft::event made;
    parent = weft::spawn({.name = "parent"}, [&] {
      made.wait();
      weft::with_scope([&](weft::scope& s) { s.spawn({.name = "child"}, [&] { parent.join(); }); });
    });
    made.set();
    weft::event never;
    never.wait();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("cycle of 2:"));
  EXPECT_THAT(e.said, ContainsRegex("\"parent\"  waits .* for the end of scope"));
  EXPECT_THAT(e.said, ContainsRegex("\"child\"  waits .* for the end of #[0-9]+ \"parent\""));
  EXPECT_THAT(e.said, HasSubstr("hint: a child waits for the end of a task that waits for the end of its scope"));
}

// req: CC-15
TEST(Deadlock, a_join_under_a_lock_that_the_joined_task_wants) {
  const ended e = run_in_child([] {
    weft::mutex m;
    std::lock_guard hold(m);
    weft::spawn({.name = "other"}, [&] { std::lock_guard too(m); }).join();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("cycle of 2:"));
  EXPECT_THAT(e.said, HasSubstr("hint: #1 \"main\" waits for the end of a task while it holds a lock"));
}

// req: CC-15
TEST(Deadlock, a_barrier_that_lacks_one) {
  const ended e = run_in_child([] {
    weft::barrier together(3);
    weft::with_scope([&](weft::scope& s) {
      for (int i = 0; i < 2; ++i) s.spawn([&] { together.arrive_and_wait(); });
    });
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("for barrier B1 (1 of 3 have not arrived"));
  EXPECT_THAT(e.said, HasSubstr("hint: fewer tasks come to barrier B1 than it expects"));
}

// req: CC-15
TEST(Deadlock, a_select_for_which_nobody_is_left) {
  const ended e = run_in_child([] {
    auto [out1, in1] = weft::make_channel<int>();
    auto [out2, in2] = weft::make_channel<int>(2);
    weft::select(in1.on_recv([](int) {}), in2.on_recv([](int) {}));
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, ContainsRegex("in a select to receive from channel C1 .* or to receive from channel C2 "));
  EXPECT_THAT(e.said, HasSubstr("hint: no arm of the select of #1 \"main\" can become ready"));
}

// req: CC-15
TEST(Deadlock, a_lost_notification) {
  const ended e = run_in_child([] {
    weft::mutex m;
    weft::condition_variable changed;
    changed.notify_one();
    std::unique_lock hold(m);
    changed.wait(hold);
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("condition_variable V1"));
  EXPECT_THAT(e.said, HasSubstr("hint: nobody notifies"));
}

// req: CC-15
TEST(Deadlock, a_full_channel_behind_a_reader_that_is_stuck) {
  const ended e = run_in_child([] {
    auto [out, in] = weft::make_channel<int>(1);
    weft::event never;
    auto reader = weft::spawn({.name = "reader"}, [&, from = std::move(in)] {
      never.wait();
      while (from.recv()) {}
    });
    for (int i = 0; i < 9; ++i) (void)out.send(i);
    reader.join();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, ContainsRegex("#1 \"main\"  waits .* to send to channel C1 \\(1 of 1, open"));
  EXPECT_THAT(e.said, HasSubstr("its only reader is probably held by #2 \"reader\""));
  EXPECT_THAT(e.said, HasSubstr("hint: nobody receives from channel C1"));
}

// req: CC-15
TEST(Deadlock, two_runtimes_that_wait_for_each_other) {
  const ended e = in_child([] {
    weft::runtime first(usual_options(1)), second(usual_options(1));
    weft::event ready;
    weft::join_handle<void> there;
    auto here_too = first.spawn({.name = "here"}, [&] {
      ready.wait();
      there.join();
    });
    there = second.spawn({.name = "there"}, [&] { here_too.join(); });
    ready.set();
    first.shutdown();
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("2 runtimes, 2 workers asleep"));
  EXPECT_THAT(e.said, HasSubstr("cycle of 2:"));
  EXPECT_THAT(e.said, ContainsRegex("\"here\" of runtime 1  waits .* for the end of #[0-9]+ \"there\" of runtime 2"));
}

// The main thread is outside, and may wake tasks, until it joins. That is long after the monitor went to rest.
// req: CC-15
TEST(Deadlock, a_thread_that_joins_late_is_noticed) {
  const ended e = in_child([] {
    weft::runtime rt(usual_options());
    weft::event never;
    auto stuck = rt.spawn({.name = "stuck"}, [&] { never.wait(); });
    if (!support::under_tsan) {
      std::this_thread::sleep_for(500ms);
      std::fputs("still here\n", stderr);
    }
    stuck.join();
  });
  EXPECT_DEADLOCK(e);
  if (!support::under_tsan) {
    EXPECT_THAT(e.said, testing::StartsWith("still here\nweft: DEADLOCK"));
  }
}

// req: CC-15
TEST(Deadlock, one_worker_is_as_good_as_eight) {
  for (const std::size_t workers : {1, 8}) {
    const ended e = run_in_child(
        [] {
          weft::event never;
          never.wait();
        },
        workers);
    EXPECT_DEADLOCK(e);
    EXPECT_THAT(e.said, HasSubstr("event E1 (not set"));
    EXPECT_THAT(e.said, HasSubstr("hint: nobody sets event E1"));
  }
}

// A thousand tasks are told in a few lines.
// req: CC-15
TEST(Deadlock, many_tasks_are_counted) {
  const ended e = run_in_child([] {
    weft::event never;
    weft::with_scope([&](weft::scope& s) {
      for (int i = 0; i < 1000; ++i) s.spawn([&] { never.wait(); });
    });
  });
  EXPECT_DEADLOCK(e);
  EXPECT_THAT(e.said, HasSubstr("1,001 tasks are parked"));
  EXPECT_THAT(e.said, HasSubstr("and 981 more tasks"));
  EXPECT_LT(std::count(e.said.begin(), e.said.end(), '\n'), 60);
}

// ---- cycles beside others that go on ---------------------------------------------------------------------------------

// Two tasks that wait for each other until they are cancelled, and what goes on meanwhile.
void cross_while(void (*others)()) {
  weft::mutex a, b;
  weft::latch both(2);
  auto alice = weft::spawn({.name = "alice"}, [&] { lock_both(a, b, both); });
  auto bob = weft::spawn({.name = "bob"}, [&] { lock_both(b, a, both); });
  others();
  alice.cancel();
  bob.join();
}

// req: CC-15
TEST(Deadlock, a_cycle_is_told_once_while_others_work) {
  const ended e = run_in_child([] {
    cross_while([] {
      const auto until = std::chrono::steady_clock::now() + 2500ms;
      while (std::chrono::steady_clock::now() < until) weft::yield();
    });
  });
  EXPECT_EQ(e.code, 0) << e.said;
  EXPECT_EQ(reports_in(e.said, "weft: DEADLOCK of 2 tasks while others go on"), 1u) << e.said;
  EXPECT_THAT(e.said, HasSubstr("only cancellation ends it"));
  EXPECT_THAT(e.said, HasSubstr("cycle of 2:"));
  EXPECT_THAT(e.said, HasSubstr("\"alice\""));
  EXPECT_THAT(e.said, HasSubstr("hint: two locks in opposite order"));
}

// req: CC-15
TEST(Deadlock, a_cycle_is_told_while_a_timer_is_all_that_is_left) {
  const ended e = run_in_child([] { cross_while([] { weft::sleep_for(1500ms); }); });
  EXPECT_EQ(e.code, 0) << e.said;
  EXPECT_EQ(reports_in(e.said, "weft: DEADLOCK of 2 tasks while others go on"), 1u) << e.said;
}

// req: CC-15
TEST(Deadlock, a_cycle_is_told_beside_a_thread_outside) {
  const ended e = in_child([] {
    weft::runtime rt({.workers = 2});
    const auto all = rt.spawn([] {
      cross_while([] {
        weft::event never;
        never.wait();
      });
    });
    std::this_thread::sleep_for(1500ms);
    ::_exit(0);
  });
  EXPECT_EQ(e.code, 0) << e.said;
  EXPECT_EQ(reports_in(e.said, "weft: DEADLOCK of 2 tasks while others go on"), 1u) << e.said;
}

// ---- what is done about it -------------------------------------------------------------------------------------------

// A process that is stuck and goes on being stuck. The alarm ends it, with another code.
[[noreturn]] void be_stuck(weft::deadlock how) {
  ::signal(SIGALRM, [](int) { ::_exit(7); });
  ::alarm(2);
  weft::runtime_options o = usual_options();
  o.deadlock = how;
  (void)weft::run(o, [] {
    weft::event never;
    never.wait();
  });
  ::_exit(1);
}

// req: CC-13 CC-15
TEST(Deadlock, with_the_abort_switched_off_it_is_reported_once_and_the_process_goes_on) {
  const ended e = in_child([] {
    ::setenv("WEFT_DEADLOCK_ABORT", "0", 1);
    be_stuck(weft::deadlock::report_and_exit);
  });
  EXPECT_EQ(e.code, 7) << e.said;
  EXPECT_EQ(reports_in(e.said), 1u) << e.said;
  EXPECT_THAT(e.said, HasSubstr("weft: going on; this is reported once"));
}

TEST(Deadlock, a_runtime_may_want_the_report_alone) {
  const ended e = in_child([] { be_stuck(weft::deadlock::report); });
  EXPECT_EQ(e.code, 7) << e.said;
  EXPECT_EQ(reports_in(e.said), 1u) << e.said;
}

TEST(Deadlock, a_runtime_may_want_nothing) {
  const ended e = in_child([] { be_stuck(weft::deadlock::off); });
  EXPECT_EQ(e.code, 7) << e.said;
  EXPECT_EQ(e.said, "");
}

// req: CC-13
TEST(Deadlock, a_bad_value_of_the_variable_is_named) {
  const ended e = in_child([] {
    ::setenv("WEFT_DEADLOCK_ABORT", "maybe", 1);
    weft::run([] {});
  });
  EXPECT_EQ(e.code, 0);
  EXPECT_EQ(e.said, "weft: WEFT_DEADLOCK_ABORT=maybe is neither 0 nor 1; taken as 1\n");
}

TEST(Deadlock, what_was_printed_before_is_not_lost) {
  int both[2];
  ASSERT_EQ(::pipe(both), 0);
  const ended e = in_child([&] {
    ::dup2(both[1], STDOUT_FILENO);
    std::printf("half a line");
    be_stuck(weft::deadlock::report_and_exit);
  });
  ::close(both[1]);
  char text[64] = {};
  EXPECT_GT(::read(both[0], text, sizeof text - 1), 0);
  ::close(both[0]);
  EXPECT_STREQ(text, "half a line");
  EXPECT_EQ(e.code, deadlock_code);
}

}  // namespace
