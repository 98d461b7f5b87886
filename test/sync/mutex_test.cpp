// The mutex: one at a time, nobody forgotten, whatever ends a wait.
#include <set>

#include "sync/caller.hpp"
#include "sync/sync.hpp"

namespace {

using namespace sync_test;

// req: BZ-13
TEST(Mutex, one_task_at_a_time_and_each_sees_what_those_before_it_did) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    std::size_t count = 0;
    handles all;
    for (int t = 0; t < 16; ++t)
      all.push_back(rt->spawn([&] {
        for (std::size_t i = 0; i < scaled(5000); ++i) {
          const std::lock_guard held(m);
          ++count;
        }
      }));
    join(all);
    EXPECT_EQ(count, 16 * scaled(5000));
    EXPECT_FALSE(m.is_locked());
  });
}

// req: BZ-13
TEST(Mutex, it_may_be_held_across_suspensions_and_unlocked_on_another_thread) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    int inside = 0;
    handles all;
    for (int t = 0; t < 16; ++t)
      all.push_back(rt->spawn([&] {
        for (std::size_t i = 0; i < scaled(200); ++i) {
          const std::lock_guard held(m);
          EXPECT_EQ(inside++, 0);
          weft::yield();
          EXPECT_EQ(--inside, 0);
        }
      }));
    join(all);
  });
}

// req: BZ-13
TEST(Mutex, tasks_and_outside_threads_share_it) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    std::size_t count = 0;
    const std::size_t each = scaled(3000);
    const auto add = [&] {
      for (std::size_t i = 0; i < each; ++i) {
        const std::lock_guard held(m);
        ++count;
      }
    };
    handles all;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      all.push_back(rt->spawn(add));
      threads.emplace_back(add);
    }
    join(all);
    for (auto& t : threads) t.join();
    EXPECT_EQ(count, 8 * each);
  });
}

// req: BZ-13
TEST(Mutex, with_two_of_them_scoped_lock_does_not_deadlock) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex a, b;
    std::size_t count = 0;
    handles all;
    for (int t = 0; t < 8; ++t)
      all.push_back(rt->spawn([&, t] {
        for (std::size_t i = 0; i < scaled(500); ++i) {
          if (t % 2 == 0) {
            const std::scoped_lock held(a, b);
            ++count;
          } else {
            const std::scoped_lock held(b, a);
            ++count;
          }
        }
      }));
    join(all);
    EXPECT_EQ(count, 8 * scaled(500));
  });
}

// One that locks again and again, on the same worker or another, does not keep a waiter out for ever: beaten once, it is
// handed the mutex.
// req: BZ-13
TEST(Mutex, a_waiter_is_not_kept_out_by_one_who_never_stops) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    base::atomic<bool> served{false};
    base::atomic<bool> started{false};
    auto greedy = rt->spawn([&] {
      while (!served.load(base::relaxed)) {
        const std::lock_guard held(m);
        started.store(true, base::relaxed);
      }
    });
    auto modest = rt->spawn([&] {
      until([&] { return started.load(base::relaxed); });
      for (int i = 0; i < 100; ++i) const std::lock_guard held(m);
      served.store(true, base::relaxed);
    });
    modest.join();
    greedy.join();
  });
}

// req: BZ-13
TEST(Mutex, a_waiter_that_was_woken_and_beaten_is_handed_the_mutex_next) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::mutex m;
  auto test = rt->spawn([&] {
    m.lock();
    base::atomic<int> served{0};
    auto waiter = weft::spawn([&] {
      const std::lock_guard held(m);
      served = 1;
    });
    for (int i = 0; i < 3; ++i) weft::yield();  // it waits now
    m.unlock();
    ASSERT_TRUE(m.try_lock());  // past the one that was woken
    for (int i = 0; i < 3; ++i) weft::yield();  // it has found it taken, and waits again
    EXPECT_EQ(served.load(), 0);
    m.unlock();
    EXPECT_FALSE(m.try_lock());
    waiter.join();
  });
  test.join();
}

