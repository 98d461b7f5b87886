// The condition variable: no notification is lost, and the mutex is held again however a wait ends.
#include <deque>
#include <optional>

#include "sync/sync.hpp"

namespace {

using namespace sync_test;

// req: BZ-13
TEST(ConditionVariable, a_queue_loses_nothing_between_tasks_and_threads) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    weft::condition_variable changed;
    std::deque<std::size_t> queue;
    bool over = false;
    base::atomic<std::size_t> sum{0};
    const std::size_t each = scaled(2000);
    const auto consume = [&] {
      for (;;) {
        std::unique_lock lock(m);
        changed.wait(lock, [&] { return !queue.empty() || over; });
        if (queue.empty()) return;
        sum += queue.front();
        queue.pop_front();
      }
    };
    const auto produce = [&] {
      for (std::size_t i = 1; i <= each; ++i) {
        {
          const std::lock_guard lock(m);
          queue.push_back(i);
        }
        changed.notify_one();
      }
    };
    handles consumers, producers;
    for (int t = 0; t < 3; ++t) consumers.push_back(rt->spawn(consume));
    std::thread outside(consume);
    for (int t = 0; t < 3; ++t) producers.push_back(rt->spawn(produce));
    produce();
    join(producers);
    {
      const std::lock_guard lock(m);
      over = true;
    }
    changed.notify_all();
    join(consumers);
    outside.join();
    EXPECT_EQ(sum.load(), 4 * each * (each + 1) / 2);
  });
}

// req: BZ-13 BZ-11
TEST(ConditionVariable, a_wait_with_a_time_limit_ends_in_time_with_the_mutex_held) {
  in_task_and_thread([] {
    weft::mutex m;
    weft::condition_variable never;
    std::unique_lock lock(m);
    const auto from = clock::now();
    EXPECT_EQ(never.wait_for(lock, 5ms), weft::cv_status::timeout);
    EXPECT_GE(clock::now() - from, 5ms);
    EXPECT_TRUE(m.is_locked());
    EXPECT_FALSE(never.wait_for(lock, 1ms, [] { return false; }));
    EXPECT_TRUE(never.wait_until(lock, clock::now() - 1h, [] { return true; }));
    EXPECT_EQ(never.wait_until(lock, clock::now() - 1h), weft::cv_status::timeout);
    EXPECT_TRUE(lock.owns_lock());
  });
}

// req: BZ-13 BZ-11
TEST(ConditionVariable, a_notification_in_time_is_no_timeout) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    weft::condition_variable changed;
    weft::cv_status how = weft::cv_status::timeout;
    named_task waiter(*rt, [&] {
      std::unique_lock lock(m);
      how = changed.wait_for(lock, 1h);
    });
    waiter.until_parked();
    changed.notify_one();
    waiter.join();
    EXPECT_EQ(how, weft::cv_status::no_timeout);
  });
}

// What the predicate says when the time is up is the answer.
// req: BZ-13 BZ-11
TEST(ConditionVariable, a_predicate_that_has_become_true_without_a_notification_counts_when_the_time_is_up) {
  in_task_and_thread([] {
    weft::mutex m;
    weft::condition_variable never;
    std::unique_lock lock(m);
    int asked = 0;
    EXPECT_TRUE(never.wait_for(lock, 1ms, [&] { return ++asked == 2; }));
    EXPECT_EQ(asked, 2);
  });
}

// req: BZ-13 BZ-11
TEST(ConditionVariable, a_wait_with_a_time_limit_that_is_notified_holds_the_mutex) {
  weft::mutex m;
  weft::condition_variable changed;
  bool ready = false;
  served_after_waiting([&] { ready = false; },
                       [&] {
                         std::unique_lock lock(m);
                         EXPECT_TRUE(changed.wait_for(lock, 1h, [&] { return ready; }));
                         EXPECT_THROW(m.lock(), weft::usage_error);
                       },
                       [&] {
                         {
                           const std::lock_guard lock(m);
                           ready = true;
                         }
                         changed.notify_one();
                       });
}

