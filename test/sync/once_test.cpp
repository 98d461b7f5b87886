// Once, and a mutex per key.
#include <string>

#include "sync/sync.hpp"

namespace {

using namespace sync_test;

// req: BZ-13
TEST(Once, is_done_once_and_everybody_sees_it_done) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    for (std::size_t round = 0; round < scaled(200); ++round) {
      watched_runtime rt(workers);
      weft::once_flag flag;
      int done = 0;
      const auto body = [&] {
        weft::call_once(
            flag,
            [&](int by) {
              weft::yield();
              done += by;
            },
            1);
        EXPECT_EQ(done, 1);
      };
      handles all;
      for (int t = 0; t < 4; ++t) all.push_back(rt->spawn(body));
      body();
      join(all);
      EXPECT_TRUE(flag.is_done());
      if (round >= 20 && workers > 2) break;
    }
  });
}

// req: BZ-13
TEST(Once, after_an_exception_the_next_one_tries) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::once_flag flag;
    base::atomic<int> tries{0}, threw{0}, done{0};
    handles all;
    for (int t = 0; t < 8; ++t)
      all.push_back(rt->spawn([&] {
        try {
          weft::call_once(flag, [&] {
            weft::yield();
            if (++tries < 4) throw 1;
            ++done;
          });
        } catch (int) {
          ++threw;
        }
      }));
    join(all);
    EXPECT_EQ(tries.load(), 4);
    EXPECT_EQ(threw.load(), 3);
    EXPECT_EQ(done.load(), 1);
  });
}

// req: BZ-13 CC-10
TEST(Once, one_that_waits_can_be_cancelled) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  weft::once_flag flag;
  support::latch begun, over;
  named_task does(*rt, [&] {
    weft::call_once(flag, [&] {
      begun.count_down();
      over.wait();
    });
  });
  until([&] { return begun.is_open(); });
  named_task waits(*rt, [&] { weft::call_once(flag, [] {}); });
  waits.cancel();
  const bool cancelled = waits.join_cancelled();
  over.count_down();
  does.join();
  EXPECT_TRUE(cancelled);
  EXPECT_TRUE(flag.is_done());
}

// req: BZ-13
TEST(Once, a_call_from_inside_is_a_usage_error) {
  in_task_and_thread([] {
    weft::once_flag flag;
    try {
      weft::call_once(flag, [&] { weft::call_once(flag, [] {}); });
      ADD_FAILURE() << "called from inside";
    } catch (const weft::usage_error& e) {
      EXPECT_NE(std::string(e.what()).find("call_once is called by the function that it calls"), std::string::npos)
          << e.what();
    }
    EXPECT_FALSE(flag.is_done());
  });
}

// req: BZ-13
TEST(Once, after_an_exception_the_same_one_may_try_again) {
  in_task_and_thread([] {
    weft::once_flag flag;
    EXPECT_THROW(weft::call_once(flag, [] { throw 1; }), int);
    EXPECT_FALSE(flag.is_done());
    weft::call_once(flag, [] {});
    EXPECT_TRUE(flag.is_done());
  });
}

// req: BZ-13 CC-10
TEST(Once, it_is_a_cancellation_point_even_if_it_is_done) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::once_flag flag;
  auto task = rt->spawn([&] {
    weft::call_once(flag, [] {});
    weft::this_task::ref().cancel();
    EXPECT_THROW(weft::call_once(flag, [] {}), weft::cancelled);
  });
  task.join();
}

// ---- a mutex per key --------------------------------------------------------------------------------------------------

// req: BZ-13
TEST(KeyedMutex, the_same_key_one_at_a_time_and_no_entry_is_left) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::keyed_mutex<int> locks;
    int inside[3] = {};
    handles all;
    for (int t = 0; t < 9; ++t)
      all.push_back(rt->spawn([&, t] {
        for (std::size_t i = 0; i < scaled(300); ++i) {
          const int key = (t + static_cast<int>(i)) % 3;
          const auto held = locks.lock(key);
          EXPECT_EQ(held.key(), key);
          ASSERT_EQ(inside[key]++, 0);
          weft::yield();
          ASSERT_EQ(--inside[key], 0);
        }
      }));
    join(all);
    EXPECT_EQ(locks.size(), 0U);
  });
}

// req: BZ-13
TEST(KeyedMutex, different_keys_do_not_wait_for_each_other) {
  weft::run({.workers = 1}, [] {
    weft::keyed_mutex<std::string> locks;
    auto a = locks.lock("a");
    auto b = locks.lock("b");
    EXPECT_EQ(locks.size(), 2U);
    EXPECT_FALSE(locks.try_lock("a"));
    EXPECT_THROW((void)locks.lock("a"), weft::usage_error);
    auto other = weft::spawn([&] {
      EXPECT_FALSE(locks.try_lock_for("a", 1ms));
      EXPECT_TRUE(locks.try_lock("c"));
    });
    other.join();
    a.unlock();
    EXPECT_EQ(locks.size(), 1U);
    a = locks.try_lock("a");
    EXPECT_TRUE(a);
    a = std::move(b);
    EXPECT_EQ(locks.size(), 1U);
  });
}

// req: BZ-13 CC-10
TEST(KeyedMutex, a_cancelled_waiter_leaves_no_entry_behind) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::keyed_mutex<int> locks;
    auto held = locks.lock(1);
    named_task waiter(*rt, [&] { (void)locks.lock(1); });
    waiter.until_parked();
    waiter.cancel();
    EXPECT_TRUE(waiter.join_cancelled());
    held.unlock();
    EXPECT_EQ(locks.size(), 0U);
  });
}

// req: BZ-13
TEST(KeyedMutex, a_guard_that_is_moved_to_itself_holds_the_key_on) {
  weft::run({.workers = 1}, [] {
    weft::keyed_mutex<int> locks;
    auto held = locks.lock(1);
    auto& same = held;
    held = std::move(same);
    EXPECT_TRUE(held);
    EXPECT_FALSE(locks.try_lock(1));
    held.unlock();
    EXPECT_EQ(locks.size(), 0U);
  });
}

// req: BZ-13 BZ-11
TEST(KeyedMutex, a_wait_with_a_time_limit_that_is_served_holds_the_key_and_one_that_is_late_leaves_nothing) {
  weft::keyed_mutex<int> locks;
  weft::keyed_mutex<int>::guard held;
  served_after_waiting([&] { held = locks.lock(1); },
                       [&] {
                         const auto mine = locks.try_lock_for(1, 1h);
                         EXPECT_TRUE(mine);
                         EXPECT_EQ(locks.size(), 1U);
                         EXPECT_THROW((void)locks.try_lock_for(1, 1h), weft::usage_error);
                       },
                       [&] { held.unlock(); });
  EXPECT_EQ(locks.size(), 0U);
  held = locks.lock(1);
  std::thread([&] { EXPECT_FALSE(locks.try_lock_for(1, 1ms)); }).join();
  held.unlock();
  EXPECT_EQ(locks.size(), 0U);
}
}  // namespace
