// A primitive of one's own: the semaphore of semaphore.hpp, through fiber_wait, from tasks and from threads.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"
#include "wait/semaphore.hpp"

namespace {

using namespace support::usual;
using weft_test::semaphore;
namespace task = weft::task;
namespace waits = weft::waits;

// req: LS-W1 LS-W2
TEST(Waitable, tasks_take_exactly_what_tasks_post) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    const std::size_t each = scaled(5'000);
    constexpr std::size_t sides = 6;
    watched_runtime rt(workers);
    semaphore s(3);
    base::atomic<std::size_t> taken{0};
    std::vector<weft::join_handle<void>> all;
    for (std::size_t k = 0; k < sides; ++k) {
      all.push_back(rt->spawn([&] {
        for (std::size_t i = 0; i < each; ++i) taken += s.take() == waits::outcome::completed ? 1 : 0;
      }));
      all.push_back(rt->spawn([&] {
        for (std::size_t i = 0; i < each; ++i) {
          s.post();
          if (i % 5 == 0) weft::yield();
        }
      }));
    }
    for (auto& h : all) h.join();
    EXPECT_EQ(taken.load(), sides * each);
    EXPECT_EQ(s.count(), 3u);
    EXPECT_EQ(s.waiters(), 0u);
  });
}

// req: LS-W1 W-7
TEST(Waitable, an_outside_thread_waits_on_it_as_a_task_does) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    const std::size_t n = scaled(3'000);
    watched_runtime rt(workers);
    semaphore to_thread;
    semaphore to_task;
    auto echo = rt->spawn([&] {
      for (std::size_t i = 0; i < n; ++i) {
        if (to_task.take() != waits::outcome::completed) return i;
        to_thread.post();
      }
      return n;
    });
    for (std::size_t i = 0; i < n; ++i) {
      to_task.post();
      ASSERT_EQ(to_thread.take(), waits::outcome::completed);
    }
    EXPECT_EQ(echo.join(), n);
    EXPECT_EQ(to_thread.count() + to_task.count(), 0u);
  });
}

// req: LS-W1
TEST(Waitable, tasks_and_threads_wait_in_one_line_and_are_served_in_its_order) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  semaphore s;
  std::vector<int> order;  // one waiter runs at a time: each is posted after the one before it has written
  base::atomic<std::size_t> served{0};
  std::vector<std::thread> threads;
  std::vector<weft::join_handle<void>> tasks;
  for (int k = 0; k < 8; ++k) {
    const auto body = [&, k] {
      EXPECT_EQ(s.take(), waits::outcome::completed);
      order.push_back(k);
      ++served;
    };
    if (k % 2 == 0)
      threads.emplace_back(body);
    else
      tasks.push_back(rt->spawn(body));
    until([&] { return s.waiters() == static_cast<std::size_t>(k) + 1; });
  }
  for (std::size_t k = 0; k < 8; ++k) {
    s.post();
    until([&] { return served.load() == k + 1; });
  }
  for (auto& t : threads) t.join();
  for (auto& t : tasks) t.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
}

// req: LS-W1
TEST(Waitable, unpublish_may_come_any_number_of_times_and_after_a_removal) {
  semaphore s;
  waits::node a;
  waits::node b;
  waits::node c;
  s.own_lock()->acquire();
  s.unpublish(a);  // was never there
  for (waits::node* n : {&a, &b, &c}) ASSERT_TRUE(s.publish(*n));
  s.own_lock()->release();
  EXPECT_EQ(s.waiters(), 3u);
  s.own_lock()->acquire();
  s.unpublish(b);
  s.unpublish(b);
  s.own_lock()->release();
  EXPECT_EQ(s.waiters(), 2u);
  s.own_lock()->acquire();
  s.unpublish(a);
  s.unpublish(b);
  s.unpublish(a);
  s.own_lock()->release();
  EXPECT_EQ(s.waiters(), 1u);
  s.own_lock()->acquire();
  s.unpublish(c);
  s.unpublish(c);
  ASSERT_TRUE(s.publish(b));
  s.unpublish(c);
  s.own_lock()->release();
  EXPECT_EQ(s.waiters(), 1u);
}

// Entries that a wake must skip: waiters that were cancelled while a post looks at the list. Neither a token nor a
// waiter is lost.
TEST(Waitable, a_cancelled_waiter_does_not_swallow_a_post_meant_for_another) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    const std::size_t n = scaled(2'000);
    watched_runtime rt(workers);
    semaphore s;
    std::size_t posted = 0;
    base::atomic<std::size_t> taken{0};
    base::atomic<std::size_t> cancelled{0};
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<weft::join_handle<void>> waiters;
      for (int k = 0; k < 3; ++k)
        waiters.push_back(rt->spawn([&] {
          // The node is scribbled over as soon as the wait is over: whoever still looked at it would stumble.
          auto mine = std::make_unique<waits::node>();
          const waits::outcome o = s.take(*mine);
          EXPECT_FALSE(mine->linked);
          std::memset(static_cast<void*>(mine.get()), 0xa5, sizeof(waits::node));
          ++(o == waits::outcome::completed ? taken : cancelled);
        }));
      auto canceller = rt->spawn([&, ref = waiters[i % 3].ref()] { ref.cancel(); });
      until([&] {
        if (taken.load() + cancelled.load() == 3 * (i + 1)) return true;
        if (s.waiters() != 0) {
          s.post();
          ++posted;
        }
        return false;
      });
      canceller.join();
      for (auto& h : waiters) h.join();
    }
    EXPECT_EQ(posted, taken.load() + s.count());
    EXPECT_EQ(s.waiters(), 0u);
  });
}