// Those that were beaten go first, the others in their order: with one worker and a holder that suspends nobody is beaten.
// req: BZ-13
TEST(Mutex, waiters_are_served_in_the_order_they_came) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::mutex m;
  std::vector<int> order;
  auto test = rt->spawn([&] {
    handles all;
    {
      const std::lock_guard held(m);
      for (int i = 0; i < 10; ++i) {
        base::atomic<bool> there{false};
        all.push_back(weft::spawn([&, i] {
          there = true;
          const std::lock_guard mine(m);
          order.push_back(i);
        }));
        until([&] { return there.load(); });
        weft::yield();
      }
    }
    for (auto& h : all) h.join();
  });
  test.join();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// ---- try and time limits ------------------------------------------------------------------------------------------------

// req: BZ-13
TEST(Mutex, try_lock_takes_what_is_free_and_never_waits) {
  in_task_and_thread([] {
    weft::mutex m;
    ASSERT_TRUE(m.try_lock());
    EXPECT_TRUE(m.is_locked());
    EXPECT_FALSE(m.try_lock());
    std::thread([&] { EXPECT_FALSE(m.try_lock()); }).join();
    m.unlock();
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// req: BZ-13 BZ-11
TEST(Mutex, a_wait_with_a_time_limit_ends_in_time) {
  in_task_and_thread([] {
    weft::mutex m;
    support::latch held, over;
    std::thread holder([&] {
      const std::lock_guard mine(m);
      held.count_down();
      over.wait();
    });
    held.wait();
    const auto from = clock::now();
    EXPECT_FALSE(m.try_lock_for(5ms));
    EXPECT_GE(clock::now() - from, 5ms);
    EXPECT_FALSE(m.try_lock_until(clock::now() - 1h));
    weft::mutex free;
    EXPECT_TRUE(free.try_lock_until(clock::now() - 1h));
    free.unlock();
    over.count_down();
    holder.join();
  });
}

// Its owner is known: it may unlock, and is told when it would wait for itself.
// req: BZ-13 BZ-11
TEST(Mutex, a_wait_with_a_time_limit_that_is_served_holds_it) {
  weft::mutex m;
  served_after_waiting([&] { m.lock(); },
                       [&] {
                         EXPECT_TRUE(m.try_lock_for(1h));
                         EXPECT_THROW(m.lock(), weft::usage_error);
                         m.unlock();
                       },
                       [&] { m.unlock(); });
}

// req: BZ-13
TEST(Mutex, a_wait_that_is_served_holds_it) {
  weft::mutex m;
  served_after_waiting([&] { m.lock(); },
                       [&] {
                         m.lock();
                         EXPECT_THROW(m.lock(), weft::usage_error);
                         m.unlock();
                       },
                       [&] { m.unlock(); });
}

// req: BZ-13 BZ-11
TEST(Mutex, three_in_a_ring_with_deadlines_all_time_out_or_go_on) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    for (int round = 0; round < 20; ++round) {
      watched_runtime rt(workers);
      weft::mutex m[3];
      support::latch all_hold(3);
      support::latch all_gave_up(3);
      base::atomic<int> timed_out{0};
      handles all;
      for (int i = 0; i < 3; ++i)
        all.push_back(rt->spawn([&, i] {
          const std::lock_guard mine(m[i]);
          all_hold.arrive_and_wait();
          if (!m[(i + 1) % 3].try_lock_for(2ms)) ++timed_out;
          all_gave_up.arrive_and_wait();
        }));
      join(all);
      ASSERT_EQ(timed_out.load(), 3);
    }
  });
}

// req: BZ-13 BZ-11
TEST(Mutex, time_limits_at_the_worst_moments_lose_nothing) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    std::size_t count = 0;
    base::atomic<std::size_t> locked{0};
    handles all;
    std::vector<std::thread> threads;
    const auto body = [&](int t) {
      for (std::size_t i = 0; i < scaled(500); ++i) {
        const std::unique_lock held(m, std::chrono::microseconds((i * 7 + static_cast<std::size_t>(t)) % 50));
        if (!held) continue;
        ++count;
        ++locked;
        if (i % 8 == 0) weft::yield();
      }
    };
    for (int t = 0; t < 8; ++t) all.push_back(rt->spawn([&, t] { body(t); }));
    for (int t = 0; t < 2; ++t) threads.emplace_back([&, t] { body(t); });
    join(all);
    for (auto& t : threads) t.join();
    EXPECT_EQ(count, locked.load());
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// ---- cancellation -----------------------------------------------------------------------------------------------------

