// Task groups: round after round, and groups that are left without join().
#include <chrono>
#include <memory>
#include <stop_token>
#include <string_view>

#include "scope/scopes.hpp"

namespace {

using namespace scope_test;

// req: UX-5
TEST(GroupRound, after_join_a_group_is_as_new_whether_it_failed_or_was_cancelled) {
  at_worker_counts_in_a_task([] {
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
}

// req: UX-5
TEST(GroupRound, a_deadline_cuts_the_tasks_of_its_own_round_short_and_no_others) {
  at_worker_counts_in_a_task([] {
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
}

// req: UX-5
TEST(GroupRound, a_deadline_that_was_not_reached_ends_with_its_round) {
  at_worker_counts_in_a_task([] {
    weft::task_group group;
    const auto deadline = std::chrono::steady_clock::now() + 20ms;
    group.cancel_at(deadline);
    group.join();
    group.spawn([&] { weft::sleep_until(deadline + 10ms); });
    EXPECT_TRUE(group.join());
  });
}

// req: UX-5
TEST(GroupRound, join_tells_that_the_deadline_cut_tasks_short) {
  at_worker_counts_in_a_task([] {
    weft::task_group group;
    group.spawn([] { wait_for_ever(); });
    group.cancel_after(1ms);
    EXPECT_FALSE(group.join());
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

}  // namespace
