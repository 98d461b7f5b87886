// Event, notify, latch and barrier: nobody waits for what has happened, and nothing that happened is lost with a waiter.
#include <optional>

#include "sync/sync.hpp"

namespace {

using namespace sync_test;

// ---- event ------------------------------------------------------------------------------------------------------------

// req: BZ-13
TEST(Event, once_set_every_wait_ends_until_it_is_reset) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::event e;
    int told = 0;
    handles all;
    for (int t = 0; t < 8; ++t)
      all.push_back(rt->spawn([&] {
        e.wait();
        EXPECT_EQ(told, 1);
      }));
    std::thread outside([&] {
      e.wait();
      EXPECT_EQ(told, 1);
    });
    told = 1;
    e.set();
    join(all);
    outside.join();
    e.wait();
    EXPECT_TRUE(e.is_set());
    e.reset();
    EXPECT_FALSE(e.is_set());
    EXPECT_FALSE(e.wait_for(2ms));
  });
}

// req: BZ-13
TEST(Event, with_auto_reset_a_set_ends_one_wait_and_several_before_it_are_one) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::auto_event e;
    base::atomic<int> woken{0};
    named_task a(*rt, [&] {
      e.wait();
      ++woken;
    });
    a.until_parked();
    named_task b(*rt, [&] {
      e.wait();
      ++woken;
    });
    b.until_parked();
    e.set();
    a.join();
    EXPECT_EQ(woken.load(), 1);
    e.set();
    b.join();
    e.set();
    e.set();
    e.wait();
    EXPECT_FALSE(e.wait_for(1ms));
  });
}

// req: BZ-13
TEST(Event, who_waits_may_destroy_it) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t i = 0; i < scaled(1000); ++i) {
      auto e = std::make_unique<weft::event>();
      auto task = rt->spawn([&e = *e] { e.set(); });
      e->wait();
      e.reset();
      task.join();
    }
  });
}

// req: BZ-13 CC-10
TEST(Event, a_cancelled_wait_throws_even_if_it_is_set) {
  watched_runtime rt(2);
  weft::event e;
  named_task waiter(*rt, [&] { e.wait(); });
  waiter.until_parked();
  EXPECT_STREQ(waiter.record().waits_for.load()->name, "event");
  waiter.cancel();
  EXPECT_TRUE(waiter.join_cancelled());
  e.set();
  auto task = rt->spawn([&] {
    weft::this_task::ref().cancel();
    EXPECT_THROW(e.wait(), weft::cancelled);
  });
  task.join();
}

// req: BZ-13 BZ-11
TEST(Event, a_wait_with_a_time_limit_ends_when_it_is_set) {
  weft::event e;
  served_after_waiting([&] { e.reset(); }, [&] { EXPECT_TRUE(e.wait_for(1h)); }, [&] { e.set(); });
  EXPECT_TRUE(e.is_set());
  weft::auto_event once;
  served_after_waiting([] {}, [&] { EXPECT_TRUE(once.wait_for(1h)); }, [&] { once.set(); });
  EXPECT_FALSE(once.is_set());
}

// req: BZ-13
TEST(Event, one_who_never_has_to_wait_still_gives_way) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  rt->run([] {
    weft::event e;
    e.set();
    base::atomic<bool> ran{false};
    auto other = weft::spawn([&] { ran = true; });
    while (!ran.load()) e.wait();
    other.join();
  });
}

// req: BZ-13
TEST(EventDeathTest, destroying_what_is_waited_for_is_told) {
  EXPECT_DEATH(
      {
        watched_runtime rt(1);
        std::optional<named_task> waiter;
        weft::event e;
        waiter.emplace(*rt, [&] { e.wait(); });
        waiter->until_parked();
      },
      "destroyed while it is waited for");
}

// req: BZ-13 CC-11
TEST(Event, as_an_arm_of_a_select) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::event e;
    weft::auto_event other;
    base::atomic<int> won{-1};
    named_task task(*rt, [&] { weft::select(e.on_set([&] { won = 0; }), other.on_set([&] { won = 1; })); });
    task.until_parked();
    other.set();
    task.join();
    EXPECT_EQ(won.load(), 1);
    EXPECT_FALSE(other.is_set());
    other.set();
    EXPECT_EQ(weft::prialt(e.on_set(), other.on_set()).index(), 1U);
    e.set();
    EXPECT_EQ(weft::prialt(e.on_set(), other.on_set(), weft::otherwise).index(), 0U);
    auto limit = weft::after(1ms);
    EXPECT_EQ(weft::prialt(other.on_set(), limit).index(), 1U);
  });
}

// ---- notify -----------------------------------------------------------------------------------------------------------