// req: BZ-13 CC-10 LS-P3
TEST(Mutex, a_cancelled_waiter_throws_and_the_others_are_served) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    m.lock();
    bool served = false;
    named_task first(*rt, [&] { const std::lock_guard held(m); });
    first.until_parked();
    named_task second(*rt, [&] {
      const std::lock_guard held(m);
      served = true;
    });
    second.until_parked();
    first.cancel();
    EXPECT_TRUE(first.join_cancelled());
    m.unlock();
    second.join();
    EXPECT_TRUE(served);
  });
}

// req: BZ-13
TEST(Mutex, lock_is_a_cancellation_point_even_if_it_is_free_and_try_lock_is_none) {
  watched_runtime rt(1);
  weft::mutex m;
  auto task = rt->spawn([&] {
    weft::this_task::ref().cancel();
    ASSERT_TRUE(m.try_lock());
    m.unlock();
    EXPECT_THROW(m.lock(), weft::cancelled);
    EXPECT_THROW((void)m.try_lock_for(1h), weft::cancelled);
    {
      const weft::this_task::shield shield;
      m.lock();
      m.unlock();
      EXPECT_TRUE(m.try_lock_for(1h));
      m.unlock();
    }
  });
  task.join();
  EXPECT_FALSE(m.is_locked());
}

// req: BZ-13 CC-10
TEST(Mutex, a_waiter_that_is_shielded_or_unwinds_is_not_cancelled) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    base::atomic<int> locked{0};
    struct locks_at_its_end {
      weft::mutex& m;
      base::atomic<int>& locked;
      ~locks_at_its_end() {
        const std::lock_guard held(m);
        ++locked;
      }
    };
    m.lock();
    named_task shielded(*rt, [&] {
      const weft::this_task::shield shield;
      const locks_at_its_end now{m, locked};
    });
    named_task unwinds(*rt, [&] {
      try {
        const locks_at_its_end now{m, locked};
        throw 1;
      } catch (int) {}
    });
    shielded.until_parked();
    unwinds.until_parked();
    shielded.cancel();
    unwinds.cancel();
    EXPECT_EQ(locked.load(), 0);
    m.unlock();
    shielded.join();
    unwinds.join();
    EXPECT_EQ(locked.load(), 2);
  });
}

// The scenario of the issue: whoever is cancelled, at whatever step of its wait, the mutex goes on. A lost hand-over is a hang.
// req: BZ-13 CC-10 LS-P3
TEST(Mutex, a_waiter_cancelled_at_each_step_never_loses_a_hand_over) {
  const bool asked = std::getenv("WEFT_TEST_ROUNDS") != nullptr;
  support::watchdog guard(asked ? 3600s : 100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    std::size_t count = 0;
    base::atomic<std::size_t> locked{0};
    base::atomic<std::size_t> cancelled{0};
    auto test = rt->spawn([&] {
      for (std::size_t round = 0; round < rounds(8000); ++round) {
        const auto body = [&] {
          try {
            const std::lock_guard held(m);
            ++count;
            ++locked;
            if (round % 3 == 0) weft::yield();
          } catch (const weft::cancelled&) {
            ++cancelled;
          }
        };
        auto a = weft::spawn(body);
        auto b = weft::spawn(body);
        auto c = weft::spawn(body);
        for (std::size_t i = 0; i < round % 5; ++i) weft::yield();
        b.cancel();
        if (round % 2 == 0) a.cancel();
        a.join();
        b.join();
        c.join();
        if (m.is_locked()) break;
      }
    });
    test.join();
    EXPECT_EQ(count, locked.load());
    EXPECT_GT(cancelled.load(), 0U);
    EXPECT_FALSE(m.is_locked());
  });
}

// ---- misuse and dumps -------------------------------------------------------------------------------------------------

