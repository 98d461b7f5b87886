// A call that has no meaning is refused with a message that says what to do, and leaves everything as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "context/stack.hpp"
#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using support::watched_runtime;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
namespace base = weft::base;

// What f throws as E says; "" with a failure if it does not throw that.
template <class E, class F>
std::string complaint(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}

constexpr std::size_t tebibyte = std::size_t{1} << 40;

// req: CC-14 W-9
TEST(BadInput, a_runtime_with_too_many_workers_is_refused_before_it_starts) {
  const std::size_t threads = support::threads();
  for (const std::size_t workers : {std::size_t{4'097}, std::size_t{100'000}, SIZE_MAX})
    EXPECT_THAT(complaint<std::invalid_argument>([&] { weft::runtime rt({.workers = workers}); }),
                AllOf(HasSubstr("workers"), HasSubstr(std::to_string(workers)), HasSubstr("4096")));
  EXPECT_EQ(support::threads(), threads);
}

// req: CC-14
TEST(BadInput, no_workers_means_as_many_as_the_machine_offers) {
  support::environment none("WEFT_WORKERS", nullptr);
  weft::runtime rt({.workers = 0});
  EXPECT_GE(rt.workers(), 1u);
  EXPECT_EQ(rt.run([] { return 1; }), 1);
}

// req: CC-14
TEST(BadInput, options_out_of_range_are_named_with_their_value_and_their_range) {
  using options = weft::runtime_options;
  EXPECT_THAT(complaint<std::invalid_argument>([] { weft::runtime rt(options{.workers = 1, .stack_size = 1}); }),
              AllOf(HasSubstr("stack size of 1 "), HasSubstr("16 KiB"), HasSubstr("1 GiB")));
  EXPECT_THAT(complaint<std::invalid_argument>([] { weft::runtime rt(options{.workers = 1, .stack_size = tebibyte}); }),
              AllOf(HasSubstr(std::to_string(tebibyte)), HasSubstr("1 GiB")));
  EXPECT_THAT(complaint<std::invalid_argument>([] { weft::runtime rt(options{.workers = 1, .stack_size = 100}); }),
              HasSubstr("16 KiB"));
  EXPECT_THAT(complaint<std::invalid_argument>([] { weft::runtime rt(options{.workers = 1, .max_stacks = 0}); }),
              AllOf(HasSubstr("max_stacks"), HasSubstr("at least 1")));
  for (const std::size_t bad : {0, 7, 9, 100, 65'537, 131'072})
    EXPECT_THAT(
        complaint<std::invalid_argument>([&] { weft::runtime rt(options{.workers = 1, .queue_capacity = bad}); }),
        AllOf(HasSubstr("queue_capacity"), HasSubstr("power of two")));
  EXPECT_THAT(complaint<std::invalid_argument>([] { weft::runtime rt(options{.workers = 1, .steal_scan = 0}); }),
              AllOf(HasSubstr("steal_scan"), HasSubstr("stealing")));
}

// req: CC-14
TEST(BadInput, a_stack_size_of_0_means_the_default_in_options_as_in_attributes) {
  weft::runtime rt({.workers = 1, .stack_size = 0});
  EXPECT_EQ(weft::sched::core_of(rt).stacks().default_size(), weft::context::default_stack);
  EXPECT_EQ(rt.run([] { return 1; }), 1);
}

