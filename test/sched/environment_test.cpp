// CC-13: what the environment says.
#include "sched/environment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include <weft/weft.hpp>

#include "chan/core.hpp"
#include "support/process.hpp"

namespace {

using support::environment;
using testing::HasSubstr;
using weft::sched::cpus_from_quota;

// What f writes to stderr.
template <class F>
std::string stderr_of(F&& f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

// req: CC-13
TEST(Environment, weft_workers_says_how_many_workers) {
  environment set("WEFT_WORKERS", "3");
  const std::string said = stderr_of([] {
    weft::runtime rt;
    EXPECT_EQ(rt.workers(), 3u);
  });
  EXPECT_EQ(said, "");
}

// req: CC-13 CC-14
TEST(Environment, options_in_code_come_before_the_environment) {
  environment set("WEFT_WORKERS", "3");
  weft::runtime rt({.workers = 2, .elastic = false});
  EXPECT_EQ(rt.workers(), 2u);
}

// req: CC-13
TEST(Environment, a_bad_weft_workers_is_named_in_one_line_and_the_default_used) {
  for (const char* bad : {"0", "-1", "abc", " 4", "4x", "2.5", "4097", "99999999999999999999999"}) {
    environment set("WEFT_WORKERS", bad);
    const std::string said = stderr_of([] {
      weft::runtime rt;
      EXPECT_EQ(rt.workers(), weft::sched::available_cpus());
    });
    EXPECT_THAT(said, HasSubstr("WEFT_WORKERS=" + std::string(bad)));
    EXPECT_EQ(lines(said), 1) << said;
  }
}

// req: CC-13
TEST(Environment, an_empty_weft_workers_counts_as_unset) {
  environment set("WEFT_WORKERS", "");
  const std::string said = stderr_of([] {
    weft::runtime rt;
    EXPECT_EQ(rt.workers(), weft::sched::available_cpus());
  });
  EXPECT_EQ(said, "");
}

// req: CC-13
TEST(Environment, weft_stats_prints_statistics_when_the_runtime_ends) {
  environment set("WEFT_STATS", "1");
  const std::string said = stderr_of([] {
    weft::runtime rt({.workers = 2, .elastic = false});
    rt.run([] {
      for (int i = 0; i < 10; ++i) weft::spawn([] {}).join();
    });
  });
  EXPECT_THAT(said, HasSubstr("worker 0"));
  EXPECT_THAT(said, HasSubstr("worker 1"));
  EXPECT_THAT(said, HasSubstr("spawned 11, finished 11"));
  EXPECT_THAT(said, HasSubstr("pool      looks "));
}

// req: CC-13
TEST(Environment, weft_verbose_says_what_was_chosen) {
  environment set("WEFT_VERBOSE", "1");
  const std::string said = stderr_of([] { weft::runtime rt({.workers = 2, .elastic = false}); });
  EXPECT_THAT(said, HasSubstr("2 workers (runtime_options)"));
  EXPECT_THAT(said, HasSubstr("weft " WEFT_VERSION ": "));
  EXPECT_EQ(lines(said), 1) << said;
}

// req: CC-13
TEST(Environment, weft_verbose_says_one_worker_and_not_workers) {
  environment set("WEFT_VERBOSE", "1");
  EXPECT_THAT(stderr_of([] { weft::runtime rt({.workers = 1, .elastic = false}); }),
              HasSubstr("1 worker (runtime_options)"));
}

// req: CC-13
TEST(Environment, weft_verbose_says_where_the_worker_count_came_from) {
  environment verbose("WEFT_VERBOSE", "1");
  const auto said = [] { return stderr_of([] { weft::runtime rt; }); };
  {
    environment set("WEFT_WORKERS", "3");
    EXPECT_THAT(said(), HasSubstr("3 workers (WEFT_WORKERS)"));
  }
  environment unset("WEFT_WORKERS", nullptr);
  EXPECT_THAT(said(), testing::ContainsRegex("workers? \\((affinity mask|cgroup quota)\\)"));
}

// req: CC-13
TEST(Environment, weft_verbose_says_how_stacks_are_guarded_after_any_fallback) {
  environment verbose("WEFT_VERBOSE", "1");
  for (const char* kind : {"mprotect", "none"}) {
    environment guard("WEFT_GUARD", kind);
    EXPECT_THAT(stderr_of([] { weft::runtime rt({.workers = 1, .elastic = false}); }),
                HasSubstr("guard: " + std::string(kind)));
  }
}

// req: CC-13
TEST(Environment, nothing_is_printed_unless_asked_for) {
  environment stats("WEFT_STATS", "0");
  environment verbose("WEFT_VERBOSE", nullptr);
  EXPECT_EQ(stderr_of([] {
              weft::runtime rt({.workers = 2, .elastic = false});
              rt.run([] {});
            }),
            "");
}

// req: CC-13
TEST(Environment, a_bad_flag_is_named_in_one_line_and_taken_as_off) {
  for (const char* variable : {"WEFT_STATS", "WEFT_VERBOSE"}) {
    environment set(variable, "yes");
    const std::string said = stderr_of([] {
      weft::runtime rt({.workers = 1, .elastic = false});
      rt.run([] {});
    });
    EXPECT_THAT(said, HasSubstr(std::string(variable) + "=yes"));
    EXPECT_EQ(lines(said), 1) << said;
  }
}

// Ends a process of its own with 1 if a buffered channel of small elements can be used without its lock: it is asked once.
[[noreturn]] void exit_with_fast_path(const char* value) {
  environment set("WEFT_CHAN_NO_LOCKFREE", value);
  weft::chan::core* c = weft::chan::make(weft::chan::element_of<int>, weft::chan::kind::bounded, 1);
  std::_Exit(c->has_fast_path() ? 1 : 0);
}

// req: CC-13
TEST(EnvironmentDeathTest, weft_chan_no_lockfree_turns_the_lock_free_path_off) {
  EXPECT_EXIT(exit_with_fast_path(nullptr), testing::ExitedWithCode(1), "^$");
  EXPECT_EXIT(exit_with_fast_path("0"), testing::ExitedWithCode(1), "^$");
  EXPECT_EXIT(exit_with_fast_path("1"), testing::ExitedWithCode(0), "^$");
  EXPECT_EXIT(exit_with_fast_path("yes"), testing::ExitedWithCode(1), "WEFT_CHAN_NO_LOCKFREE=yes is neither 0 nor 1");
}

// req: CC-13 CC-14
TEST(Environment, the_affinity_mask_limits_the_default) {
  environment unset("WEFT_WORKERS", nullptr);
  std::thread([] {
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &before)) {
        CPU_SET(cpu, &one);
        break;
      }
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(weft::sched::default_workers(), 1u);
  }).join();
}

// req: CC-14
TEST(Environment, a_quota_is_rounded_up_to_whole_cpus) {
  EXPECT_EQ(cpus_from_quota("max 100000"), 0u);
  EXPECT_EQ(cpus_from_quota("100000 100000"), 1u);
  EXPECT_EQ(cpus_from_quota("150000 100000"), 2u);
  EXPECT_EQ(cpus_from_quota("20000 100000"), 1u);
  EXPECT_EQ(cpus_from_quota("800000 100000"), 8u);
  for (const char* nonsense : {"", "100000", "100000 ", "-1 100000", "0 100000", "100000 0", "x y", "100000x 100000"})
    EXPECT_EQ(cpus_from_quota(nonsense), 0u) << nonsense;
}

// req: CC-14
TEST(Environment, at_least_one_cpu_is_available_and_no_more_than_the_machine_has) {
  const std::size_t cpus = weft::sched::available_cpus();
  EXPECT_GE(cpus, 1u);
  EXPECT_LE(cpus, std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace
