// The mutex: whatever ends a wait for it, a time limit or a cancellation, nobody is forgotten.
#include "sync/sync.hpp"

namespace {

using namespace sync_test;

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

// Whichever waiter is cancelled, at whatever step of its wait, the mutex passes to the next. A lost hand-over would be
// a hang.
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

}  // namespace