// req: CC-14
TEST(BadInput, options_at_the_ends_of_their_ranges_work) {
  support::watchdog guard(60s);
  for (const weft::runtime_options& o :
       {weft::runtime_options{.workers = 2, .stack_size = weft::context::smallest_stack},
        weft::runtime_options{.workers = 2, .stack_size = weft::context::largest_stack},
        weft::runtime_options{.workers = 2, .queue_capacity = 8},
        weft::runtime_options{.workers = 2, .queue_capacity = 65'536},
        weft::runtime_options{.workers = 2, .stack_cache_bytes = 0},
        weft::runtime_options{.workers = 2, .steal_scan = 1'000},
        weft::runtime_options{.workers = 2, .stealing = false}}) {
    weft::runtime rt(o);
    std::vector<weft::join_handle<int>> all;
    // AddressSanitizer has a byte of its own for each eight of a stack, and clears them at the end: seconds for a few of the largest.
    const int tasks = support::under_asan && o.stack_size == weft::context::largest_stack ? 3 : 40;
    for (int i = 0; i < tasks; ++i)
      all.push_back(rt.spawn([i] {
        weft::yield();
        return i;
      }));
    for (int i = 0; i < tasks; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].join(), i);
  }
}

// req: CC-14
TEST(BadInput, a_task_with_an_impossible_stack_size_is_refused_and_nothing_is_left_of_it) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  const auto refused = [&](std::size_t size) {
    return complaint<std::invalid_argument>([&] { (void)rt->spawn({.stack_size = size}, [] {}); });
  };
  EXPECT_THAT(refused(tebibyte), AllOf(HasSubstr(std::to_string(tebibyte)), HasSubstr("1 GiB")));
  EXPECT_THAT(refused(1), AllOf(HasSubstr("stack size of 1 "), HasSubstr("16 KiB")));
  EXPECT_THAT(refused(weft::context::smallest_stack - 1), HasSubstr("16384"));
  EXPECT_THAT(refused(weft::context::largest_stack + 1), HasSubstr("1073741824"));
  EXPECT_THAT(refused(SIZE_MAX), HasSubstr("1 GiB"));
  EXPECT_EQ(rt->spawn({.stack_size = 0}, [] { return 1; }).join(), 1) << "0: the default";
  rt->shutdown();
  EXPECT_EQ(rt->statistics().spawned, 1u);
}

// req: CC-14
TEST(BadInput, a_task_gets_the_stack_it_asked_for) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  const auto uses = [](std::size_t bytes) {
    return [bytes] {
      auto* memory = static_cast<volatile char*>(__builtin_alloca(bytes));
      for (std::size_t i = 0; i < bytes; i += 1024) memory[i] = 1;
      return bytes;
    };
  };
  for (const std::size_t size : {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{64} << 20}) {
    const std::size_t used = size - (std::size_t{16} << 10);
    EXPECT_EQ(rt->spawn({.stack_size = size}, uses(used)).join(), used);
  }
}

// req: BZ-8
TEST(BadInput, a_null_function_is_refused) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  void (*const null)() = nullptr;
  EXPECT_THAT(complaint<weft::usage_error>([&] { (void)rt->spawn(null); }), HasSubstr("null function"));
  EXPECT_THAT(complaint<weft::usage_error>([&] { (void)rt->spawn(std::function<int()>()); }),
              HasSubstr("nothing to run"));
  EXPECT_THAT(complaint<weft::usage_error>([&] { (void)rt->spawn({.name = "x"}, std::function<void()>()); }),
              HasSubstr("null function"));
  EXPECT_THROW(weft::run({.workers = 1}, std::function<int()>()), weft::usage_error);
  rt->run([&] { EXPECT_THROW((void)weft::spawn(null), weft::usage_error); });
  EXPECT_THAT(complaint<weft::usage_error>([] { (void)weft::supervised({}, std::function<void()>()); }),
              HasSubstr("null function"));
  rt->shutdown();
  EXPECT_EQ(rt->statistics().spawned, 1u);
}

