// Tasks without a stack (sched/starved.hpp). starving_test has whole runtimes.
#include "sched/starved.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace {

using weft::sched::chain;
using weft::sched::starved;
using weft::task::fiber;
using weft::task::record;

std::vector<std::unique_ptr<fiber>> records(std::size_t count) {
  std::vector<std::unique_ptr<fiber>> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(std::make_unique<fiber>(weft::task::ticket{0}));
  return all;
}

// req: CC-14
TEST(Starved, come_out_in_the_order_in_which_they_came_and_once) {
  starved s;
  EXPECT_FALSE(s.any());
  EXPECT_TRUE(s.take_all().empty());
  const auto all = records(3);
  for (const auto& r : all) s.put(r.get(), 100);
  EXPECT_TRUE(s.any());
  EXPECT_EQ(s.count(), 3u);
  chain<record> out = s.take_all();
  EXPECT_FALSE(s.any());
  for (const auto& r : all) EXPECT_EQ(out.pop_front(), r.get());
  EXPECT_TRUE(out.empty());
  EXPECT_TRUE(s.take_all().empty());
}

// req: CC-14
TEST(Starved, are_due_after_a_pause_from_the_first_of_them) {
  starved s;
  EXPECT_FALSE(s.is_due(1'000'000'000)) << "there is nobody";
  const auto all = records(2);
  s.put(all[0].get(), 1'000);
  EXPECT_FALSE(s.is_due(1'000 + starved::pause - 1));
  s.put(all[1].get(), 1'000 + starved::pause - 1);
  EXPECT_TRUE(s.is_due(1'000 + starved::pause)) << "the second one does not put it off";
  (void)s.take_all();
  EXPECT_FALSE(s.is_due(1'000 + starved::pause));
}

// req: CC-14
TEST(Starved, the_pause_begins_anew_with_the_next_one) {
  starved s;
  const auto all = records(1);
  s.put(all[0].get(), 1'000);
  (void)s.take_all();
  s.put(all[0].get(), 5'000'000);
  EXPECT_FALSE(s.is_due(5'000'001));
  EXPECT_TRUE(s.is_due(5'000'000 + starved::pause));
}

// Conservation: who is put in by several is taken out once.
// req: CC-14
TEST(Starved, are_taken_once_by_those_who_take_together) {
  constexpr std::size_t count = 2'000;
  starved s;
  const auto all = records(2 * count);
  weft::base::atomic<std::size_t> taken{0};
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < 2; ++i)
      threads.emplace_back([&, i] {
        for (std::size_t n = 0; n < count; ++n) s.put(all[i * count + n].get(), 1);
      });
    for (std::size_t i = 0; i < 2; ++i)
      threads.emplace_back([&] {
        while (taken.load() < 2 * count) taken.fetch_add(s.take_all().size());
      });
  }
  EXPECT_EQ(taken.load(), 2 * count);
  EXPECT_FALSE(s.any());
}

}  // namespace
