// The mutex: one at a time, in which order, nobody kept out.
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

// A task that locks again and again, on the same worker or another, does not keep a waiter out for ever: a waiter that
// has lost once is handed the mutex.
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

// Waiters that have lost once go first, the others in their order. With one worker and a holder that suspends, no
// waiter loses.
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

}  // namespace
