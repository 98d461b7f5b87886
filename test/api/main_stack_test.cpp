// The stack of the body of run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include <weft/weft.hpp>

#include "context/stack.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace std::chrono_literals;
using support::scaled;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

// Of the running task.
std::size_t stack_size() { return weft::task::as_fiber(*weft::waits::current_task()).stack->size; }

// Uses so much stack, a KiB or a little more at a time.
[[gnu::noinline]] int recurse(std::size_t bytes) {
  volatile char room[kib];
  room[0] = static_cast<char>(bytes);
  return bytes <= kib ? room[0] : recurse(bytes - kib) + room[0];
}

// What std::regex does to a stack: a few frames for every character.
bool matches(std::size_t length) { return std::regex_match(std::string(length, 'a'), std::regex("[a-z]*")); }

// req: CC-14
TEST(MainStack, a_regular_expression_is_matched_with_20_kilobytes_in_the_body_of_run) {
  const std::size_t length = support::under_asan || support::under_tsan ? 2'000 : 20'000;  // their frames are larger
  EXPECT_EQ(weft::run({.workers = 1}, [&] { return matches(length); }), true);
  weft::runtime rt({.workers = 1});
  EXPECT_TRUE(rt.run([&] { return matches(length); }));
}

// req: CC-14
TEST(MainStack, is_8_mib_or_what_the_options_say_and_those_of_other_tasks_are_not_touched_by_it) {
  const auto sizes = [](const weft::runtime_options& o) {
    return weft::run(o, [] { return std::pair(stack_size(), weft::spawn([] { return stack_size(); }).join()); });
  };
  EXPECT_EQ(sizes({.workers = 1}), std::pair(8 * mib, 192 * kib));
  EXPECT_EQ(sizes({.workers = 1, .stack_size = 64 * kib}), std::pair(8 * mib, 64 * kib));
  EXPECT_EQ(sizes({.workers = 1, .stack_size = 16 * mib}), std::pair(16 * mib, 16 * mib))
      << "not less than the others'";
  EXPECT_EQ(sizes({.workers = 1, .main_stack_size = 64 * kib}), std::pair(64 * kib, 192 * kib));
  weft::runtime rt({.workers = 1, .main_stack_size = 24 * mib});
  EXPECT_EQ(rt.run([] { return stack_size(); }), 24 * mib);
}

// req: CC-14
TEST(MainStack, a_size_outside_the_limits_is_refused) {
  for (const std::size_t bad : {std::size_t{1}, std::size_t{1} << 40}) try {
      weft::runtime rt({.workers = 1, .main_stack_size = bad});
      ADD_FAILURE() << bad;
    } catch (const std::invalid_argument& e) {
      EXPECT_THAT(e.what(), testing::HasSubstr("a stack size of " + std::to_string(bad)));
    }
}

// req: CC-14 W-9
TEST(MainStack, a_thousand_runs_leave_nothing_behind) {
  support::watchdog guard(100s);
  const auto one = [] { weft::run({.workers = 2}, [] { weft::spawn([] {}).join(); }); };
  for (int i = 0; i < 20; ++i) one();
  const std::size_t mappings = support::mappings();
  const std::size_t kib_of_address_space = support::status("VmSize");
  for (std::size_t i = 0; i < scaled(1'000); ++i) one();
  EXPECT_LE(support::mappings(), mappings + 50);
  EXPECT_LE(support::status("VmSize"), kib_of_address_space + 256 * kib);
}

// req: CC-14 W-9
TEST(MainStackNoAsanNoTsan, four_runtimes_with_deep_bodies_work_in_a_gibibyte_of_address_space) {
  const auto in_little_space = [] {
    const rlimit gibibyte{1024 * mib, 1024 * mib};
    if (::setrlimit(RLIMIT_AS, &gibibyte) != 0) std::_Exit(3);
    std::vector<std::unique_ptr<weft::runtime>> all;
    for (int i = 0; i < 4; ++i) all.push_back(std::make_unique<weft::runtime>(weft::runtime_options{.workers = 2}));
    int sum = 0;
    for (auto& rt : all)
      sum += rt->run([] {
        (void)recurse(4 * mib);
        std::vector<weft::join_handle<int>> tasks;
        for (int i = 0; i < 100; ++i) tasks.push_back(weft::spawn([] { return 1; }));
        int ended = 0;
        for (auto& h : tasks) ended += h.join();
        return ended;
      });
    std::_Exit(sum == 400 ? 0 : 4);
  };
  EXPECT_EXIT(in_little_space(), testing::ExitedWithCode(0), "");
}

}  // namespace
