// A waitable written from src/wait/README.md alone: the proof that the text suffices.
#include <source_location>
#include <thread>
#include <vector>

#include "base/lock.hpp"
#include "support/usual.hpp"
#include "wait/fiber_wait.hpp"
#include "wait/wake.hpp"

namespace {

using namespace support::usual;
namespace task = weft::task;
namespace waits = weft::waits;

// Whoever comes waits until somebody lets him through, first come first served. Passages that nobody waits for are kept.
// While somebody waits no passage is kept: only let_through() adds one, under the lock, and it serves the waiters first.
class turnstile {
 public:
  // Throws weft::cancelled if the task is cancelled first; then it has taken no passage.
  void pass(std::source_location where = std::source_location::current()) {
    passage op(*this);
    waits::node n;
    if (waits::fiber_wait(op, n, {.where = where}) == waits::outcome::cancelled) waits::throw_cancelled();
  }

  // Returns how many were waiting and were woken.
  std::size_t let_through(std::size_t count) {
    waits::node* woken = nullptr;  // a claimed node is ours until its waiter is resumed
    std::size_t claimed = 0;
    lock_.acquire();
    while (claimed < count && waiters_ != nullptr) {
      waits::node& n = *waiters_;
      waits::unlink(waiters_, n);
      if (!waits::claim(n, task::wake_reason::data)) continue;  // it has left: the next one
      waits::link_last(woken, n);
      ++claimed;
    }
    kept_ += count - claimed;
    lock_.release();
    while (waits::node* n = woken) {
      waits::unlink(woken, *n);
      waits::resume(*n->who);
    }
    return claimed;
  }
  std::size_t waiting() {
    lock_.acquire();
    std::size_t count = 0;
    for (const waits::node* n = waiters_; n != nullptr; n = n->next) ++count;
    lock_.release();
    return count;
  }
  std::size_t kept() {
    lock_.acquire();
    const std::size_t count = kept_;
    lock_.release();
    return count;
  }

 private:
  struct passage final : waits::waitable {
    static constexpr waits::wait_kind kind{"turnstile"};
    turnstile& core_;
    explicit passage(turnstile& core) noexcept : core_(core) {}
    base::lock* own_lock() noexcept override { return &core_.lock_; }
    bool try_complete() noexcept override { return false; }
    bool try_locked() noexcept override { return core_.kept_ != 0 && core_.kept_-- != 0; }
    bool publish(waits::node& n) noexcept override {
      waits::link_last(core_.waiters_, n);
      return true;
    }
    void unpublish(waits::node& n) noexcept override { waits::unlink(core_.waiters_, n); }
    waits::subject what() const noexcept override { return {&kind, &core_}; }
  };

  base::lock lock_;
  std::size_t kept_ = 0;
  waits::node* waiters_ = nullptr;
};

// req: LS-W1
TEST(Turnstile, lets_tasks_and_threads_through_in_the_order_in_which_they_came) {
  at_worker_counts_in_a_task("order of passage", [] {
    turnstile t;
    std::vector<int> order;  // Written by one waiter at a time.
    const auto waiter = [&](int i) {
      t.pass();
      order.push_back(i);
    };
    std::vector<weft::join_handle<void>> tasks;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 3; ++i) {
      tasks.push_back(weft::spawn([&waiter, i] { waiter(static_cast<int>(2 * i)); }));
      until([&] { return t.waiting() == 2 * i + 1; });
      threads.emplace_back(waiter, static_cast<int>(2 * i + 1));
      until([&] { return t.waiting() == 2 * i + 2; });
    }
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(t.let_through(1), 1u);
      tasks[i].join();
      EXPECT_EQ(t.let_through(1), 1u);
      threads[i].join();
    }
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  });
}

// req: LS-W1
TEST(Turnstile, keeps_passages_for_those_who_come_later) {
  at_worker_counts([](std::size_t workers) {
    turnstile t;
    watched_runtime rt(workers);
    EXPECT_EQ(t.let_through(2), 0u);
    t.pass();
    rt->run([&] { t.pass(); });
    EXPECT_EQ(t.kept(), 0u);
  });
}

// req: LS-W1
TEST(Turnstile, a_cancelled_waiter_does_not_take_a_passage_with_it) {
  at_worker_counts_in_a_task("a cancelled waiter", [] {
    turnstile t;
    auto first = weft::spawn([&] { EXPECT_THROW(t.pass(), weft::cancelled); });
    until([&] { return t.waiting() == 1; });
    auto second = weft::spawn([&] { t.pass(); });
    until([&] { return t.waiting() == 2; });
    first.cancel();  // Its node may still stand at the head of the line when the passages come.
    EXPECT_EQ(t.let_through(2), 1u);
    first.join();
    second.join();
    EXPECT_EQ(t.kept(), 1u);
  });
}

// req: LS-W1
TEST(Turnstile, tasks_and_threads_conserve_passages) {
  const support::watchdog guard(110s, "conservation of passages");
  at_worker_counts([](std::size_t workers) {
    turnstile t;
    base::atomic<std::size_t> passed{0};
    base::atomic<bool> done{false};
    std::size_t let = 0;
    const auto pass = [&](int times) {
      for (; times > 0; --times, passed.fetch_add(1, std::memory_order_relaxed)) t.pass();
    };
    watched_runtime rt(workers);
    std::thread feeder([&] {  // It feeds only when somebody waits, so that nearly everybody has to.
      for (; !done.load(std::memory_order_acquire); std::this_thread::yield())
        if (t.waiting() != 0) {
          let += 2;
          t.let_through(2);
        }
    });
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(pass, 100);
    rt->run([&] {
      std::vector<weft::join_handle<void>> tasks;
      for (int i = 0; i < 16; ++i) tasks.push_back(weft::spawn([&] { pass(100); }));
      for (std::size_t i = 0; i < 16; i += 4) {
        pass(10);
        tasks[i].cancel();  // in the middle of the traffic
      }
      for (auto& each : tasks) try {
          each.join();
        } catch (const weft::task_cancelled&) {  // it had not passed a hundred times yet
        }
    });
    for (auto& each : threads) each.join();
    done.store(true, std::memory_order_release);
    feeder.join();
    EXPECT_EQ(passed.load(std::memory_order_relaxed) + t.kept(), let);
  });
}

}  // namespace
