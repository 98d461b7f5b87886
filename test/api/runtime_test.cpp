// Start, stop, start again; several at once; threads from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
using testing::HasSubstr;

// req: CSP-10
TEST(Runtime, run_returns_what_the_function_returns_and_0_for_nothing) {
  EXPECT_EQ(weft::run({.workers = 1}, [] { return std::string("x"); }), "x");
  static_assert(std::is_same_v<decltype(weft::run([] {})), int>);
  EXPECT_EQ(weft::run({.workers = 1}, [] {}), 0);
  EXPECT_THROW(weft::run({.workers = 1}, [] { throw std::runtime_error("out of run"); }), std::runtime_error);
  EXPECT_EQ(weft::run([] { return 5; }), 5);
}

// req: CSP-10
TEST(Runtime, run_returns_only_when_the_last_detached_task_has_ended) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    base::atomic<int> ended{0};
    weft::run({.workers = workers}, [&] {
      for (int i = 0; i < 20; ++i)
        weft::spawn([&, i] {
          weft::sleep_for(std::chrono::milliseconds(i));
          weft::spawn([&] {  // and what they spawn at their end
            weft::sleep_for(2ms);
            ++ended;
          })
              .detach();
          ++ended;
        }).detach();
    });
    EXPECT_EQ(ended.load(), 40);
  });
}

// req: CSP-10
TEST(Runtime, run_waits_for_detached_tasks_even_when_the_first_one_throws) {
  support::watchdog guard(60s);
  base::atomic<bool> ended{false};
  EXPECT_THROW(weft::run({.workers = 2},
                         [&] {
                           weft::spawn([&] {
                             weft::sleep_for(10ms);
                             ended = true;
                           }).detach();
                           throw 1;
                         }),
               int);
  EXPECT_TRUE(ended.load());
}

// req: CSP-10 W-7
TEST(Runtime, a_thousand_starts_and_stops_in_one_process_leave_nothing_behind) {
  support::watchdog guard(110s);
  const std::size_t cycles = scaled(1'000);
  std::size_t ran = 0;
  const auto cycle = [&](std::size_t i) {
    weft::runtime rt({.workers = 1 + i % 4});
    auto h = rt.spawn([] { return weft::spawn([] { return std::size_t{1}; }).join(); });
    if (i % 3 == 0) {
      h.detach();
      ++ran;
    } else {
      ran += h.join();
    }
  };
  for (std::size_t i = 0; i < 10; ++i) cycle(i);
  ran = 0;
  const std::size_t threads = support::threads();
  const std::size_t descriptors = support::open_descriptors();
  const std::size_t mappings = support::mappings();
  for (std::size_t i = 0; i < cycles; ++i) cycle(i);
  EXPECT_EQ(ran, cycles);
  EXPECT_EQ(support::threads(), threads);
  EXPECT_EQ(support::open_descriptors(), descriptors);
  if (!support::under_asan && !support::under_tsan) {
    EXPECT_LE(support::mappings(), mappings + 16);
  }
}

// req: CSP-10
TEST(Runtime, a_runtime_that_was_never_used_stops) {
  support::watchdog guard(60s);
  for (const std::size_t workers : {1, 2, 4, 8, 70}) weft::runtime rt({.workers = workers});
}

// req: W-7
TEST(Runtime, four_at_once_do_not_mix_their_tasks) {
  support::watchdog guard(60s);
  constexpr std::size_t runtimes = 4;
  const std::size_t n = scaled(5'000);
  std::vector<std::unique_ptr<watched_runtime>> all;
  for (std::size_t i = 0; i < runtimes; ++i) all.push_back(std::make_unique<watched_runtime>(1 + i % 2));
  base::atomic<std::size_t> strangers{0};
  std::vector<weft::join_handle<std::size_t>> handles;
  for (std::size_t r = 0; r < runtimes; ++r)
    handles.push_back((*all[r])->spawn([&, r] {
      std::size_t sum = 0;
      for (std::size_t i = 0; i < n; ++i)
        sum += weft::spawn([&, r] {
                 weft::yield();
                 if (&weft::sched::this_worker()->owner() != &all[r]->core()) ++strangers;
                 return std::size_t{1};
               }).join();
      return sum;
    }));
  for (auto& h : handles) EXPECT_EQ(h.join(), n);
  EXPECT_EQ(strangers.load(), 0u);
  for (auto& r : all) {
    (*r)->shutdown();
    EXPECT_EQ((*r)->statistics().finished, n + 1);
  }
}

// req: W-7
TEST(Runtime, a_task_of_one_joins_a_task_of_another) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime a(workers);
    watched_runtime b(workers);
    const std::size_t n = scaled(5'000);
    auto h = a->spawn([&] {
      std::size_t sum = 0;
      for (std::size_t i = 0; i < n; ++i) {
        auto there = b->spawn([i] {
          if (i % 3 == 0) weft::yield();
          return i;
        });
        if (i % 2 == 0) weft::yield();
        sum += there.join();
        EXPECT_EQ(&weft::sched::this_worker()->owner(), &a.core()) << "back at home";
      }
      return sum;
    });
    EXPECT_EQ(h.join(), n * (n - 1) / 2);
  });
}