// req: BZ-8
TEST(BadInput, a_handle_that_is_empty_says_how_it_came_to_be) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  const auto complains = [](weft::join_handle<int>& h) {
    EXPECT_FALSE(h.joinable());
    const auto words = AllOf(HasSubstr("join_handle is empty"), HasSubstr("joined"), HasSubstr("moved"),
                             HasSubstr("or it never had a task"));
    const auto words_and_place = AllOf(words, ContainsRegex("bad_input_test.cpp:[0-9]+"));
    EXPECT_THAT(complaint<weft::usage_error>([&] { (void)h.join(); }), words_and_place);
    EXPECT_THAT(complaint<weft::usage_error>([&] { (void)h.try_join(); }), words);
    EXPECT_THAT(complaint<weft::usage_error>([&] { h.wait(); }), words_and_place);
    EXPECT_THAT(complaint<weft::usage_error>([&] { (void)h.is_finished(); }), words);
    EXPECT_THAT(complaint<weft::usage_error>([&] { h.cancel(); }), words);
    EXPECT_THAT(complaint<weft::usage_error>([&] { (void)h.ref(); }), words);
    EXPECT_THAT(complaint<weft::usage_error>([&] { (void)h.id(); }), words);
    EXPECT_THAT(complaint<weft::usage_error>([&] { (void)h.name(); }), words);
    h.detach();  // harmless
  };
  weft::join_handle<int> never;
  complains(never);
  auto joined = rt->spawn([] { return 1; });
  EXPECT_EQ(joined.join(), 1);
  complains(joined);
  auto detached = rt->spawn([] { return 1; });
  detached.detach();
  complains(detached);
  auto moved = rt->spawn([] { return 1; });
  auto owner = std::move(moved);
  complains(moved);  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_EQ(owner.join(), 1);
}

// req: BZ-8
TEST(BadInput, an_empty_task_ref_says_so) {
  const weft::task_ref none;
  EXPECT_THAT(complaint<weft::usage_error>([&] { none.cancel(); }), HasSubstr("refers to no task"));
  EXPECT_THAT(complaint<weft::usage_error>([&] { none.unpark(); }), HasSubstr("refers to no task"));
  EXPECT_THAT(complaint<weft::usage_error>([&] { (void)none.id(); }), HasSubstr("refers to no task"));
  EXPECT_THAT(complaint<weft::usage_error>([&] { (void)none.name(); }), HasSubstr("refers to no task"));
  EXPECT_THAT(complaint<weft::usage_error>([&] { (void)none.is_finished(); }), HasSubstr("refers to no task"));
}

// req: CC-6
TEST(BadInput, a_task_that_joins_itself_is_told_and_goes_on) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  weft::join_handle<int> self;
  base::atomic<bool> given{false};
  base::atomic<bool> over{false};
  self = rt->spawn([&] {
    support::until([&] { return given.load(); });
    EXPECT_THAT(complaint<weft::usage_error>([&] { (void)self.join(); }), HasSubstr("cannot join itself"));
    EXPECT_THAT(complaint<weft::usage_error>([&] { self.wait(); }), HasSubstr("cannot join itself"));
    EXPECT_TRUE(self.joinable());
    over = true;
    return 3;
  });
  given = true;
  support::until([&] { return over.load(); });
  EXPECT_EQ(self.join(), 3);
}

// req: CSP-10
TEST(BadInput, spawn_outside_of_a_runtime_says_what_to_use) {
  EXPECT_THAT(complaint<weft::usage_error>([] { (void)weft::spawn([] {}); }),
              AllOf(HasSubstr("outside of a runtime"), HasSubstr("runtime::spawn"), HasSubstr("weft::run")));
}

// req: BZ-9
TEST(BadInput, shields_nest_to_255_and_the_next_is_refused) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    std::vector<std::unique_ptr<weft::this_task::shield>> shields;
    for (int i = 0; i < 255; ++i) shields.push_back(std::make_unique<weft::this_task::shield>());
    EXPECT_THAT(complaint<weft::usage_error>([] { const weft::this_task::shield one_too_many; }),
                AllOf(HasSubstr("255"), HasSubstr("shield")));
    weft::this_task::ref().cancel();
    weft::yield();
    for (int i = 0; i < 254; ++i) {
      shields.pop_back();
      weft::yield();
    }
    shields.pop_back();
    EXPECT_THROW(weft::yield(), weft::cancelled);
  });
}

// req: CSP-10
TEST(BadInput, statistics_of_a_worker_that_does_not_exist_are_refused) {
  weft::runtime rt({.workers = 2});
  (void)rt.statistics_of(1);
  EXPECT_THAT(complaint<std::out_of_range>([&] { (void)rt.statistics_of(9); }),
              AllOf(HasSubstr("no worker 9"), HasSubstr("0 to 1")));
}

}  // namespace
