// Task groups: what may be borrowed, what join() does, who may use a group and for how long.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/parked.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"

namespace {

using namespace std::chrono_literals;
using support::at_worker_counts;
using support::scaled;
using support::throws_cancelled;
using support::until;
using support::wait_for_ever;
using support::watched_runtime;
namespace base = weft::base;

struct failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class F>
std::string what_it_throws(F&& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

struct tally {
  base::atomic<int>& count;
  ~tally() { ++count; }
};

// Waits to be cancelled, and takes its time to end.
void end_slowly(base::atomic<int>& ended) {
  try {
    wait_for_ever();
  } catch (const weft::cancelled&) {
    const weft::this_task::shield held;
    for (int i = 0; i < 5; ++i) weft::yield();
    ++ended;
    throw;
  }
}

// ---- join ------------------------------------------------------------------------------------------------------------

// req: UX-5
TEST(GroupJoin, join_waits_for_every_task_and_for_those_they_spawn_meanwhile) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
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
  });
}

// req: UX-5
TEST(GroupJoin, the_first_failure_cancels_the_siblings_and_is_thrown_when_they_have_ended) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      base::atomic<int> ended{0};
      weft::task_group group;
      for (int i = 0; i < 5; ++i) group.spawn([&] { end_slowly(ended); });
      group.spawn([] { throw failure("first"); });
      EXPECT_EQ(what_it_throws([&] { group.join(); }), "first");
      EXPECT_EQ(ended.load(), 5);
    });
  });
}

// req: UX-5
TEST(GroupJoin, a_failure_does_not_disturb_the_owner_before_it_joins) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      weft::task_group group;
      auto failing = group.spawn([] { throw failure("first"); });
      failing.wait();
      until([&] { return group.is_cancelled(); });
      EXPECT_FALSE(weft::this_task::is_cancelled());
      weft::sleep_for(1us);  // a cancellation point
      EXPECT_THROW(group.join(), failure);
      EXPECT_FALSE(weft::this_task::is_cancelled());
    });
  });
}

// req: UX-5
TEST(GroupJoin, a_group_that_collects_lets_every_task_end_and_throws_all_failures_together) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
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

// ---- round after round -----------------------------------------------------------------------------------------------

// req: UX-5
TEST(GroupRound, after_join_a_group_is_as_new_whether_it_failed_or_was_cancelled) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      weft::task_group group;
      for (std::size_t round = 0; round < scaled(100); ++round) {
        group.spawn([] { throw failure("again"); });
        EXPECT_THROW(group.join(), failure);
        group.spawn([] { wait_for_ever(); });
        group.cancel();
        EXPECT_TRUE(group.is_cancelled());
        EXPECT_FALSE(group.join()) << "a task was cut short";
        EXPECT_FALSE(group.is_cancelled());
        int well = 0;
        group.spawn([&] {
          weft::yield();
          ++well;
        });
        ASSERT_TRUE(group.join());
        ASSERT_EQ(well, 1);
      }
    });
  });
}

// req: UX-5
TEST(GroupRound, a_deadline_cuts_the_tasks_of_its_own_round_short_and_no_others) {
  support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      weft::task_group group;
      for (std::size_t round = 0; round < scaled(200); ++round) {
        // It rings while the tasks end, before, or after.
        group.cancel_after(std::chrono::microseconds(round % 3 == 0 ? 0 : 40));
        for (int i = 0; i < 3; ++i) group.spawn([] { weft::sleep_for(40us); });
        group.join();
        int well = 0;
        group.spawn([&] {
          weft::sleep_for(100us);
          ++well;
        });
        ASSERT_TRUE(group.join());
        ASSERT_EQ(well, 1);
      }
    });
  });
}

// req: UX-5
TEST(GroupRound, a_deadline_that_was_not_reached_ends_with_its_round) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      weft::task_group group;
      const auto deadline = std::chrono::steady_clock::now() + 20ms;
      group.cancel_at(deadline);
      group.join();
      group.spawn([&] { weft::sleep_until(deadline + 10ms); });
      EXPECT_TRUE(group.join());
    });
  });
}

