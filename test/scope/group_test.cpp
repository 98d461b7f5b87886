// Task groups: spawn() and join().
#include <string>

#include "scope/scopes.hpp"

namespace {

using namespace scope_test;

// req: UX-5
TEST(GroupSpawn, spawn_returns_a_child_that_may_be_joined_and_takes_attributes) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::task_group group;
    weft::child<int> one = group.spawn([] { return 1; });
    weft::child<std::string> name =
        group.spawn({.name = "speaker"}, [] { return std::string(weft::this_task::name()); });
    EXPECT_EQ(one.join(), 1);
    EXPECT_EQ(name.join(), "speaker");
    int tries = 0;
    group.supervise({.pause = 1us}, [&] {
      if (++tries < 3) throw failure("not yet");
    });
    EXPECT_TRUE(group.join());
    EXPECT_EQ(tries, 3);
  });
}

// req: UX-5
TEST(GroupJoin, join_waits_for_every_task_and_for_those_they_spawn_meanwhile) {
  at_worker_counts_in_a_task([] {
    for (std::size_t round = 0; round < scaled(200); ++round) {
      base::atomic<int> ended{0};
      weft::task_group group;
      for (int i = 0; i < 10; ++i)
        group.spawn([&, i] {
          const tally t{ended};
          if (i % 2 == 0) weft::yield();
          group.spawn([&] {
            const tally inner{ended};
            weft::yield();
          });
        });
      EXPECT_TRUE(group.join());
      ASSERT_EQ(ended.load(), 20);
    }
  });
}

// req: UX-5
TEST(GroupJoin, the_first_failure_cancels_the_siblings_and_is_thrown_when_they_have_ended) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> ended{0};
    weft::task_group group;
    for (int i = 0; i < 5; ++i) group.spawn([&] { end_slowly(ended); });
    group.spawn([] { throw failure("first"); });
    EXPECT_EQ(what_it_throws([&] { group.join(); }), "first");
    EXPECT_EQ(ended.load(), 5);
  });
}

// req: UX-5
TEST(GroupJoin, a_failure_does_not_disturb_the_owner_before_it_joins) {
  at_worker_counts_in_a_task([] {
    weft::task_group group;
    auto failing = group.spawn([] { throw failure("first"); });
    failing.wait();
    until([&] { return group.is_cancelled(); });
    EXPECT_FALSE(weft::this_task::is_cancelled());
    weft::sleep_for(1us);  // a cancellation point
    EXPECT_THROW(group.join(), failure);
    EXPECT_FALSE(weft::this_task::is_cancelled());
  });
}

// req: UX-5
TEST(GroupJoin, a_group_that_collects_lets_every_task_end_and_throws_all_failures_together) {
  at_worker_counts_in_a_task([] {
    base::atomic<int> well{0};
    weft::task_group group({.failures = weft::failures::collect});
    for (int i = 0; i < 3; ++i) group.spawn([] { throw failure("one of three"); });
    for (int i = 0; i < 3; ++i)
      group.spawn([&] {
        weft::yield();
        ++well;
      });
    try {
      group.join();
      ADD_FAILURE();
    } catch (const weft::scope_failures& all) {
      EXPECT_EQ(all.all().size(), 3u);
    }
    EXPECT_EQ(well.load(), 3);
  });
}

// req: UX-5
TEST(GroupJoin, cancelling_the_owner_in_join_cancels_the_tasks_and_throws_when_they_have_ended) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> ended{0};
    base::atomic<int> ended_before_join_threw{-1};
    base::atomic<bool> joins{false};
    auto owner = rt->spawn([&] {
      weft::task_group group;
      for (int i = 0; i < 5; ++i) group.spawn([&] { end_slowly(ended); });
      joins = true;
      try {
        group.join();
      } catch (const weft::cancelled&) {
        ended_before_join_threw = ended.load();
        throw;
      }
    });
    until([&] { return joins.load(); });
    owner.cancel();
    EXPECT_THROW(owner.join(), weft::task_cancelled);
    EXPECT_EQ(ended_before_join_threw.load(), 5);
  });
}

// req: UX-5
TEST(GroupJoin, is_a_cancellation_point_though_there_is_nothing_to_wait_for) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->spawn([] {
      weft::task_group group;
      weft::this_task::ref().cancel();
      EXPECT_TRUE(throws_cancelled([&] { group.join(); }));
    }).join();
}

// req: UX-5
TEST(GroupJoin, a_failure_comes_before_the_cancellation_of_the_owner) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::task_group group;
    group.spawn([] { throw failure("first"); }).wait();
    weft::this_task::ref().cancel();
    EXPECT_EQ(what_it_throws([&] { group.join(); }), "first");
    EXPECT_TRUE(throws_cancelled([] { weft::this_task::check(); }));
  });
}

// req: UX-5
TEST(GroupJoin, a_shielded_owner_waits_for_the_tasks_without_cancelling_them) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  base::atomic<bool> go{false};
  base::atomic<int> well{0};
  base::atomic<bool> joins{false};
  auto owner = rt->spawn([&] {
    weft::task_group group;
    group.spawn([&] {
      while (!go.load()) weft::yield();
      ++well;
    });
    const weft::this_task::shield held;
    joins = true;
    EXPECT_TRUE(group.join());
  });
  until([&] { return joins.load(); });
  owner.cancel();
  go = true;
  owner.join();
  EXPECT_EQ(well.load(), 1);
}

}  // namespace