// req: W-7
TEST(Runtime, a_task_of_one_unparks_and_cancels_tasks_of_another) {
  support::watchdog guard(60s);
  watched_runtime a(2);
  watched_runtime b(2);
  base::atomic<int> turn{0};
  const int turns = static_cast<int>(scaled(2'000));
  auto in_b = b->spawn([&] {
    while (turn.load() < turns) weft::park_if(turn, turn.load());
    weft::sleep_for(1h);
  });
  a->run([&] {
    for (int i = 1; i <= turns; ++i) {
      turn = i;
      in_b.ref().unpark();
      if (i % 10 == 0) weft::yield();
    }
    in_b.cancel();
    EXPECT_THROW(in_b.join(), weft::task_cancelled);
  });
}

// req: W-7
TEST(Runtime, many_outside_threads_spawn_and_join) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    const std::size_t n = scaled(3'000);
    constexpr std::size_t outside = 4;
    base::atomic<std::size_t> sum{0};
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < outside; ++t)
      threads.emplace_back([&] {
        std::vector<weft::join_handle<std::size_t>> batch;
        for (std::size_t i = 0; i < n; ++i) {
          batch.push_back(rt->spawn([] { return std::size_t{1}; }));
          if (batch.size() < 16) continue;
          for (auto& h : batch) sum += h.join();
          batch.clear();
        }
        for (auto& h : batch) sum += h.join();
      });
    for (auto& t : threads) t.join();
    EXPECT_EQ(sum.load(), outside * n);
    rt->shutdown();
    EXPECT_EQ(rt->statistics().spawned, outside * n);
    EXPECT_EQ(rt->statistics().finished, outside * n);
  });
}

// req: CSP-10 W-8
TEST(Runtime, after_shutdown_began_a_spawn_from_outside_is_refused_and_one_from_inside_is_not) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  base::atomic<bool> go{false};
  base::atomic<bool> child_ran{false};
  rt->spawn([&] {
      until([&] { return go.load(); });
      weft::spawn([&] { child_ran = true; }).join();
    }).detach();
  std::thread stopper([&] { rt->shutdown(); });
  until([&] { return !rt.core().ending().accepts(); });
  try {
    (void)rt->spawn([] {});
    ADD_FAILURE() << "accepted";
  } catch (const weft::runtime_stopped& e) {
    EXPECT_THAT(e.what(), HasSubstr("begun to shut down"));
    EXPECT_THAT(e.what(), HasSubstr("make a new one"));
  }
  EXPECT_FALSE(child_ran.load());
  go = true;
  stopper.join();
  EXPECT_TRUE(child_ran.load());
  EXPECT_THROW((void)rt->spawn([] {}), weft::runtime_stopped);
}

// req: CSP-10 W-8
TEST(Runtime, spawns_that_race_with_shutdown_are_run_or_refused) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    for (std::size_t round = 0; round < scaled(100); ++round) {
      base::atomic<std::size_t> ran{0};
      std::size_t accepted = 0;
      watched_runtime rt(workers);
      base::atomic<bool> spawning{false};
      std::thread spawner([&] {
        for (;; ++accepted) {
          try {
            rt->spawn([&] { ++ran; }).detach();
          } catch (const weft::runtime_stopped&) {
            return;
          }
          spawning = true;
        }
      });
      until([&] { return spawning.load(); });
      rt->shutdown();
      const std::size_t at_shutdown = ran.load();
      spawner.join();
      ASSERT_EQ(ran.load(), at_shutdown) << "nothing ran after shutdown returned";
      ASSERT_EQ(ran.load(), accepted);
    }
  });
}

// req: W-8
TEST(Runtime, shutdown_may_be_called_again_and_by_several) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  base::atomic<bool> ended{false};
  rt->spawn([&] {
      weft::sleep_for(10ms);
      ended = true;
    }).detach();
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      rt->shutdown();
      EXPECT_TRUE(ended.load());
    });
  for (auto& t : threads) t.join();
  rt->shutdown();
  rt->shutdown();
}

// req: W-8
TEST(Runtime, shutdown_by_one_of_its_own_tasks_is_refused) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  rt->run([&] {
    try {
      rt->shutdown();
      ADD_FAILURE() << "returned";
    } catch (const weft::usage_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("from one of its own tasks"));
    }
  });
  EXPECT_EQ(rt->run([] { return 1; }), 1) << "and the runtime goes on";
}

// req: W-7
TEST(Runtime, a_runtime_may_be_made_and_used_within_a_task_of_another) {
  support::watchdog guard(60s);
  watched_runtime outer(2);
  EXPECT_EQ(outer->run([] {
    int sum = 0;
    for (int i = 0; i < 20; ++i) {
      weft::runtime inner({.workers = 2});
      sum += inner.run([] { return weft::spawn([] { return 1; }).join(); });
    }
    return sum;
  }),
            20);
}

// The waker is not one of the runtime's threads, and its wake is the last thing that keeps the runtime alive. The waker
// must not use the runtime any more once the task that it woke lets the runtime end. This shows mostly under ASan and
// TSan.
TEST(Runtime, a_wake_from_outside_may_be_the_last_thing_a_runtime_sees) {
  support::watchdog guard(110s);
  for (std::size_t i = 0; i < scaled(1'500); ++i) {
    auto rt = std::make_unique<weft::runtime>(weft::runtime_options{.workers = 1 + i % 2});
    base::atomic<bool> closed{true};
    auto h = rt->spawn([&] {
      while (closed.load()) weft::park_if(closed, true);
      weft::sleep_for(1h);
    });
    std::thread waker([ref = h.ref(), &closed] {
      closed = false;
      ref.unpark();
      ref.cancel();
    });
    EXPECT_THROW(h.join(), weft::task_cancelled);
    rt.reset();
    waker.join();
  }
}

// req: W-7 CSP-10
TEST(Runtime, a_runtime_may_go_as_soon_as_its_last_task_has_joined_one_of_another) {
  support::watchdog guard(110s);
  watched_runtime other(2);
  for (std::size_t i = 0; i < scaled(1'500); ++i) {
    weft::runtime rt({.workers = 1 + i % 2});
    auto there = other->spawn([] {
      weft::yield();
      return 1;
    });
    EXPECT_EQ(rt.run([&] { return there.join(); }), 1);
  }
}

}  // namespace
