// Names and ids: what people see of a task.
#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/death_test.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "task/name.hpp"

namespace {

using namespace std::chrono_literals;
using support::watched_runtime;
namespace base = weft::base;

// req: CSP-14
TEST(Names, a_name_given_at_spawn_is_seen_from_inside_and_outside) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  auto h = rt->spawn({.name = "parser 7"}, [] { return std::string(weft::this_task::name()); });
  EXPECT_EQ(h.name(), "parser 7");
  EXPECT_EQ(h.ref().name(), "parser 7");
  EXPECT_EQ(h.join(), "parser 7");
}

// req: CSP-14
TEST(Names, a_task_without_a_name_has_an_empty_one_even_in_a_record_that_had_another) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(weft::spawn({.name = "named"}, [] { return std::string(weft::this_task::name()); }).join(), "named");
      EXPECT_EQ(weft::spawn([] { return std::string(weft::this_task::name()); }).join(), "");
      EXPECT_EQ(weft::spawn({.name = ""}, [] { return std::string(weft::this_task::name()); }).join(), "");
    }
  });
}

// req: CSP-14
TEST(Names, set_name_renames_the_running_task) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    weft::this_task::set_name("first");
    EXPECT_EQ(weft::this_task::name(), "first");
    weft::this_task::set_name("second, and longer");
    EXPECT_EQ(weft::this_task::name(), "second, and longer");
    weft::this_task::set_name("3");
    EXPECT_EQ(weft::this_task::name(), "3");
    weft::this_task::set_name("");
    EXPECT_EQ(weft::this_task::name(), "");
  });
}

// req: CSP-14
TEST(Names, of_a_long_name_the_first_31_characters_are_kept) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  const std::string exact(31, 'a');
  const std::string longer = exact + "b";
  EXPECT_EQ(rt->spawn({.name = exact}, [] { return std::string(weft::this_task::name()); }).join(), exact);
  EXPECT_EQ(rt->spawn({.name = longer}, [] { return std::string(weft::this_task::name()); }).join(), exact);
  rt->run([&] {
    weft::this_task::set_name(std::string(10'000, 'x'));
    EXPECT_EQ(weft::this_task::name(), std::string(31, 'x'));
  });
}

// What top -H, gdb and perf show.
// req: CSP-14
TEST(Names, worker_threads_are_called_weft_and_their_number) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  support::latch both(2);
  const auto asks = [&] {
    both.arrive_and_hold();  // keeps its worker, so the other must take the other task
    char name[16] = {};
    pthread_getname_np(pthread_self(), name, sizeof name);
    return std::string(name);
  };
  auto a = rt->spawn(asks);
  auto b = rt->spawn(asks);
  std::vector<std::string> names{a.join(), b.join()};
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"weft-0", "weft-1"}));
}

__attribute__((noinline)) int recurse(int depth) {
  volatile char frame[200];
  frame[0] = static_cast<char>(depth);
  const int below = depth == 0 ? 0 : recurse(depth - 1);
  return below + frame[0];
}

using NamesDeathTest = support::threadsafe_death_test;

// Not under TSan, whose runtime is what overflows first, and hangs.
// req: KC-10 CSP-14
TEST_F(NamesDeathTest, an_overflow_of_main_advises_the_option_that_sizes_its_stack_NoTsan) {
  const auto overflows = [] { return recurse(1'000'000'000); };
  EXPECT_DEATH(weft::run({.workers = 1}, overflows),
               "task \"main\"(.|\n)*runtime_options\\{\\.main_stack_size = 16777216\\}");
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { return weft::spawn({.name = "deep"}, overflows).join(); }),
               "task \"deep\"(.|\n)*spawn\\(attributes\\{\\.stack_size = 393216\\}");
}

// req: CSP-14
TEST(Names, the_first_task_of_run_is_called_main) {
  EXPECT_EQ(weft::run({.workers = 1}, [] { return std::string(weft::this_task::name()); }), "main");
}

// req: CSP-14
TEST(Names, a_walk_over_the_records_finds_the_living_by_name_and_state) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  base::atomic<bool> closed{true};
  auto h = rt->spawn({.name = "waiting for the door"}, [&] {
    while (closed.load()) weft::park_if(closed, true);
  });
  std::string reason;
  support::until([&] {
    bool found = false;
    rt.core().records().walk([&](weft::task::record& t) {
      if (weft::task::state_word::phase_of(t.word.load()) != weft::task::phase::parked) return;
      char name[weft::task::name_capacity];
      if (!weft::task::try_copy_name(t, name) || std::string(name) != "waiting for the door") return;
      reason = t.waits_for.load()->name;
      found = true;
    });
    return found;
  });
  EXPECT_EQ(reason, "park_if");
  closed = false;
  h.ref().unpark();
  h.join();
}

// The names differ in every word, so that parts of two would be seen.
// req: CSP-14
TEST(Names, a_name_read_from_outside_while_the_task_renames_itself_is_one_it_had) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  const std::string lower(31, 'a');
  const std::string upper(25, 'A');
  base::atomic<bool> stop{false};
  auto h = rt->spawn({.name = lower}, [&] {
    while (!stop.load(base::relaxed)) {
      weft::this_task::set_name(upper);
      weft::this_task::set_name(lower);
      weft::this_task::set_name("");
      EXPECT_EQ(weft::this_task::name(), "");
    }
  });
  const weft::task_ref ref = h.ref();
  std::array<std::size_t, 4> seen{};
  for (std::size_t i = 0; i < support::scaled(200'000) || std::ranges::count(seen, 0u) > 1; ++i) {
    const std::string name = i % 2 == 0 ? ref.name() : h.name();
    ++seen[name == lower ? 0 : name == upper ? 1 : name.empty() ? 2 : 3];
  }
  EXPECT_EQ(seen[3], 0u) << "neither the one nor the other";
  for (int i = 0; i < 100; ++i)  // what a dump does, which does not wait: whatever it gets has an end
    rt.core().records().walk([&](weft::task::record& t) {
      char text[weft::task::name_capacity];
      (void)weft::task::try_copy_name(t, text);
      EXPECT_NE(std::memchr(text, '\0', sizeof text), nullptr);
    });
  stop = true;
  h.join();
}

// req: CSP-14
TEST(Names, this_task_needs_a_task_and_says_so) {
  EXPECT_FALSE(weft::this_task::running());
  for (const auto& ask : {+[] { (void)weft::this_task::id(); }, +[] { (void)weft::this_task::name(); },
                          +[] { weft::this_task::set_name("x"); }, +[] { (void)weft::this_task::ref(); },
                          +[] { (void)weft::this_task::is_cancelled(); }, +[] { weft::this_task::check(); },
                          +[] { const weft::this_task::shield s; }}) {
    try {
      ask();
      ADD_FAILURE() << "no complaint";
    } catch (const weft::usage_error& e) {
      EXPECT_NE(std::string(e.what()).find("runs no task"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("this_task::running()"), std::string::npos) << e.what();
    }
  }
  EXPECT_TRUE(weft::run({.workers = 1}, [] { return weft::this_task::running(); }));
}

}  // namespace
