// Task groups: who may use one.
#include <memory>
#include <thread>

#include "scope/scopes.hpp"
#include "support/death_test.hpp"

namespace {

using namespace scope_test;

// req: UX-5
TEST(GroupOwner, an_outside_thread_borrows_joins_and_gets_the_failure) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t round = 0; round < scaled(100); ++round) {
      base::atomic<int> ended{0};
      weft::task_group group(rt);
      for (int i = 0; i < 10; ++i) group.spawn([&] { ++ended; });
      EXPECT_TRUE(group.join());
      ASSERT_EQ(ended.load(), 10);
      group.spawn([&] { end_slowly(ended); });
      group.spawn([] { throw failure("told to the thread"); });
      EXPECT_EQ(what_it_throws([&] { group.join(); }), "told to the thread");
      ASSERT_EQ(ended.load(), 11);
      group.spawn([&] { end_slowly(ended); });
      group.cancel();  // and is left
    }
  });
}

// req: UX-5
TEST(GroupOwner, an_outside_thread_sets_a_deadline) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  weft::task_group group(rt);
  group.spawn([] { wait_for_ever(); });
  group.cancel_after(1h);
  group.cancel_after(1ms);
  EXPECT_FALSE(group.join());
}

// req: UX-5
TEST(GroupOwner, a_task_of_one_runtime_may_own_a_group_in_another) {
  support::watchdog guard(60s);
  watched_runtime here(1), there(1);
  here->run([&] {
    int left = 0;
    weft::task_group group(there);
    group.spawn([&] { left = 1; });
    EXPECT_TRUE(group.join());
    EXPECT_EQ(left, 1);
    group.spawn([] { wait_for_ever(); });
    group.cancel_after(1ms);
    EXPECT_FALSE(group.join());
  });
}

// req: UX-5
TEST(GroupOwner, outside_of_a_task_a_group_needs_a_runtime_and_says_so) {
  EXPECT_THROW(weft::task_group(), weft::usage_error);
}

// req: UX-5
TEST(GroupOwner, a_join_by_a_child_by_another_task_or_by_a_thread_is_refused) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::task_group group;
    group.spawn([&] { EXPECT_THROW(group.join(), weft::usage_error); });
    weft::spawn([&] { EXPECT_THROW(group.join(), weft::usage_error); }).join();
    weft::blocking([&] { std::thread([&] { EXPECT_THROW(group.join(), weft::usage_error); }).join(); });
    EXPECT_TRUE(group.join());
  });
}

// req: UX-5
TEST(GroupOwner, others_may_spawn_and_cancel_while_the_owner_joins) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t round = 0; round < scaled(50); ++round) {
      base::atomic<int> started{0}, ended{0};
      base::atomic<bool> enough{false};
      rt->run([&] {
        weft::task_group group;
        std::thread outside([&] {
          for (int i = 0; i < 100; ++i)
            group.spawn([&] {
              ++started;
              const tally t{ended};
              weft::yield();
            });
          group.cancel();
          enough = true;
        });
        while (!enough.load()) {
          group.join();
          weft::yield();
        }
        outside.join();
        group.join();
        EXPECT_EQ(started.load(), ended.load());
        EXPECT_EQ(started.load(), 100);
      });
    }
  });
}

using GroupOwnerDeathTest = support::threadsafe_death_test;

// req: UX-5
TEST_F(GroupOwnerDeathTest, destroyed_by_another_task_it_ends_the_process_with_a_message) {
  EXPECT_DEATH(weft::run({.workers = 1},
                         [] {
                           auto group = std::make_unique<weft::task_group>();
                           weft::spawn([&] { group.reset(); }).join();
                         }),
               "task_group is destroyed by another task");
}

}  // namespace