// req: BZ-13 CC-10
TEST(ConditionVariable, every_wait_is_a_cancellation_point_even_if_there_is_nothing_to_wait_for) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  auto task = rt->spawn([] {
    weft::mutex m;
    weft::condition_variable c;
    const auto yes = [] { return true; };
    std::unique_lock lock(m);
    weft::this_task::ref().cancel();
    EXPECT_THROW(c.wait(lock), weft::cancelled);
    EXPECT_THROW(c.wait(lock, yes), weft::cancelled);
    EXPECT_THROW((void)c.wait_for(lock, 1h), weft::cancelled);
    EXPECT_THROW((void)c.wait_for(lock, 1h, yes), weft::cancelled);
    EXPECT_TRUE(lock.owns_lock());
    const weft::this_task::shield shield;
    EXPECT_TRUE(c.wait_for(lock, 1h, yes));
  });
  task.join();
}

// The re-lock waits, although the task is cancelled: whoever catches holds the mutex.
// req: BZ-13 CC-10
TEST(ConditionVariable, a_cancelled_wait_throws_with_the_mutex_held) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::mutex m;
    weft::condition_variable never;
    base::atomic<bool> caught{false};
    int inside = 0;
    named_task waiter(*rt, [&] {
      std::unique_lock lock(m);
      try {
        never.wait(lock);
      } catch (const weft::cancelled&) {
        EXPECT_TRUE(lock.owns_lock());
        EXPECT_EQ(inside, 0);
        caught = true;
        throw;
      }
    });
    waiter.until_parked();
    m.lock();
    inside = 1;
    waiter.cancel();
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    EXPECT_FALSE(caught.load());
    inside = 0;
    m.unlock();
    EXPECT_TRUE(waiter.join_cancelled());
    EXPECT_FALSE(m.is_locked());
  });
}

// req: BZ-13 CC-10 LS-P3
TEST(ConditionVariable, a_waiter_cancelled_at_each_step_takes_no_notification_with_it) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto test = rt->spawn([&] {
      for (std::size_t round = 0; round < rounds(2000); ++round) {
        weft::mutex m;
        weft::condition_variable changed;
        int tokens = 0;
        const auto take = [&] {
          try {
            std::unique_lock lock(m);
            changed.wait(lock, [&] { return tokens > 0; });
            --tokens;
          } catch (const weft::cancelled&) {}
        };
        auto leaves = weft::spawn(take);
        auto stays = weft::spawn(take);
        for (std::size_t i = 0; i < round % 4; ++i) weft::yield();
        auto gives = weft::spawn([&] {
          {
            const std::lock_guard lock(m);
            ++tokens;
          }
          changed.notify_one();
        });
        if (round % 3 == 0) weft::yield();
        leaves.cancel();
        leaves.join();
        gives.join();
        {
          const std::lock_guard lock(m);
          ++tokens;  // one for `stays`, if the other has got the first
        }
        changed.notify_one();
        stays.join();
      }
    });
    test.join();
  });
}

// req: BZ-13
TEST(ConditionVariable, a_wait_without_the_mutex_is_a_usage_error) {
  weft::mutex m;
  weft::condition_variable c;
  std::unique_lock<weft::mutex> none;
  EXPECT_THROW(c.wait(none), weft::usage_error);
  std::unique_lock lock(m, std::defer_lock);
  EXPECT_THROW(c.wait(lock), weft::usage_error);
  EXPECT_THROW((void)c.wait_for(none, 1h), weft::usage_error);
  EXPECT_THROW((void)c.wait_for(lock, 1h, [] { return false; }), weft::usage_error);
}

// A lock that says it owns the mutex, in the hands of somebody who does not.
// req: BZ-13
TEST(ConditionVariable, a_wait_with_a_mutex_that_somebody_else_holds_is_a_usage_error) {
  weft::mutex m;
  weft::condition_variable c;
  std::unique_lock lock(m);
  std::thread([&] {
    EXPECT_THROW(c.wait(lock), weft::usage_error);
    EXPECT_THROW((void)c.wait_for(lock, 1h), weft::usage_error);
  }).join();
}

// req: BZ-13
TEST(ConditionVariableDeathTest, destroying_what_is_waited_for_is_told) {
  EXPECT_DEATH(
      {
        weft::mutex m;
        watched_runtime rt(1);
        std::optional<named_task> waiter;
        weft::condition_variable c;
        waiter.emplace(*rt, [&] {
          std::unique_lock lock(m);
          c.wait(lock);
        });
        waiter->until_parked();
      },
      "destroyed while it is waited for");
}

}  // namespace
