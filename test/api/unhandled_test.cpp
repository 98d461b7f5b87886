// The exception of a task whose handle is gone.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "support/death_test.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using support::at_worker_counts;
using support::until;
namespace base = weft::base;

using UnhandledDeathTest = support::threadsafe_death_test;

// req: BZ-8 CSP-14
TEST_F(UnhandledDeathTest, without_a_handler_it_is_reported_by_name_and_ends_the_process) {
  EXPECT_EXIT(
      weft::run({.workers = 2},
                [] {
                  weft::spawn({.name = "fetcher"}, [] { throw std::runtime_error("no route to host"); }).detach();
                  weft::sleep_for(10s);
                }),
      testing::KilledBySignal(SIGABRT),
      "task \"fetcher\" \\(#[0-9]+\\) ended with an exception that nobody takes: no route to host(.|\n)*"
      "join\\(\\) it(.|\n)*on_unhandled_exception");
}

// req: BZ-8
TEST_F(UnhandledDeathTest, an_unnamed_task_and_something_that_is_no_std_exception_are_reported_too) {
  EXPECT_EXIT(weft::run({.workers = 1},
                        [] {
                          weft::spawn([] { throw 5; }).detach();
                          weft::sleep_for(10s);
                        }),
              testing::KilledBySignal(SIGABRT), "task \"unnamed\" \\(#[0-9]+\\).*not a std::exception");
}

// req: BZ-8
TEST_F(UnhandledDeathTest, a_handle_dropped_after_the_end_reports_as_well) {
  EXPECT_EXIT(
      {
        weft::runtime rt({.workers = 1});
        auto h = rt.spawn({.name = "dropped"}, [] { throw std::runtime_error("unseen"); });
        h.wait();
        h.detach();
      },
      testing::KilledBySignal(SIGABRT), "task \"dropped\".*unseen");
}

// req: BZ-8
TEST_F(UnhandledDeathTest, a_handle_dropped_after_the_runtime_has_gone_reports_as_well) {
  EXPECT_EXIT(
      {
        weft::join_handle<void> h;
        {
          weft::runtime rt({.workers = 1});
          h = rt.spawn({.name = "orphan"}, [] { throw std::runtime_error("unseen"); });
        }
      },
      testing::KilledBySignal(SIGABRT), "task \"orphan\".*unseen");
}

// req: BZ-8
TEST_F(UnhandledDeathTest, the_type_of_what_is_no_std_exception_is_named) {
  struct bad_luck {};
  EXPECT_EXIT(weft::run({.workers = 1},
                        [] {
                          weft::spawn([] { throw bad_luck(); }).detach();
                          weft::sleep_for(10s);
                        }),
              testing::KilledBySignal(SIGABRT), "task \"unnamed\".*bad_luck.*not a std::exception");
}

// req: BZ-8
TEST_F(UnhandledDeathTest, a_handler_that_throws_is_named_before_the_process_ends) {
  EXPECT_EXIT(weft::run({.workers = 1,
                         .on_unhandled_exception = [](std::string_view,
                                                      std::exception_ptr) { throw std::runtime_error("log full"); }},
                        [] {
                          weft::spawn({.name = "fetcher"}, [] { throw 1; }).detach();
                          weft::sleep_for(10s);
                        }),
              testing::KilledBySignal(SIGABRT), "on_unhandled_exception itself threw.*\"fetcher\".*log full");
}

// What two failing tasks do to a program that joins one after the other. `second` ends before its handle is dropped, or
// after.
void join_the_first_of_two_that_fail(bool second_ends_before) {
  const int status = weft::run({.workers = 1}, [=] {
    base::atomic<bool> go{second_ends_before};
    try {
      std::vector<weft::join_handle<void>> all;
      all.push_back(weft::spawn({.name = "first"}, [] { throw std::runtime_error("error of the first"); }));
      all.push_back(weft::spawn({.name = "second"}, [&] {
        until([&] { return go.load(); });
        throw std::runtime_error("error of the second");
      }));
      if (second_ends_before) all[1].wait();
      for (auto& h : all) h.join();
    } catch (const std::runtime_error& e) {
      std::fprintf(stderr, "caught: %s\n", e.what());
    }
    go = true;
    for (int i = 0; i < 100; ++i) weft::yield();
    return 3;
  });
  std::exit(status);
}

