// The counting semaphore: never more out than there are, none lost, first come first served.
#include <memory>
#include <optional>

#include "sync/sync.hpp"

namespace {

using namespace sync_test;

// req: BZ-13
TEST(Semaphore, never_more_are_inside_than_it_has_permits_and_none_is_lost) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    for (const std::size_t permits : {1, 3}) {
      watched_runtime rt(workers);
      weft::semaphore s(permits);
      base::atomic<std::size_t> inside{0}, most{0};
      handles all;
      for (int t = 0; t < 12; ++t)
        all.push_back(rt->spawn([&] {
          for (std::size_t i = 0; i < scaled(500); ++i) {
            s.acquire();
            const std::size_t now = ++inside;
            if (now > most.load()) most = now;
            if (i % 4 == 0) weft::yield();
            --inside;
            s.release();
          }
        }));
      join(all);
      EXPECT_LE(most.load(), permits);
      EXPECT_EQ(s.available(), permits);
    }
  });
}

// req: BZ-13
TEST(Semaphore, outside_threads_and_tasks_give_each_other_permits) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::semaphore to_task(0), to_thread(0);
    const std::size_t n = scaled(2000);
    auto task = rt->spawn([&] {
      for (std::size_t i = 0; i < n; ++i) {
        to_task.acquire();
        to_thread.release();
      }
    });
    for (std::size_t i = 0; i < n; ++i) {
      to_task.release();
      to_thread.acquire();
    }
    task.join();
    EXPECT_EQ(to_task.available() + to_thread.available(), 0U);
  });
}

// req: BZ-13
TEST(Semaphore, a_large_request_is_not_passed_by_small_ones) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::semaphore s(4);
    s.acquire(2);
    named_task large(*rt, [&] { s.acquire(4); });
    large.until_parked();
    EXPECT_FALSE(s.try_acquire());  // though there are two
    named_task small(*rt, [&] { s.acquire(); });
    small.until_parked();
    s.release(2);
    large.join();
    EXPECT_EQ(s.available(), 0U);
    s.release(4);
    small.join();
    EXPECT_EQ(s.available(), 3U);
  });
}

// req: BZ-13
TEST(Semaphore, waiters_are_served_in_the_order_they_came) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::semaphore s(0);
  std::vector<int> order;
  std::vector<std::unique_ptr<named_task>> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(std::make_unique<named_task>(*rt, [&, i] {
      s.acquire();
      order.push_back(i);
      s.release();
    }));
    all.back()->until_parked();
  }
  s.release();
  for (auto& t : all) t->join();
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4, 5, 6, 7}));
}

// req: BZ-13
TEST(Semaphore, many_permits_at_once_wake_as_many_as_they_are_for) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::semaphore s(0);
    named_task two(*rt, [&] { s.acquire(2); });
    two.until_parked();
    named_task one(*rt, [&] { s.acquire(1); });
    one.until_parked();
    named_task three(*rt, [&] { s.acquire(3); });
    three.until_parked();
    s.release(5);
    two.join();
    one.join();
    EXPECT_EQ(s.available(), 2U);
    s.release(1);
    three.join();
    EXPECT_EQ(s.available(), 0U);
  });
}

// req: BZ-13 CC-10 LS-P3
TEST(Semaphore, a_cancelled_large_request_lets_those_behind_it_pass) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::semaphore s(1);
    named_task large(*rt, [&] { s.acquire(2); });
    large.until_parked();
    named_task small(*rt, [&] { s.acquire(1); });
    small.until_parked();
    large.cancel();
    EXPECT_TRUE(large.join_cancelled());
    small.join();
    EXPECT_EQ(s.available(), 0U);
  });
}

// req: BZ-13 BZ-11
TEST(Semaphore, a_large_request_whose_time_is_up_lets_those_behind_it_pass) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  weft::semaphore s(1);
  named_task large(*rt, [&] { EXPECT_FALSE(s.try_acquire_for(20ms, 2)); });
  large.until_parked();
  std::thread outside([&] { s.acquire(); });
  outside.join();
  large.join();
  EXPECT_EQ(s.available(), 0U);
}

// req: BZ-13 CC-10 LS-P3
TEST(Semaphore, waiters_cancelled_at_each_step_take_no_permit_with_them) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::semaphore s(1);
    auto test = rt->spawn([&] {
      for (std::size_t round = 0; round < rounds(4000) && s.available() == 1; ++round) {
        const auto body = [&](std::size_t n) {
          return [&, n] {
            try {
              s.acquire(n);
              const std::unique_ptr<weft::semaphore, std::function<void(weft::semaphore*)>> permits(
                  &s, [n](weft::semaphore* from) { from->release(n); });
              if (round % 3 == 0) weft::yield();
            } catch (const weft::cancelled&) {}
          };
        };
        auto a = weft::spawn(body(1));
        auto b = weft::spawn(body(round % 4 == 0 ? 2 : 1));
        auto c = weft::spawn(body(1));
        for (std::size_t i = 0; i < round % 5; ++i) weft::yield();
        b.cancel();
        if (round % 2 == 0) a.cancel();
        a.join();
        b.join();
        c.join();
      }
    });
    test.join();
    EXPECT_EQ(s.available(), 1U);
  });
}

