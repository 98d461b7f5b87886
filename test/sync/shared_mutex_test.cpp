// Many readers or one writer, and writers first.
#include "sync/sync.hpp"

namespace {

using namespace sync_test;

// req: BZ-13
TEST(SharedMutex, a_writer_is_alone_and_readers_are_not) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::shared_mutex m;
    std::size_t value = 0, mirror = 0;
    handles all;
    for (int t = 0; t < 8; ++t)
      all.push_back(rt->spawn([&, t] {
        for (std::size_t i = 0; i < scaled(1000); ++i)
          if ((i + static_cast<std::size_t>(t)) % 4 == 0) {
            const std::lock_guard held(m);
            ++value;
            if (i % 16 == 0) weft::yield();
            ++mirror;
          } else {
            const std::shared_lock held(m);
            ASSERT_EQ(value, mirror);
            if (i % 16 == 1) weft::yield();
          }
      }));
    join(all);
    EXPECT_EQ(value, 8 * scaled(1000) / 4);
    EXPECT_TRUE(m.try_lock());
    m.unlock();
  });
}

// req: BZ-13
TEST(SharedMutex, readers_are_inside_together) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::shared_mutex m;
    support::latch all_inside(4);
    handles all;
    for (int t = 0; t < 4; ++t)
      all.push_back(rt->spawn([&] {
        const std::shared_lock held(m);
        all_inside.arrive_and_wait();
      }));
    join(all);
  });
}

// req: BZ-13
TEST(SharedMutex, tasks_and_outside_threads_share_it) {
  support::watchdog guard(100s);
  watched_runtime rt(2);
  weft::shared_mutex m;
  std::size_t value = 0;
  const auto body = [&] {
    for (std::size_t i = 0; i < scaled(2000); ++i)
      if (i % 2 == 0) {
        const std::lock_guard held(m);
        ++value;
      } else {
        const std::shared_lock held(m);
        ASSERT_LE(value, 6 * scaled(2000));
      }
  };
  handles all;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    all.push_back(rt->spawn(body));
    threads.emplace_back(body);
  }
  join(all);
  for (auto& t : threads) t.join();
  EXPECT_EQ(value, 6 * ((scaled(2000) + 1) / 2));
}

// req: BZ-13
TEST(SharedMutex, a_waiting_writer_keeps_new_readers_out_and_goes_first) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::shared_mutex m;
    m.lock_shared();
    base::atomic<bool> written{false};
    named_task writer(*rt, [&] {
      const std::lock_guard held(m);
      written = true;
    });
    writer.until_parked();
    EXPECT_FALSE(m.try_lock_shared());
    named_task reader(*rt, [&] {
      const std::shared_lock held(m);
      EXPECT_TRUE(written.load());
    });
    reader.until_parked();
    m.unlock_shared();
    writer.join();
    reader.join();
  });
}

// req: BZ-13
TEST(SharedMutex, a_writer_that_leaves_is_followed_by_the_next_writer_before_the_readers) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  weft::shared_mutex m;
  m.lock();
  base::atomic<bool> written{false};
  named_task reader(*rt, [&] {
    const std::shared_lock held(m);
    EXPECT_TRUE(written.load());
  });
  reader.until_parked();
  named_task writer(*rt, [&] {
    const std::lock_guard held(m);
    written = true;
  });
  writer.until_parked();
  m.unlock();
  writer.join();
  reader.join();
}

// req: BZ-13
TEST(SharedMutex, a_reader_that_leaves_lets_no_other_in_before_the_writer_that_waits) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::shared_mutex m;
    m.lock_shared();
    m.lock_shared();
    base::atomic<bool> written{false};
    named_task writer(*rt, [&] {
      const std::lock_guard held(m);
      written = true;
    });
    writer.until_parked();
    named_task reader(*rt, [&] {
      const std::shared_lock held(m);
      EXPECT_TRUE(written.load());
    });
    reader.until_parked();
    m.unlock_shared();
    EXPECT_FALSE(m.try_lock_shared());
    m.unlock_shared();
    writer.join();
    reader.join();
  });
}

