// Task groups that are left without join(): what is told of tasks that failed or were cut short.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "support/death_test.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

// What a runtime with a handler was told while `life` ran as a task of it.
template <class Life>
std::vector<std::string> told(std::size_t workers, Life life) {
  support::watchdog guard(60s);
  std::mutex mutex;
  std::vector<std::string> lines;
  {
    weft::runtime rt({.workers = workers, .on_unhandled_exception = [&](std::string_view task, std::exception_ptr e) {
                        std::string what;
                        try {
                          std::rethrow_exception(e);
                        } catch (const weft::scope_cancelled& x) {
                          what = std::string("cut short, ") + x.what();
                        } catch (const std::exception& x) {
                          what = x.what();
                        }
                        const std::lock_guard hold(mutex);
                        lines.push_back(std::string(task) + ": " + what);
                      }});
    try {
      rt.run(life);
    } catch (const std::exception&) {  // what `life` is left by
    }
  }
  return lines;
}

using lines = std::vector<std::string>;

void fail_in(weft::task_group& group, const char* name) {
  group.spawn({.name = name}, [] { throw std::runtime_error("lost"); }).wait();
}

// req: UX-5
TEST(GroupReport, a_failure_that_nobody_joins_is_told_once_with_the_name_of_its_task) {
  at_worker_counts([](std::size_t workers) {
    EXPECT_EQ(told(workers,
                   [] {
                     weft::task_group group;
                     group.spawn({.name = "sibling"}, [] { wait_for_ever(); });  // cut short by the failure
                     fail_in(group, "thrower");
                   }),
              lines{"thrower: lost"});
  });
}

// req: UX-5
TEST(GroupReport, tasks_that_are_cut_short_are_told_once_with_the_name_of_one_and_the_place_of_the_group) {
  at_worker_counts([](std::size_t workers) {
    const lines all = told(workers, [] {
      weft::task_group group;
      for (int i = 0; i < 3; ++i) group.spawn({.name = "walker"}, [] { wait_for_ever(); });
      group.spawn([] {}).join();  // ended in time: not counted
    });
    ASSERT_EQ(all.size(), 1u);
    EXPECT_NE(all[0].find("walker: cut short, weft: the task_group of"), std::string::npos) << all[0];
    EXPECT_NE(all[0].find("group_report_test.cpp"), std::string::npos) << all[0];
    EXPECT_NE(all[0].find("3 of its tasks were cut short, the first \"walker\""), std::string::npos) << all[0];
  });
}

// req: UX-5
TEST(GroupReport, a_single_task_that_is_cut_short_is_told_in_the_singular) {
  const lines all = told(1, [] {
    weft::task_group group;
    group.spawn([] { wait_for_ever(); });
  });
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].find("1 of its tasks was cut short"), std::string::npos) << all[0];
}

// req: UX-5
TEST(GroupReport, nothing_is_told_of_tasks_that_ended_well_or_whose_end_was_asked_for) {
  EXPECT_EQ(told(2,
                 [] {
                   weft::task_group done, cancelled, timed_out, joined;
                   done.spawn([] {}).wait();
                   cancelled.spawn([] { wait_for_ever(); });
                   cancelled.cancel();
                   timed_out.spawn([] { wait_for_ever(); });
                   timed_out.cancel_after(0s);
                   joined.spawn([] { throw std::runtime_error("had"); });
                   EXPECT_THROW(joined.join(), std::runtime_error);
                 }),
            lines{});
}

// req: UX-5
TEST(GroupReport, a_failure_that_was_had_by_joining_the_task_is_not_lost) {
  EXPECT_EQ(told(2,
                 [] {
                   weft::task_group group, another;
                   auto first = group.spawn([] { throw std::runtime_error("had"); });
                   EXPECT_THROW(first.join(), std::runtime_error);
                   auto second = another.spawn([]() -> int { throw std::runtime_error("thrown on"); });
                   (void)second.join();
                 }),
            lines{});
}

