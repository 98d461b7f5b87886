// CC-14: options in code, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Starting a runtime with these is refused with a message that has all the parts, and starts no thread.
void expect_refused(const weft::runtime_options& options, const std::vector<std::string>& parts) {
  const std::size_t threads = support::threads();
  try {
    weft::runtime rt(options);
    ADD_FAILURE() << "was accepted: " << parts.front();
  } catch (const std::invalid_argument& e) {
    for (const std::string& part : parts) EXPECT_THAT(e.what(), HasSubstr(part));
  }
  EXPECT_EQ(support::threads(), threads);
}

// req: CC-14
TEST(Options, too_many_workers_are_refused) {
  expect_refused({.workers = 4097}, {"workers", "4097", "1 to 4096"});
  expect_refused({.workers = 100'000}, {"workers", "100000", "1 to 4096"});
  expect_refused({.workers = SIZE_MAX}, {"workers", "1 to 4096"});
}

// req: CC-14
TEST(Options, zero_workers_means_as_many_as_the_machine_offers) {
  support::environment unset("WEFT_WORKERS", nullptr);
  weft::runtime rt({.workers = 0});
  EXPECT_GE(rt.workers(), 1u);
}

// req: CC-14
TEST(Options, a_queue_capacity_that_is_no_power_of_two_between_the_limits_is_refused) {
  for (const std::size_t bad : {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{7}, std::size_t{100},
                                std::size_t{131072}, SIZE_MAX})
    expect_refused({.workers = 1, .queue_capacity = bad}, {"queue_capacity", std::to_string(bad), "8 to 65536"});
  for (const std::size_t good : {8u, 256u, 65536u}) {
    weft::runtime rt({.workers = 1, .queue_capacity = good});
    EXPECT_EQ(rt.run([] { return 1; }), 1);
  }
}

// req: CC-14
TEST(Options, a_stack_size_outside_the_limits_is_refused) {
  for (const std::size_t bad : {std::size_t{1}, std::size_t{16383}, std::size_t{1} << 40, SIZE_MAX})
    expect_refused({.workers = 1, .stack_size = bad}, {std::to_string(bad), "16 KiB", "1 GiB"});
  weft::runtime rt({.workers = 1, .stack_size = 64 << 10});
  EXPECT_GE(weft::sched::core_of(rt).stacks().default_size(), std::size_t{64} << 10);
  EXPECT_EQ(rt.run([] { return 1; }), 1);
}

// req: CC-14
TEST(Options, a_scan_of_no_victims_is_refused) {
  expect_refused({.workers = 1, .steal_scan = 0}, {"steal_scan", "stealing"});
}

// req: CC-14
TEST(Options, a_negative_time_to_keep_idle_workers_is_refused) {
  expect_refused({.workers = 1, .keep_alive = -1ms}, {"keep_alive", "negative"});
}

// req: CC-14
TEST(Options, a_limit_of_no_stacks_is_refused) {
  expect_refused({.workers = 1, .max_stacks = 0}, {"max_stacks", "at least 1"});
}

// req: CC-14
TEST(Options, a_tasks_stack_size_outside_the_limits_is_refused_and_the_runtime_goes_on) {
  support::watchdog guard(60s, "a refused spawn");
  support::watched_runtime rt(2);
  const auto refused = [&](std::size_t size) {
    EXPECT_THROW((void)rt->spawn({.stack_size = size}, [] {}), std::invalid_argument) << size;
    rt->run([&] { EXPECT_THROW((void)weft::spawn({.stack_size = size}, [] {}), std::invalid_argument) << size; });
  };
  refused(1);
  refused(std::size_t{1} << 40);
  EXPECT_EQ(rt->spawn({.stack_size = 1 << 20}, [] { return 7; }).join(), 7);
}

// req: CC-14
TEST(Options, a_runtime_can_be_made_after_many_were_refused) {
  support::watchdog guard(60s, "a runtime after refusals");
  const std::size_t descriptors = support::open_descriptors();
  for (int i = 0; i < 100; ++i) EXPECT_THROW(weft::runtime rt({.workers = 5000}), std::invalid_argument);
  EXPECT_EQ(support::open_descriptors(), descriptors);
  EXPECT_EQ(weft::run({.workers = 2}, [] { return 3; }), 3);
}

// Uses so much of its stack; 3.
int use_stack(std::size_t bytes) {
  // Not initialized: only touched at both ends of what was asked for.
  auto* room = static_cast<volatile char*>(__builtin_alloca(bytes));
  room[0] = 1;
  room[bytes - 1] = 2;
  return room[0] + room[bytes - 1];
}

// req: CC-14
TEST(Options, a_tasks_own_stack_size_is_had) {
  support::watchdog guard(60s, "a large stack");
  support::watched_runtime rt({.workers = 1, .stack_size = 64 << 10});
  EXPECT_EQ(rt->spawn({.stack_size = 8 << 20}, [&] { return use_stack(7 << 20); }).join(), 3);
}

// A task that ends leaves its stack to the fresh one that comes next, but not to one that wants a larger one.
// req: CC-14
TEST(Options, a_tasks_own_stack_size_is_had_also_between_small_ones_that_a_task_spawns) {
  support::watchdog guard(60s, "large stacks between small ones");
  support::watched_runtime rt({.workers = 1, .stack_size = 64 << 10});
  rt->run([] {
    std::vector<weft::join_handle<int>> all;
    for (int i = 0; i < 16; ++i)
      all.push_back(i % 2 == 0 ? weft::spawn([] { return 3; })
                               : weft::spawn({.stack_size = 8 << 20}, [] { return use_stack(7 << 20); }));
    for (auto& h : all) EXPECT_EQ(h.join(), 3);
  });
}

}  // namespace