// req: BZ-13 CC-10 LS-P3
TEST(SharedMutex, a_cancelled_writer_lets_the_readers_behind_it_in) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::shared_mutex m;
    m.lock_shared();
    named_task writer(*rt, [&] { const std::lock_guard held(m); });
    writer.until_parked();
    named_task reader(*rt, [&] { const std::shared_lock held(m); });
    reader.until_parked();
    writer.cancel();
    EXPECT_TRUE(writer.join_cancelled());
    reader.join();
    m.unlock_shared();
  });
}

// req: BZ-13 BZ-11
TEST(SharedMutex, a_writer_whose_time_is_up_lets_the_readers_behind_it_in) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  weft::shared_mutex m;
  m.lock_shared();
  named_task writer(*rt, [&] { EXPECT_FALSE(m.try_lock_for(20ms)); });
  writer.until_parked();
  std::thread([&] { const std::shared_lock held(m); }).join();
  writer.join();
  m.unlock_shared();
}

// req: BZ-13 CC-10 LS-P3
TEST(SharedMutex, waiters_cancelled_at_each_step_take_no_lock_with_them) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::shared_mutex m;
    auto test = rt->spawn([&] {
      for (std::size_t round = 0; round < rounds(4000); ++round) {
        const auto body = [&](bool writes) {
          return [&, writes] {
            try {
              if (writes) {
                const std::lock_guard held(m);
                if (round % 3 == 0) weft::yield();
              } else {
                const std::shared_lock held(m);
                if (round % 3 == 1) weft::yield();
              }
            } catch (const weft::cancelled&) {}
          };
        };
        auto a = weft::spawn(body(round % 2 == 0));
        auto b = weft::spawn(body(true));
        auto c = weft::spawn(body(false));
        for (std::size_t i = 0; i < round % 5; ++i) weft::yield();
        b.cancel();
        if (round % 4 == 0) a.cancel();
        a.join();
        b.join();
        c.join();
        ASSERT_TRUE(m.try_lock());
        m.unlock();
      }
    });
    test.join();
  });
}

// req: BZ-13 BZ-11
TEST(SharedMutex, time_limits_and_tries) {
  in_task_and_thread([] {
    weft::shared_mutex m;
    ASSERT_TRUE(m.try_lock_shared());
    EXPECT_TRUE(m.try_lock_shared_for(0ms));
    EXPECT_FALSE(m.try_lock());
    const auto from = clock::now();
    EXPECT_FALSE(m.try_lock_for(5ms));
    EXPECT_GE(clock::now() - from, 5ms);
    m.unlock_shared();
    m.unlock_shared();
    ASSERT_TRUE(m.try_lock_until(clock::now() - 1h));
    EXPECT_FALSE(m.try_lock_shared());
    std::thread([&] { EXPECT_FALSE(m.try_lock_shared_for(2ms)); }).join();
    m.unlock();
  });
}

// Its owner is known: it may unlock, and is told when it would wait for itself.
// req: BZ-13 BZ-11
TEST(SharedMutex, a_writer_with_a_time_limit_that_is_served_holds_it) {
  weft::shared_mutex m;
  served_after_waiting([&] { m.lock_shared(); },
                       [&] {
                         EXPECT_TRUE(m.try_lock_for(1h));
                         EXPECT_THROW(m.lock(), weft::usage_error);
                         m.unlock();
                       },
                       [&] { m.unlock_shared(); });
}

// req: BZ-13
TEST(SharedMutex, a_writer_that_is_served_holds_it) {
  weft::shared_mutex m;
  served_after_waiting([&] { m.lock_shared(); },
                       [&] {
                         m.lock();
                         EXPECT_THROW(m.lock(), weft::usage_error);
                         m.unlock();
                       },
                       [&] { m.unlock_shared(); });
}