// req: UX-5
TEST(GroupReport, a_failure_that_a_sibling_joined_and_let_out_is_the_siblings) {
  EXPECT_EQ(told(2,
                 [] {
                   weft::task_group group;
                   // Shielded, so that it hears of the failure before its own cancellation.
                   auto joiner = group.spawn({.name = "joiner"}, [&] {
                     const weft::this_task::shield held;
                     group.spawn([] { throw std::runtime_error("lost"); }).join();
                   });
                   joiner.wait();
                 }),
            lines{"joiner: lost"});
}

// req: UX-5
TEST(GroupReport, a_group_that_collects_tells_of_each_failure_that_nobody_had) {
  const lines all = told(2, [] {
    weft::task_group group({.failures = weft::failures::collect});
    fail_in(group, "one");
    fail_in(group, "two");
    EXPECT_THROW(group.spawn({.name = "three"}, [] { throw std::runtime_error("had"); }).join(), std::runtime_error);
  });
  EXPECT_EQ(all, (lines{"one: lost", "two: lost"}));
}

// req: UX-5
TEST(GroupReport, while_an_exception_unwinds_or_the_owner_is_cancelled_failures_are_told_and_cut_short_tasks_are_not) {
  EXPECT_EQ(told(2,
                 [] {
                   weft::task_group failed, cut_short;
                   fail_in(failed, "thrower");
                   cut_short.spawn([] { wait_for_ever(); });
                   throw std::runtime_error("another");
                 }),
            lines{"thrower: lost"});
  EXPECT_EQ(told(2,
                 [] {
                   weft::task_group failed, cut_short;
                   fail_in(failed, "thrower");
                   cut_short.spawn([] { wait_for_ever(); });
                   weft::this_task::ref().cancel();
                   weft::yield();
                 }),
            lines{"thrower: lost"});
}

// req: UX-5
TEST(GroupReport, a_group_made_while_an_exception_unwinds_is_not_left_by_that_exception) {
  struct cleans_up {
    ~cleans_up() {
      weft::task_group group;
      group.spawn({.name = "cleaner"}, [] { wait_for_ever(); });
    }
  };
  const lines all = told(2, [] {
    const cleans_up at_the_end;
    throw std::runtime_error("another");
  });
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].find("cleaner: cut short"), std::string::npos) << all[0];
}

using GroupReportDeathTest = support::threadsafe_death_test;

// req: UX-5
TEST_F(GroupReportDeathTest, without_a_handler_a_lost_failure_ends_the_process) {
  EXPECT_EXIT(weft::run({.workers = 1},
                        [] {
                          weft::task_group group;
                          fail_in(group, "thrower");
                        }),
              testing::KilledBySignal(SIGABRT), "task \"thrower\" \\(#[0-9]+\\).*nobody takes: lost");
}

// req: UX-5
TEST_F(GroupReportDeathTest, without_a_handler_cut_short_tasks_are_one_line_on_stderr) {
  EXPECT_EXIT(std::exit(weft::run({.workers = 1},
                                  [] {
                                    {
                                      weft::task_group group;
                                      group.spawn({.name = "walker"}, [] { wait_for_ever(); });
                                    }
                                    return 3;
                                  })),
              testing::ExitedWithCode(3), "^weft: the task_group of .*the first \"walker\" \\(#[0-9]+\\).*\n$");
}

// req: UX-5
TEST_F(GroupReportDeathTest,
       without_a_handler_a_failure_is_one_line_if_an_exception_or_a_cancellation_leaves_the_group) {
  EXPECT_EXIT(std::exit(weft::run({.workers = 1},
                                  [] {
                                    try {
                                      weft::task_group group;
                                      fail_in(group, "thrower");
                                      throw 1;
                                    } catch (int) {
                                      return 3;
                                    }
                                  })),
              testing::ExitedWithCode(3), "^weft: task \"thrower\" \\(#[0-9]+\\).*lost\n$");
  EXPECT_EXIT(std::exit(weft::run({.workers = 1},
                                  [] {
                                    {
                                      weft::task_group group;
                                      fail_in(group, "thrower");
                                      weft::this_task::ref().cancel();
                                    }  // by no exception: the owner finds out that it is cancelled later
                                    return 3;
                                  })),
              testing::ExitedWithCode(3), "^weft: task \"thrower\" \\(#[0-9]+\\).*lost\n$");
}

}  // namespace