// req: BZ-13 BZ-11
TEST(Semaphore, time_limits_and_tries) {
  in_task_and_thread([] {
    weft::semaphore s(2);
    EXPECT_TRUE(s.try_acquire(2));
    EXPECT_FALSE(s.try_acquire());
    const auto from = clock::now();
    EXPECT_FALSE(s.try_acquire_for(5ms));
    EXPECT_GE(clock::now() - from, 5ms);
    EXPECT_FALSE(s.try_acquire_until(clock::now() - 1h));
    s.release(2);
    EXPECT_FALSE(s.try_acquire_for(1ms, 3));
    EXPECT_TRUE(s.try_acquire_until(clock::now() - 1h, 2));
    s.release(2);
    EXPECT_EQ(s.available(), 2U);
  });
}

// req: BZ-13 CC-11
TEST(Semaphore, as_an_arm_it_acquires_only_when_it_wins) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::semaphore s(0), other(0);
    base::atomic<int> won{-1};
    named_task task(*rt, [&] { weft::select(s.on_acquire(2, [&] { won = 0; }), other.on_acquire([&] { won = 1; })); });
    task.until_parked();
    s.release();
    other.release();
    task.join();
    EXPECT_EQ(won.load(), 1);
    EXPECT_EQ(s.available(), 1U);
    EXPECT_EQ(other.available(), 0U);
    auto limit = weft::after(1ms);
    EXPECT_EQ(weft::prialt(s.on_acquire(2), limit).index(), 1U);
    EXPECT_EQ(weft::prialt(s.on_acquire(), weft::otherwise).index(), 0U);
    EXPECT_EQ(weft::prialt(s.on_acquire(), weft::otherwise).index(), 1U);
  });
}

// A select that looks at several semaphores at one moment stops them for a while.
TEST(Semaphore, a_select_that_takes_nothing_leaves_it_as_it_was) {
  in_task_and_thread([] {
    weft::semaphore s(1), other(0);
    EXPECT_EQ(weft::prialt(s.on_acquire(2), other.on_acquire(), weft::otherwise).index(), 2U);
    auto limit = weft::after(1ms);
    EXPECT_EQ(weft::prialt(s.on_acquire(2), other.on_acquire(), limit).index(), 2U);
    EXPECT_TRUE(s.try_acquire());
    s.release();
    EXPECT_EQ(s.available(), 1U);
  });
}

// req: BZ-13
TEST(Semaphore, an_absurd_number_of_permits_is_a_usage_error) {
  EXPECT_THROW(weft::semaphore(SIZE_MAX), weft::usage_error);
  weft::semaphore s(weft::semaphore::max());
  EXPECT_THROW(s.release(), weft::usage_error);
  EXPECT_THROW(s.acquire(SIZE_MAX), weft::usage_error);
  EXPECT_EQ(s.available(), weft::semaphore::max());
}

// It could never be fulfilled, however long it waits.
// req: BZ-13 BZ-11
TEST(Semaphore, a_request_for_more_than_the_maximum_is_a_usage_error_with_a_time_limit_as_well) {
  in_task_and_thread([] {
    weft::semaphore s(weft::semaphore::max());
    EXPECT_THROW((void)s.try_acquire_for(0ms, weft::semaphore::max() + 1), weft::usage_error);
    EXPECT_THROW((void)s.try_acquire_until(clock::now() - 1h, SIZE_MAX), weft::usage_error);
    EXPECT_FALSE(s.try_acquire(weft::semaphore::max() + 1));
    EXPECT_TRUE(s.try_acquire_for(0ms, weft::semaphore::max()));
  });
}

// req: BZ-13
TEST(Semaphore, more_than_the_maximum_is_refused_also_while_somebody_waits) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::semaphore s(weft::semaphore::max() - 1);
  named_task waiter(*rt, [&] { s.acquire(weft::semaphore::max()); });
  waiter.until_parked();
  EXPECT_THROW(s.release(2), weft::usage_error);
  EXPECT_EQ(s.available(), weft::semaphore::max() - 1);
  s.release();
  waiter.join();
  EXPECT_EQ(s.available(), 0U);
}

// req: BZ-13 BZ-11
TEST(Semaphore, a_request_with_a_time_limit_that_is_served_has_all_its_permits_and_no_more) {
  weft::semaphore s(0);
  served_after_waiting([] {}, [&] { EXPECT_TRUE(s.try_acquire_for(1h, 2)); },
                       [&] {
                         s.release();
                         s.release(2);
                         EXPECT_EQ(s.available(), 1U);
                         EXPECT_TRUE(s.try_acquire());
                       });
}

// req: BZ-13 CC-10
TEST(Semaphore, acquire_is_a_cancellation_point_even_if_there_are_permits_and_try_acquire_is_none) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::semaphore s(2);
  auto task = rt->spawn([&] {
    weft::this_task::ref().cancel();
    EXPECT_TRUE(s.try_acquire());
    EXPECT_THROW(s.acquire(), weft::cancelled);
    EXPECT_THROW((void)s.try_acquire_for(1h), weft::cancelled);
    EXPECT_EQ(s.available(), 1U);
    const weft::this_task::shield shield;
    EXPECT_TRUE(s.try_acquire_for(1h));
  });
  task.join();
}

// req: BZ-13
TEST(SemaphoreDeathTest, destroying_what_is_waited_for_is_told) {
  EXPECT_DEATH(
      {
        watched_runtime rt(1);
        std::optional<named_task> waiter;
        weft::semaphore s(0);
        waiter.emplace(*rt, [&] { s.acquire(); });
        waiter->until_parked();
      },
      "destroyed while it is waited for");
}

// req: BZ-13
TEST(Semaphore, who_acquires_may_destroy_it) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t i = 0; i < scaled(1000); ++i) {
      auto s = std::make_unique<weft::semaphore>(0);
      auto task = rt->spawn([&s = *s] { s.release(); });
      s->acquire();
      s.reset();
      task.join();
    }
  });
}

}  // namespace