// req: UX-5
TEST(GroupRound, join_tells_that_the_deadline_cut_tasks_short) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    rt->run([] {
      weft::task_group group;
      group.spawn([] { wait_for_ever(); });
      group.cancel_after(1ms);
      EXPECT_FALSE(group.join());
    });
  });
}

// req: UX-5
TEST(GroupRound, a_task_that_ends_well_though_the_group_is_cancelled_was_not_cut_short) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    weft::task_group group;
    group.spawn([] {
      const weft::this_task::shield held;
      weft::yield();
    });
    group.cancel();
    EXPECT_TRUE(group.join());
  });
}

// req: UX-5
TEST(GroupRound, a_stopped_token_cancels_this_round_and_every_later_one) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([] {
    std::stop_source source;
    weft::task_group group({.stop = source.get_token()});
    group.spawn([&] { wait_for_ever(); });
    source.request_stop();
    EXPECT_FALSE(group.join());
    group.spawn([&] { wait_for_ever(); });
    EXPECT_FALSE(group.join());
  });
}

// ---- leaving without join --------------------------------------------------------------------------------------------

// req: UX-5
TEST(GroupLeave, whatever_stands_above_the_group_outlives_its_tasks_on_every_way_out) {
  support::watchdog guard(110s);
  enum class way { join, leave, exception, cancellation };
  at_worker_counts([](std::size_t workers) {
    // Tasks that are cut short are told to the handler.
    watched_runtime rt(weft::runtime_options{
        .workers = workers, .elastic = false, .on_unhandled_exception = [](std::string_view, std::exception_ptr) {}});
    for (std::size_t round = 0; round < scaled(200); ++round)
      for (const way out : {way::join, way::leave, way::exception, way::cancellation}) {
        base::atomic<int> too_late{0};
        auto owner = rt->spawn([&] {
          base::atomic<bool> alive{true};
          const auto ends = std::make_unique<base::atomic<int>>(0);  // freed when it is left: ASan sees who comes later
          struct last_breath {
            base::atomic<bool>& alive;
            ~last_breath() { alive = false; }
          } const before{alive};
          weft::task_group group;
          for (int i = 0; i < 4; ++i)
            group.spawn([&] {
              struct look {
                base::atomic<bool>& alive;
                base::atomic<int>& too_late;
                base::atomic<int>& ends;
                ~look() {
                  const weft::this_task::shield held;
                  weft::yield();
                  ++ends;
                  if (!alive.load()) ++too_late;
                }
              } const at_the_end{alive, too_late, *ends};
              weft::sleep_for(out == way::join ? 10us : 1h);
            });
          if (out == way::join) group.join();
          if (out == way::exception) throw failure("left");
          if (out == way::cancellation) {
            weft::this_task::ref().cancel();
            weft::yield();
          }
        });
        try {
          owner.join();
        } catch (const std::exception&) {  // task_cancelled, failure
        }
        ASSERT_EQ(too_late.load(), 0);
      }
  });
}

// req: UX-5
TEST(GroupLeave, the_destructor_does_not_throw_in_a_task_that_is_cancelled_meanwhile) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> ended{0};
    base::atomic<bool> leaves{false};
    base::atomic<int> ended_at_the_brace{-1};
    auto owner = rt->spawn([&] {
      {
        weft::task_group group;
        group.spawn([&] {
          try {
            wait_for_ever();
          } catch (const weft::cancelled&) {
            const weft::this_task::shield held;
            leaves = true;
            until([&] { return ended.load() == 1; });
            throw;
          }
        });
        group.cancel();
      }
      ended_at_the_brace = ended.load();
    });
    until([&] { return leaves.load(); });
    owner.cancel();
    ++ended;
    owner.join();
    EXPECT_EQ(ended_at_the_brace.load(), 1);
  });
}

// ---- who may use it --------------------------------------------------------------------------------------------------

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

class GroupOwnerDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// req: UX-5
TEST_F(GroupOwnerDeathTest, destroyed_by_another_task_it_ends_the_process_with_a_message) {
  EXPECT_DEATH(weft::run({.workers = 1},
                         [] {
                           auto group = std::make_unique<weft::task_group>();
                           weft::spawn([&] { group.reset(); }).join();
                         }),
               "task_group is destroyed by another task");
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

}  // namespace