// A pulse has no state that try_complete could see: the claim is all there is.
class pulse final : public waits::waitable {
 public:
  std::size_t fire(task::wake_reason why) noexcept {
    std::vector<task::parkable*> woken;
    {
      base::lock_guard hold(lock_);
      while (waits::node* n = waiters_) {
        waits::unlink(waiters_, *n);
        if (waits::claim(*n, why)) woken.push_back(n->who);
      }
    }
    for (task::parkable* w : woken) waits::resume(*w);
    return woken.size();
  }
  [[nodiscard]] bool has_waiter() {
    base::lock_guard hold(lock_);
    return waiters_ != nullptr;
  }
  bool try_complete() noexcept override { return false; }
  bool publish(waits::node& n) noexcept override {
    waits::link_last(waiters_, n);
    return true;
  }
  void unpublish(waits::node& n) noexcept override { waits::unlink(waiters_, n); }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &lock_; }
  [[nodiscard]] waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"pulse"};
    return {&kind, this};
  }

 private:
  base::lock lock_;
  waits::node* waiters_ = nullptr;
};

// req: LS-W1
TEST(Waitable, a_wake_with_data_ends_the_wait_of_a_task) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  pulse p;
  auto h = rt->spawn([&] {
    waits::node n;
    return waits::fiber_wait(p, n, {});
  });
  until([&] { return p.has_waiter(); });
  EXPECT_EQ(p.fire(task::wake_reason::data), 1u);
  EXPECT_EQ(h.join(), waits::outcome::completed);
}

// req: LS-W1
TEST(Waitable, a_wake_with_data_ends_the_wait_of_a_thread) {
  support::watchdog guard(20s);
  pulse p;
  base::atomic<bool> over{false};
  std::thread waiter([&] {
    waits::node n;
    EXPECT_EQ(waits::fiber_wait(p, n, {}), waits::outcome::completed);
    over = true;
  });
  until([&] { return p.has_waiter(); });
  EXPECT_EQ(p.fire(task::wake_reason::data), 1u);
  until([&] { return over.load() || p.has_waiter(); });
  EXPECT_TRUE(over.load()) << "the thread went back to sleep after its wake";
  if (!over.load()) p.fire(task::wake_reason::data);
  waiter.join();
}

// A wait that a wake did not complete is taken back, and may wait for that without any lock, before it looks again or ends.
class held_by_the_kernel final : public waits::waitable {
 public:
  bool try_complete() noexcept override { return false; }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &lock_; }
  bool publish(waits::node& n) noexcept override {
    published = true;
    waits::link_last(waiters_, n);
    return true;
  }
  void unpublish(waits::node& n) noexcept override { waits::unlink(waiters_, n); }
  void retract() noexcept override {
    EXPECT_EQ(waiters_, nullptr) << "first nobody can find the wait any more";
    const weft::this_task::shield shielded;
    released.wait();
    retracted = true;
  }
  [[nodiscard]] waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"buffer"};
    return {&kind, this};
  }

  base::atomic<bool> published{false};
  weft::event released;
  bool retracted = false;

 private:
  base::lock lock_;
  waits::node* waiters_ = nullptr;
};

// req: LS-W1
TEST(Waitable, a_cancelled_wait_does_not_end_before_it_is_retracted) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  held_by_the_kernel buffer;
  base::atomic<bool> over{false};
  auto h = rt->spawn([&] {
    waits::node n;
    EXPECT_EQ(waits::fiber_wait(buffer, n, {}), waits::outcome::cancelled);
    EXPECT_TRUE(buffer.retracted);
    over = true;
  });
  until([&] { return buffer.published.load(); });
  h.ref().cancel();
  rt->run([] {
    for (int i = 0; i < 100; ++i) weft::yield();
  });
  EXPECT_FALSE(over.load());
  buffer.released.set();
  h.join();
  EXPECT_TRUE(over.load());
}

// Counts what a select asks of it.
class counted_arm final : public waits::waitable {
 public:
  explicit counted_arm(bool completes_when_published) : completes_(completes_when_published) {}
  bool try_complete() noexcept override { return false; }
  [[nodiscard]] base::lock* own_lock() noexcept override { return &lock_; }
  bool publish(waits::node&) noexcept override { return !completes_; }
  void unpublish(waits::node&) noexcept override { ++unpublished; }
  void retract() noexcept override { ++retracted; }
  void settle() override { ++settled; }
  [[nodiscard]] waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"counted arm"};
    return {&kind, this};
  }
  int unpublished = 0, retracted = 0, settled = 0;

 private:
  const bool completes_;
  base::lock lock_;
};

// req: LS-W1
TEST(Waitable, a_select_retracts_the_arms_that_it_published_but_not_the_one_that_completed) {
  watched_runtime rt(1);
  rt->run([] {
    counted_arm waiting(false);
    counted_arm ready(true);
    waits::node a, b;
    const waits::arm arms[] = {{&waiting, &a}, {&ready, &b}};
    EXPECT_EQ(waits::select_in_order(arms, std::source_location::current()), 1u);
    EXPECT_EQ(waiting.retracted, 1);
    EXPECT_GE(waiting.unpublished, 1);
    EXPECT_EQ(ready.retracted, 0);
    EXPECT_EQ(ready.settled, 1);
  });
}

}  // namespace