// req: BZ-8
TEST_F(UnhandledDeathTest, of_a_task_that_had_failed_before_another_exception_dropped_its_handle_is_only_reported) {
  EXPECT_EXIT(join_the_first_of_two_that_fail(true), testing::ExitedWithCode(3),
              "task \"second\" \\(#[0-9]+\\).*error of the second.*\n(.*\n)*caught: error of the first");
}

// req: BZ-8
TEST_F(UnhandledDeathTest, of_a_task_that_fails_after_another_exception_dropped_its_handle_is_only_reported) {
  EXPECT_EXIT(join_the_first_of_two_that_fail(false), testing::ExitedWithCode(3),
              "caught: error of the first\n(.*\n)*.*task \"second\" \\(#[0-9]+\\).*error of the second");
}

// req: BZ-8
TEST_F(UnhandledDeathTest, of_a_task_detached_while_an_exception_unwinds_still_ends_the_process) {
  struct detaches {
    weft::join_handle<void> h;
    ~detaches() { h.detach(); }
  };
  EXPECT_EXIT(weft::run({.workers = 1},
                        [] {
                          try {
                            detaches d{weft::spawn({.name = "let go"}, [] { throw std::runtime_error("unseen"); })};
                            throw 1;
                          } catch (int) {}
                          weft::sleep_for(10s);
                        }),
              testing::KilledBySignal(SIGABRT), "task \"let go\".*nobody takes: unseen");
}

// req: BZ-8
TEST(Unhandled, a_handler_gets_what_was_dropped_by_another_exception_too) {
  support::watchdog guard(20s);
  base::atomic<int> calls{0};
  {
    weft::runtime rt({.workers = 1, .on_unhandled_exception = [&](std::string_view task, std::exception_ptr) {
                        EXPECT_EQ(task, "second");
                        ++calls;
                      }});
    EXPECT_THROW(rt.run([] {
      auto first = weft::spawn([] { throw 1; });
      auto second = weft::spawn({.name = "second"}, [] { throw 2; });
      first.join();
    }),
                 int);
  }
  EXPECT_EQ(calls.load(), 1);
}

// A record that was used for such a task is as strict as any other when it is used again.
// req: BZ-8
TEST_F(UnhandledDeathTest, leniency_ends_with_the_task) {
  EXPECT_EXIT(weft::run({.workers = 1},
                        [] {
                          for (int i = 0; i < 10; ++i) try {
                              auto dropped = weft::spawn([] { throw 2; });
                              throw 1;
                            } catch (int) {
                              weft::sleep_for(1ms);
                            }
                          for (int i = 0; i < 10; ++i)
                            weft::spawn({.name = "later"}, [] { throw std::runtime_error("strict"); }).detach();
                          weft::sleep_for(10s);
                        }),
              testing::KilledBySignal(SIGABRT), "task \"later\".*nobody takes: strict");
}

// req: BZ-8
TEST(Unhandled, a_handler_gets_the_name_and_the_exception_of_each_once) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    std::mutex mutex;
    std::vector<std::string> seen;
    {
      weft::runtime rt({.workers = workers, .on_unhandled_exception = [&](std::string_view task, std::exception_ptr e) {
                          std::string what;
                          try {
                            std::rethrow_exception(e);
                          } catch (const std::exception& x) {
                            what = x.what();
                          }
                          std::lock_guard hold(mutex);
                          seen.push_back(std::string(task) + ": " + what);
                        }});
      for (int i = 0; i < 100; ++i) {
        const std::string name = std::to_string(i);
        auto h = rt.spawn({.name = name}, [name] { throw std::runtime_error("error of " + name); });
        if (i % 2 == 0) until([&] { return h.is_finished(); });
      }
    }
    ASSERT_EQ(seen.size(), 100u);
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
    for (const std::string& s : seen) EXPECT_EQ(s, s.substr(0, s.find(':')) + ": error of " + s.substr(0, s.find(':')));
  });
}

