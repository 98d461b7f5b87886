// Dispatchers: how long they last, and that nothing of them stays in a record or without a stack.
#include <stdexcept>
#include <vector>

#include "sched/most_at_once.hpp"
#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
using base::atomic;
using sched_test::most_at_once;
using weft::dispatcher;

// req: KC-2
TEST(Dispatcher, tasks_on_a_dispatcher_go_on_when_its_last_handle_goes) {
  at_worker_counts_in_a_task("a dispatcher without handles", [] {
    most_at_once inside;
    std::vector<weft::join_handle<void>> all;
    {
      const dispatcher one = dispatcher::single();
      for (int i = 0; i < 20; ++i)
        all.push_back(weft::spawn_on(one, [&] {
          inside.enter();
          base::cpu_relax();
          inside.leave();
          weft::yield();
        }));
    }
    for (auto& t : all) t.join();
    EXPECT_EQ(inside.get(), 1);
  });
}

// req: KC-2
TEST(Dispatcher, one_dispatcher_serves_two_runtimes) {
  support::watchdog guard(60s, "two runtimes on one dispatcher");
  const dispatcher one = dispatcher::single();
  int counter = 0;
  watched_runtime first(2);
  watched_runtime second(2);
  std::vector<weft::join_handle<void>> all;
  for (int i = 0; i < 200; ++i)
    all.push_back((i % 2 == 0 ? first : second)->spawn({.on = one}, [&] {
      const int seen = counter;
      base::cpu_relax();
      counter = seen + 1;
      weft::yield();
    }));
  for (auto& t : all) t.join();
  EXPECT_EQ(counter, 200);
}

// A record that was on a dispatcher serves for a task that is on none.
// req: KC-2
TEST(Dispatcher, a_task_has_nothing_of_the_one_before_it_in_the_same_record) {
  at_worker_counts_in_a_task("ordinary tasks that block, after tasks of a single dispatcher", [] {
    const dispatcher one = dispatcher::single();
    most_at_once inside;
    for (int round = 0; round < 50; ++round) {
      weft::spawn_on(one, [] {}).join();
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 4; ++i)
        all.push_back(weft::spawn([&] {
          weft::blocking([] {});
          weft::with(one, [&] {
            inside.enter();
            inside.leave();
          });
        }));
      for (auto& t : all) t.join();
    }
    EXPECT_EQ(inside.get(), 1);
  });
}

// The second stack is with a task that wants the turn of one that has no stack.
// req: CC-14
TEST(Dispatcher, a_task_without_a_stack_keeps_no_turn) {
  support::watchdog guard(60s, "a single dispatcher and too few stacks");
  watched_runtime rt({.workers = 1, .max_stacks = 2, .elastic = false});
  const dispatcher one = dispatcher::single();
  atomic<int> ran{0};
  rt->run([&] {
    atomic<bool> has_stack{false};
    auto other = weft::spawn([&] {
      has_stack.store(true);
      until([&] { return rt.core().without_stack().any(); });
      weft::with(one, [&] { ran.fetch_add(1); });
    });
    until([&] { return has_stack.load(); });
    auto child = weft::spawn_on(one, [&] { ran.fetch_add(1); });
    other.join();
    child.join();
  });
  EXPECT_EQ(ran.load(), 2);
}

// A spawn on a dispatcher that fails: its record serves for a task that is on none.
// req: KC-2
TEST(Dispatcher, a_spawn_that_fails_leaves_no_dispatcher_in_its_record) {
  struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw std::runtime_error("not to be copied"); }
    void operator()() const {}
  };
  support::watchdog guard(60s, "an ordinary task after a spawn that failed");
  watched_runtime rt(1);
  rt->run([] {
    const dispatcher one = dispatcher::single();
    const throws_when_copied body;
    for (int i = 0; i < 10; ++i) {
      EXPECT_THROW((void)weft::spawn_on(one, body), std::runtime_error);
      weft::spawn([] {
        EXPECT_EQ(weft::sched::this_worker()->current()->dispatcher(), nullptr);
        weft::blocking([] {});
      }).join();
    }
  });
}

}  // namespace
