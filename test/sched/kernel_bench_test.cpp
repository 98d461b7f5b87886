// The bodies of weft_bench's own two benches, small: the figures are there and make sense. The bounds are in bench/goals.json.
// ctest: notsan
#include "../../bench/weft_bench/kernel.hpp"

#include <gtest/gtest.h>

#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

void expect_well_formed(const std::vector<double>& samples, std::size_t count) {
  ASSERT_EQ(samples.size(), count) << "as many as asked for, without those of the warm-up";
  for (const double s : samples) EXPECT_GT(s, 0.0);
  const kernel::figures f = kernel::summary(samples);
  EXPECT_LE(f.median, f.p95);
  EXPECT_LE(f.p95, f.p99);
  EXPECT_EQ(f.median, kernel::summary({samples.rbegin(), samples.rend()}).median) << "order does not matter";
}

// req: KC-12
TEST(KernelBench, steal_latency_gives_one_sample_for_every_task_that_a_thief_ran) {
  for (const std::size_t workers : {2u, 4u}) {
    support::watchdog guard(100s, "steal latency");
    weft::runtime rt({.workers = workers, .elastic = false});
    const auto before = rt.statistics();
    std::vector<double> samples;
    rt.run([&] { samples = kernel::steal_latency(50); });
    expect_well_formed(samples, 50);
    const auto after = rt.statistics();
    EXPECT_GE(after.stolen_tasks - before.stolen_tasks, 50u) << "a task that its spawner ran is no steal";
  }
}

// req: KC-12
TEST(KernelBench, trivial_tasks_gives_one_sample_per_batch) {
  for (const std::size_t workers : {1u, 2u}) {
    support::watchdog guard(100s, "trivial tasks");
    weft::runtime rt({.workers = workers, .elastic = false});
    std::vector<double> samples;
    rt.run([&] { samples = kernel::trivial_tasks(20); });
    expect_well_formed(samples, 20);
    rt.shutdown();  // run() returns with its task's result, a moment before that task is counted
    EXPECT_EQ(rt.statistics().spawned, rt.statistics().finished);
  }
}

// req: KC-12
TEST(KernelBench, the_summary_takes_the_middle_and_the_upper_ends) {
  std::vector<double> samples;
  for (int i = 100; i >= 0; --i) samples.push_back(i);
  const kernel::figures f = kernel::summary(samples);
  EXPECT_EQ(f.median, 50);
  EXPECT_EQ(f.p95, 95);
  EXPECT_EQ(f.p99, 99);
}

}  // namespace