// req: BZ-13
TEST(Notify, one_is_remembered_and_not_more) {
  in_task_and_thread([] {
    weft::notify n;
    n.notify_one();
    n.notify_one();
    n.wait();
    EXPECT_FALSE(n.wait_for(1ms));
    n.notify_all();
    EXPECT_FALSE(n.wait_for(1ms));
  });
}

// req: BZ-13
TEST(Notify, all_who_wait_are_woken_by_notify_all_and_one_by_notify_one) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::notify n;
    base::atomic<int> woken{0};
    const auto waits = [&] {
      n.wait();
      ++woken;
    };
    named_task a(*rt, waits), b(*rt, waits), c(*rt, waits);
    a.until_parked();
    b.until_parked();
    c.until_parked();
    n.notify_one();
    until([&] { return woken.load() == 1; });
    n.notify_all();
    a.join();
    b.join();
    c.join();
  });
}

// A queue of one consumer: the look and the wait are two steps, and no notification falls between them.
// req: BZ-13
TEST(Notify, nothing_is_missed_between_the_look_and_the_wait) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::notify n;
    base::atomic<std::size_t> put{0};
    const std::size_t all = scaled(20000);
    auto consumer = rt->spawn([&] {
      for (std::size_t taken = 0; taken < all;) {
        if (put.load() == taken)
          n.wait();
        else
          taken = put.load();
      }
    });
    auto producer = rt->spawn([&] {
      for (std::size_t i = 0; i < all; ++i) {
        ++put;
        n.notify_one();
        if (i % 64 == 0) weft::yield();
      }
    });
    producer.join();
    consumer.join();
  });
}

// req: BZ-13 CC-10 LS-P3
TEST(Notify, a_cancelled_waiter_takes_no_notification_with_it) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    auto test = rt->spawn([&] {
      for (std::size_t round = 0; round < rounds(4000); ++round) {
        weft::notify n;
        base::atomic<int> got{0};
        auto leaves = weft::spawn([&] {
          try {
            n.wait();
            ++got;
          } catch (const weft::cancelled&) {}
        });
        auto gives = weft::spawn([&] { n.notify_one(); });
        for (std::size_t i = 0; i < round % 4; ++i) weft::yield();
        leaves.cancel();
        leaves.join();
        gives.join();
        if (got.load() == 0) n.wait();  // it is still there
        ASSERT_FALSE(n.wait_for(0ms));
      }
    });
    test.join();
  });
}

// req: BZ-13 CC-11
TEST(Notify, as_an_arm_that_loses_it_takes_nothing) {
  weft::run({.workers = 2}, [] {
    weft::notify a, b;
    b.notify_one();
    EXPECT_EQ(weft::prialt(a.on_notify(), b.on_notify()).index(), 1U);
    a.notify_one();
    b.notify_one();
    EXPECT_EQ(weft::prialt(a.on_notify(), b.on_notify()).index(), 0U);
    EXPECT_TRUE(b.wait_for(0ms));
  });
}

// req: BZ-13 BZ-11
TEST(Notify, a_wait_with_a_time_limit_ends_when_it_is_notified) {
  weft::notify n;
  served_after_waiting([] {}, [&] { EXPECT_TRUE(n.wait_for(1h)); }, [&] { n.notify_one(); });
  served_after_waiting([] {}, [&] { EXPECT_TRUE(n.wait_for(1h)); }, [&] { n.notify_all(); });
  EXPECT_FALSE(n.wait_for(0ms));  // nothing is remembered
}

// ---- latch ------------------------------------------------------------------------------------------------------------

// req: BZ-13
TEST(Latch, opens_when_all_have_counted_down_and_stays_open) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::latch l(8);
    base::atomic<int> before{0};
    handles all;
    for (int t = 0; t < 8; ++t)
      all.push_back(rt->spawn([&, t] {
        ++before;
        if (t % 2 == 0) return l.arrive_and_wait();
        l.count_down();
      }));
    l.wait();
    EXPECT_EQ(before.load(), 8);
    EXPECT_TRUE(l.try_wait());
    EXPECT_TRUE(l.wait_for(0ms));
    join(all);
  });
}

// req: BZ-13
TEST(Latch, below_zero_is_a_usage_error_and_zero_is_open) {
  weft::latch l(2);
  EXPECT_FALSE(l.try_wait());
  EXPECT_FALSE(l.wait_for(1ms));
  EXPECT_THROW(l.count_down(3), weft::usage_error);
  l.count_down(2);
  EXPECT_THROW(l.count_down(), weft::usage_error);
  l.wait();
  EXPECT_TRUE(weft::latch(0).try_wait());
}

