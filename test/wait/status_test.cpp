// What is told of a task from outside: its state, what it waits for, where.
#include <weft/task_status.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "support/usual.hpp"

namespace {

using namespace support::usual;
using weft::task_state;

bool is_here(const weft::task_status& s) {
  return std::string_view(s.where.file_name()).find("status_test.cpp") != std::string_view::npos;
}

TEST(Status, tells_what_a_task_waits_for_and_where) {
  at_worker_counts_in_a_task([] {
    weft::event never;
    unsigned line = 0;
    auto task = weft::spawn({.name = "waiter"}, [&] {
      line = __LINE__ + 1;
      never.wait();
    });
    const weft::task_ref ref = task.ref();
    until([&] { return ref.status().state == task_state::waiting; });
    const weft::task_status s = ref.status();
    EXPECT_EQ(s.id, ref.id());
    EXPECT_EQ(s.name, "waiter");
    EXPECT_EQ(s.waits_for, "event");
    EXPECT_TRUE(is_here(s));
    EXPECT_EQ(s.where.line(), line);
    const std::string text = to_string(s);
    EXPECT_NE(text.find("\"waiter\" waits for event at "), std::string::npos) << text;
    EXPECT_NE(text.find("status_test.cpp:" + std::to_string(line)), std::string::npos) << text;
    never.set();
    task.join();
    EXPECT_EQ(ref.status().state, task_state::ended);
  });
}

// Seen from outside, because the task keeps the only worker all the time.
TEST(Status, tells_of_a_task_in_a_blocking_call_and_after_it) {
  const support::watchdog guard(110s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    support::latch inside, leave, outside, end;
    unsigned line = 0;
    auto task = rt->spawn([&] {
      line = __LINE__ + 1;
      weft::blocking([&] {
        inside.count_down();
        leave.hold();
      });
      outside.count_down();
      end.hold();
    });
    inside.wait();
    weft::task_status s = task.ref().status();
    EXPECT_EQ(s.state, task_state::blocking);
    EXPECT_TRUE(is_here(s));
    EXPECT_EQ(s.where.line(), line);
    leave.count_down();
    outside.wait();
    s = task.ref().status();
    EXPECT_EQ(s.state, task_state::running) << to_string(s);
    end.count_down();
    task.join();
  });
}

// req: BZ-14
TEST(Status, a_runtime_that_shuts_down_up_to_a_limit_names_the_tasks_that_are_left) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    EXPECT_TRUE(weft::live_tasks(*rt).empty());
    weft::event release;
    base::atomic<unsigned> line{0};
    auto waits = rt->spawn({.name = "waiter"}, [&] {
      line.store(__LINE__ + 1, base::relaxed);
      release.wait();
    });
    rt->spawn([] {}).join();
    const weft::task_ref ref = waits.ref();
    until([&] { return ref.status().state == task_state::waiting; });
    EXPECT_FALSE(rt->shutdown_for(1ms));
    EXPECT_THROW(rt->spawn([] {}).detach(), weft::runtime_stopped);
    const std::vector<weft::task_status> left = weft::live_tasks(*rt);
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].id, ref.id());
    EXPECT_EQ(left[0].name, "waiter");
    EXPECT_EQ(left[0].waits_for, "event");
    EXPECT_EQ(left[0].where.line(), line.load(base::relaxed));
    release.set();
    EXPECT_TRUE(rt->shutdown_for(1h));
    EXPECT_TRUE(weft::live_tasks(*rt).empty());
    waits.join();
  });
}

// The two waits have different kinds and lines, and the one who looks must never see a mixture.
TEST(Status, a_status_belongs_to_one_wait) {
  at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    weft::semaphore there(0), back(0);
    base::atomic<bool> stop{false};
    base::atomic<unsigned> line_of_sleep{0}, line_of_acquire{0};
    auto task = rt->spawn([&] {
      while (!stop.load(base::relaxed)) {
        line_of_sleep.store(__LINE__ + 1, base::relaxed);
        weft::sleep_for(1us);
        back.release();
        line_of_acquire.store(__LINE__ + 1, base::relaxed);
        there.acquire();
      }
    });
    auto partner = rt->spawn([&] {
      for (;;) {
        back.acquire();
        there.release();
      }
    });
    std::size_t seen = 0;
    const weft::task_ref ref = task.ref();
    for (std::size_t i = 0; i < scaled(20'000) || seen < 100; ++i) {
      const weft::task_status s = ref.status();
      if (s.state != task_state::waiting) continue;
      ++seen;
      if (s.waits_for == "semaphore")
        EXPECT_EQ(s.where.line(), line_of_acquire.load(base::relaxed));
      else
        EXPECT_EQ(s.where.line(), line_of_sleep.load(base::relaxed)) << s.waits_for;
    }
    stop.store(true, base::relaxed);
    task.join();
    partner.cancel();
    EXPECT_THROW(partner.join(), weft::task_cancelled);
  });
}

// Records are used again.
TEST(Status, a_task_that_has_not_waited_does_not_show_the_wait_of_another) {
  at_worker_counts_in_a_task([] {
    for (int i = 0; i < 100; ++i) {
      weft::spawn([] { weft::sleep_for(1us); }).join();
      weft::spawn([] { EXPECT_EQ(weft::this_task::ref().status().waits_for, ""); }).join();
    }
  });
}

}  // namespace