// req: BZ-13 BZ-11
TEST(SharedMutex, a_reader_with_a_time_limit_that_is_served_holds_it) {
  weft::shared_mutex m;
  served_after_waiting([&] { m.lock(); },
                       [&] {
                         EXPECT_TRUE(m.try_lock_shared_for(1h));
                         EXPECT_FALSE(m.try_lock());
                         m.unlock_shared();
                       },
                       [&] { m.unlock(); });
}

// req: BZ-13
TEST(SharedMutex, locking_it_twice_as_a_writer_is_a_usage_error) {
  in_task_and_thread([] {
    weft::shared_mutex m;
    const std::lock_guard held(m);
    EXPECT_THROW(m.lock(), weft::usage_error);
    EXPECT_THROW(m.lock_shared(), weft::usage_error);
    EXPECT_THROW((void)m.try_lock_for(1h), weft::usage_error);
    EXPECT_THROW((void)m.try_lock_shared_for(1h), weft::usage_error);
  });
}

// A task that has been the writer is not taken for the writer any more.
TEST(SharedMutex, one_that_was_the_writer_waits_for_a_reader_like_anybody) {
  weft::shared_mutex m;
  in_task_and_thread([&] {
    m.lock();
    m.unlock();
    const std::shared_lock held(m);
    EXPECT_FALSE(m.try_lock_for(1ms));
  });
}

// req: BZ-13 CC-10
TEST(SharedMutex, locks_are_cancellation_points_even_if_it_is_free_and_tries_are_none) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::shared_mutex m;
  auto task = rt->spawn([&] {
    weft::this_task::ref().cancel();
    ASSERT_TRUE(m.try_lock());
    m.unlock();
    ASSERT_TRUE(m.try_lock_shared());
    m.unlock_shared();
    EXPECT_THROW(m.lock(), weft::cancelled);
    EXPECT_THROW(m.lock_shared(), weft::cancelled);
    EXPECT_THROW((void)m.try_lock_for(1h), weft::cancelled);
    EXPECT_THROW((void)m.try_lock_shared_for(1h), weft::cancelled);
    const weft::this_task::shield shield;
    m.lock();
    m.unlock();
    EXPECT_TRUE(m.try_lock_shared_for(1h));
    m.unlock_shared();
  });
  task.join();
}

// req: BZ-13
TEST(SharedMutexDeathTest, a_task_that_ends_as_its_writer_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  weft::shared_mutex m;
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { m.lock(); }),
               "\"main\" has ended and still holds a shared_mutex .* locked at .*shared_mutex_test.cpp:[0-9]+");
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { EXPECT_TRUE(m.try_lock()); }), "still holds a shared_mutex");
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { EXPECT_TRUE(m.try_lock_for(1s)); }), "still holds a shared_mutex");
}

// req: BZ-13
TEST(SharedMutexDeathTest, unlocking_what_is_not_held_is_told) {
  weft::shared_mutex m;
  EXPECT_DEATH(m.unlock(), "no writer holds");
  EXPECT_DEATH(m.unlock_shared(), "no reader holds");
}

// req: BZ-13
TEST(SharedMutexDeathTest, unlocking_what_is_not_held_is_told_also_while_somebody_waits) {
  EXPECT_DEATH(
      {
        weft::shared_mutex m;
        m.lock();
        watched_runtime rt(1);
        named_task reader(*rt, [&] { m.lock_shared(); });
        reader.until_parked();
        m.unlock_shared();
      },
      "no reader holds");
}

// req: BZ-13
TEST(SharedMutexDeathTest, unlocking_what_somebody_else_holds_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  EXPECT_DEATH(
      {
        weft::shared_mutex m;
        std::thread([&] { m.lock(); }).join();
        m.unlock();
      },
      "by another task or thread");
}

// req: BZ-13
TEST(SharedMutexDeathTest, destroying_what_is_held_is_told) {
  EXPECT_DEATH(
      {
        weft::shared_mutex m;
        m.lock_shared();
      },
      "destroyed while it is held");
}

}  // namespace
