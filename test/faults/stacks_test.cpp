// Fewer stacks than tasks: a task that has none waits, and no task fails.
#include <gtest/gtest.h>

#include <new>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;

// req: W-9
TEST(Stacks, with_few_stacks_all_tasks_run_in_the_end_and_none_fails) {
  for (const std::size_t stacks : {1, 2, 5, 40})
    at_worker_counts([&](std::size_t workers) {
      SCOPED_TRACE(testing::Message() << stacks << " stacks");
      support::watchdog guard(60s);
      const std::size_t n = scaled(400);
      watched_runtime rt(weft::runtime_options{.workers = workers, .max_stacks = stacks});
      std::size_t failed = 0;
      std::size_t ran = 0;
      base::atomic<std::size_t> most{0};
      base::atomic<std::size_t> now{0};
      std::vector<weft::join_handle<std::size_t>> all;
      for (std::size_t i = 0; i < n; ++i)
        all.push_back(rt->spawn([&, i] {
          const std::size_t here = ++now;
          for (std::size_t seen = most.load(); seen < here && !most.compare_exchange_weak(seen, here);) {}
          if (i % 3 == 0) weft::yield();
          if (i % 50 == 0) weft::sleep_for(100us);
          --now;
          return std::size_t{1};
        }));
      for (auto& h : all) try {
          ran += h.join();
        } catch (const std::bad_alloc&) {
          ++failed;
        }
      EXPECT_EQ(failed, 0u) << "stacks were free, or about to be";
      EXPECT_EQ(ran + failed, n);
      EXPECT_LE(most.load(), stacks);
    });
}

// req: W-9
TEST(Stacks, the_limit_holds_at_every_moment) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    constexpr std::size_t stacks = 7;
    watched_runtime rt(weft::runtime_options{.workers = workers, .max_stacks = stacks});
    base::atomic<bool> stop{false};
    std::size_t most = 0;
    std::thread looks([&] {
      while (!stop.load()) most = std::max(most, rt.core().stacks().in_use());
    });
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < 200; ++i) all.push_back(rt->spawn([] { weft::sleep_for(50us); }));
    for (auto& h : all) h.wait();
    stop = true;
    looks.join();
    // The pool counts before it looks, so a try that fails shows for a moment.
    EXPECT_LE(most, stacks + 64 * workers);
    for (auto& h : all) try {
        h.join();
      } catch (const std::bad_alloc&) {}
  });
}

// The only worker never comes to rest, so nobody would look for tasks without a stack if that were left to idle workers.
// req: W-9
TEST(Stacks, a_task_that_waits_for_a_stack_gets_one_while_the_others_keep_their_worker_busy) {
  support::watchdog guard(30s, "a task that waits for a stack");
  watched_runtime rt(weft::runtime_options{.workers = 1, .max_stacks = 2});
  rt->run([] {
    base::atomic<bool> started{false};
    base::atomic<bool> ended{false};
    base::atomic<bool> last_ran{false};
    auto second = weft::spawn([&] {
      started = true;
      weft::sleep_for(5ms);
      ended = true;
    });
    while (!started.load()) weft::yield();
    auto third = weft::spawn([&] { last_ran = true; });  // no stack: two tasks have both
    while (!ended.load()) weft::yield();
    while (!last_ran.load()) weft::yield();  // now there is one
    second.join();
    third.join();
  });
}

// req: W-9
TEST(Stacks, tasks_that_wait_for_a_stack_are_run_before_the_runtime_goes) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    base::atomic<std::size_t> ran{0};
    const std::size_t n = scaled(200);
    std::size_t failed = 0;
    {
      weft::runtime rt({.workers = workers,
                        .max_stacks = 2,
                        .on_unhandled_exception = [&](std::string_view, std::exception_ptr) { ++failed; }});
      rt.run([&] {
        for (std::size_t i = 0; i < n; ++i)
          weft::spawn([&] {
            weft::sleep_for(10us);
            ++ran;
          }).detach();
      });
    }
    EXPECT_EQ(ran.load(), n);
    EXPECT_EQ(failed, 0u);
  });
}

// req: W-9
TEST(Stacks, a_task_cancelled_while_it_waits_for_a_stack_ends_when_it_gets_one) {
  support::watchdog guard(30s);
  watched_runtime rt(weft::runtime_options{.workers = 1, .max_stacks = 1});
  base::atomic<bool> go{false};
  base::atomic<bool> started{false};
  auto holder = rt->spawn([&] {
    started = true;
    while (!go.load()) weft::sleep_for(1ms);
  });
  until([&] { return started.load(); });
  auto waiting = rt->spawn([] { weft::sleep_for(1h); });
  waiting.cancel();
  EXPECT_FALSE(waiting.is_finished());
  go = true;
  holder.join();
  EXPECT_THROW(waiting.join(), weft::task_cancelled);
}

}  // namespace