// req: BZ-13
TEST(Mutex, locking_it_twice_is_a_usage_error_that_says_where) {
  in_task_and_thread([] {
    weft::mutex m;
    m.lock();
    try {
      m.lock();
      ADD_FAILURE() << "locked twice";
    } catch (const weft::usage_error& e) {
      EXPECT_NE(std::string(e.what()).find("mutex_test.cpp"), std::string::npos) << e.what();
    }
    EXPECT_THROW((void)m.try_lock_for(1h), weft::usage_error);
    m.unlock();
  });
}

// req: BZ-13
TEST(MutexDeathTest, unlocking_what_is_not_held_is_told) {
  weft::mutex m;
  EXPECT_DEATH(m.unlock(), "unlocked that nobody holds");
}

// req: BZ-13
TEST(MutexDeathTest, unlocking_what_somebody_else_holds_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  EXPECT_DEATH(
      {
        weft::mutex m;
        std::thread([&] { m.lock(); }).join();
        m.unlock();
      },
      "by another task or thread");
}

// req: BZ-13
TEST(MutexDeathTest, a_task_that_ends_with_a_mutex_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  weft::mutex m;
  const auto locks = [&] { m.lock(); };
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { weft::spawn({.name = "bob"}, locks).join(); }),
               "task #[0-9]+ \"bob\" has ended and still holds a mutex \\(0x[0-9a-f]+\\) that it locked at "
               ".*mutex_test.cpp:[0-9]+: .*lock_guard");
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { EXPECT_TRUE(m.try_lock()); }),
               "\"main\" has ended and still holds a mutex");
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { EXPECT_TRUE(m.try_lock_for(1s)); }), "still holds a mutex .* locked at");
}

// req: BZ-13
TEST(MutexDeathTest, a_task_that_ends_with_a_mutex_it_was_handed_or_waited_with_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  weft::mutex m;
  EXPECT_DEATH(weft::run({.workers = 1},
                         [&] {
                           m.lock();
                           auto waits = weft::spawn({.name = "bob"}, [&] { m.lock(); });
                           weft::yield();
                           m.unlock();
                           waits.join();
                         }),
               "\"bob\" has ended and still holds a mutex");
  EXPECT_DEATH(weft::run({.workers = 1},
                         [&] {
                           weft::condition_variable changed;
                           std::unique_lock held(m);
                           (void)changed.wait_for(held, 1ms);
                           (void)held.release();
                         }),
               "\"main\" has ended and still holds a mutex");
}

// req: BZ-13
TEST(Mutex, tasks_that_have_one_record_after_the_other_are_different_owners) {
  support::watchdog guard(60s);
  std::set<weft::locks::owner> owners;
  std::set<const void*> records;
  constexpr std::size_t runtimes = 2, tasks = 300;
  watched_runtime first(1), second(1);  // both number their tasks from 1
  for (watched_runtime* rt : {&first, &second}) {
    (*rt)->run([&] {
      for (std::size_t i = 0; i < tasks; ++i)
        weft::spawn([&] {
          owners.insert(weft::locks::this_owner());
          records.insert(weft::waits::current_task());
        }).join();
    });
  }
  EXPECT_EQ(owners.size(), runtimes * tasks);
  EXPECT_LT(records.size(), runtimes * tasks) << "or this has tested nothing";
}

// req: BZ-13
TEST(MutexDeathTest, destroying_what_is_held_is_told) {
  EXPECT_DEATH(
      {
        weft::mutex m;
        m.lock();
      },
      "destroyed while it is held");
}

// req: BZ-13
TEST(Mutex, an_exception_unlocks_it_and_leaves_no_poison) {
  weft::mutex m;
  try {
    const std::lock_guard held(m);
    throw 1;
  } catch (int) {}
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

// req: BZ-13
TEST(Mutex, a_parked_waiter_says_what_it_waits_for_and_where) {
  watched_runtime rt(2);
  weft::mutex m;
  m.lock();
  named_task waiter(*rt, [&] {
    m.lock();
    m.unlock();
  });
  waiter.until_parked();
  EXPECT_STREQ(waiter.record().waits_for.load(), "mutex");
  EXPECT_EQ(waiter.record().waits_on.load(), &m);
  EXPECT_NE(std::string(waiter.record().waits_at.load().file_name()).find("mutex_test.cpp"), std::string::npos);
  m.unlock();
  waiter.join();
}

}  // namespace