// req: BZ-13 BZ-11
TEST(Latch, a_wait_with_a_time_limit_ends_when_it_opens) {
  std::optional<weft::latch> l;
  served_after_waiting([&] { l.emplace(2); }, [&] { EXPECT_TRUE(l->wait_for(1h)); },
                       [&] {
                         l->count_down();
                         l->count_down();
                       });
}

// req: BZ-13 CC-10
TEST(Latch, one_that_is_cancelled_before_it_arrives_has_not_counted_down) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  weft::latch l(1);
  auto task = rt->spawn([&] {
    weft::this_task::ref().cancel();
    EXPECT_THROW(l.arrive_and_wait(), weft::cancelled);
  });
  task.join();
  EXPECT_FALSE(l.try_wait());
  l.arrive_and_wait();
}

// req: BZ-13
TEST(Latch, who_waits_may_destroy_it) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    for (std::size_t i = 0; i < scaled(500); ++i) {
      auto l = std::make_unique<weft::latch>(2);
      auto a = rt->spawn([&l = *l] { l.count_down(); });
      auto b = rt->spawn([&l = *l] { l.count_down(); });
      l->wait();
      l.reset();
      a.join();
      b.join();
    }
  });
}

// ---- barrier ----------------------------------------------------------------------------------------------------------

// req: BZ-13
TEST(Barrier, nobody_is_a_round_ahead_and_the_completion_runs_once_a_round) {
  support::watchdog guard(100s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    constexpr int parties = 5;
    const std::size_t turns = scaled(500);
    base::atomic<std::size_t> arrived{0};
    std::size_t completed = 0;
    weft::barrier b(parties, [&]() noexcept {
      ++completed;
      EXPECT_EQ(arrived.load(), completed * parties);
    });
    const auto body = [&] {
      for (std::size_t i = 1; i <= turns; ++i) {
        ++arrived;
        b.arrive_and_wait();
        ASSERT_GE(completed, i);
      }
    };
    handles all;
    for (int t = 0; t < parties - 1; ++t) all.push_back(rt->spawn(body));
    std::thread outside(body);
    join(all);
    outside.join();
    EXPECT_EQ(completed, turns);
  });
}

// req: BZ-13
TEST(Barrier, one_that_drops_out_is_not_expected_any_more) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::barrier<> b(3);
    handles all;
    for (int t = 0; t < 2; ++t)
      all.push_back(rt->spawn([&] {
        for (int i = 0; i < 10; ++i) b.arrive_and_wait();
      }));
    b.arrive_and_wait();
    b.arrive_and_drop();
    join(all);
    EXPECT_EQ(b.expected(), 2U);
  });
}

// req: BZ-13 CC-10
TEST(Barrier, one_that_is_cancelled_while_it_waits_has_arrived) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::barrier<> b(2);
    named_task leaves(*rt, [&] { b.arrive_and_wait(); });
    leaves.until_parked();
    leaves.cancel();
    EXPECT_TRUE(leaves.join_cancelled());
    b.arrive_and_wait();  // the round is complete
    auto other = rt->spawn([&] { b.arrive_and_wait(); });
    b.arrive_and_wait();  // and the next one needs two again
    other.join();
  });
}

// req: BZ-13 CC-10
TEST(Barrier, one_that_is_cancelled_before_it_arrives_has_not_arrived) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  int rounds_ended = 0;
  weft::barrier b(1, [&]() noexcept { ++rounds_ended; });
  auto task = rt->spawn([&] {
    weft::this_task::ref().cancel();
    EXPECT_THROW(b.arrive_and_wait(), weft::cancelled);
  });
  task.join();
  EXPECT_EQ(rounds_ended, 0);
  b.arrive_and_wait();
  EXPECT_EQ(rounds_ended, 1);
}

// req: BZ-13 CC-10
TEST(Barrier, the_completion_is_shielded_from_cancellation) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  bool completed = false;
  weft::barrier b(1, [&]() noexcept {
    weft::this_task::ref().cancel();
    weft::yield();  // would throw
    completed = true;
  });
  auto task = rt->spawn([&] { b.arrive_and_wait(); });
  task.join();
  EXPECT_TRUE(completed);
}

// req: BZ-13
TEST(Barrier, misuse_is_a_usage_error) {
  EXPECT_THROW(weft::barrier<>(0), weft::usage_error);
  weft::barrier<> b(1);
  b.arrive_and_drop();
  EXPECT_THROW(b.arrive_and_wait(), weft::usage_error);
  const support::watchdog guard(60s);
  EXPECT_THROW(b.arrive_and_wait(), weft::usage_error) << "the first error has left it as it was";
}

}  // namespace