// req: BZ-8
TEST(Unhandled, a_handler_gets_what_a_handle_that_outlived_its_runtime_lets_go) {
  base::atomic<int> calls{0};
  weft::join_handle<void> h;
  {
    weft::runtime rt({.workers = 1, .on_unhandled_exception = [&](std::string_view task, std::exception_ptr) {
                        EXPECT_EQ(task, "orphan");
                        ++calls;
                      }});
    h = rt.spawn({.name = "orphan"}, [] { throw 1; });
  }
  EXPECT_EQ(calls.load(), 0);
  h.detach();
  EXPECT_EQ(calls.load(), 1);
}

// req: BZ-8
TEST(Unhandled, neither_a_result_nor_a_taken_exception_nor_a_cancellation_is_unhandled) {
  support::watchdog guard(20s);
  base::atomic<int> calls{0};
  {
    weft::runtime rt({.workers = 2, .on_unhandled_exception = [&](std::string_view, std::exception_ptr) { ++calls; }});
    rt.spawn([] { return 1; }).detach();
    EXPECT_THROW(rt.spawn([] { throw 1; }).join(), int);
    auto taken = rt.spawn([] { throw 1; });
    until([&] { return taken.is_finished(); });
    EXPECT_THROW((void)taken.try_join(), int);
    auto cancelled = rt.spawn([] { weft::sleep_for(1h); });
    cancelled.cancel();
    cancelled.detach();
  }
  EXPECT_EQ(calls.load(), 0);
}

// req: BZ-8
TEST(Unhandled, a_handler_may_spawn) {
  support::watchdog guard(20s);
  base::atomic<int> recovered{0};
  {
    weft::runtime rt({.workers = 1, .on_unhandled_exception = [&](std::string_view, std::exception_ptr) {
                        weft::spawn([&] { ++recovered; }).detach();
                      }});
    rt.run([] {
      for (int i = 0; i < 10; ++i) weft::spawn([] { throw 1; }).detach();
    });
  }
  EXPECT_EQ(recovered.load(), 10);
}

// What nobody took is destroyed by the worker that ran the task. A destructor may suspend; while it does, the worker is free.
// req: BZ-8 CC-6
TEST(Unhandled, the_destructor_of_a_result_that_nobody_takes_may_suspend_without_blocking_its_worker) {
  support::watchdog guard(20s);
  static base::atomic<bool> go{false};
  static base::atomic<bool> waits{false};
  static base::atomic<bool> over{false};
  struct slow_to_go {
    bool owner = true;
    slow_to_go() = default;
    slow_to_go(slow_to_go&& other) noexcept : owner(std::exchange(other.owner, false)) {}
    ~slow_to_go() {
      if (!owner) return;
      waits = true;
      for (int i = 0; i < 200 && !go.load(); ++i) weft::sleep_for(10ms);
      over = true;
    }
  };
  bool others_ran = false;
  {
    weft::runtime rt({.workers = 1});
    base::atomic<bool> detached{false};
    rt.spawn([&] {
        until([&] { return detached.load(); });
        return slow_to_go();
      }).detach();
    detached = true;
    until([] { return waits.load(); });
    rt.run([&] { others_ran = !over.load(); });
    go = true;
  }
  EXPECT_TRUE(others_ran) << "the only worker was blocked for as long as the destructor slept";
  EXPECT_TRUE(over.load());
}

}  // namespace
