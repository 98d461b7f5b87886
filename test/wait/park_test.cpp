// The park as a whole: a wake at every moment of it, who may run when, and that nobody runs twice.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"
#include "wait/semaphore.hpp"

namespace {

using namespace support::usual;
using weft::task::phase;
using weft::task::state_word;
using weft_test::semaphore;
namespace task = weft::task;
namespace waits = weft::waits;

void spin(std::size_t n) {
  for (; n > 0; --n) base::cpu_relax();
}

// One waits, one wakes, round by round; the waker comes `offset(round)` after the waiter says that it is about to wait.
class rounds_of_waking {
 public:
  explicit rounds_of_waking(std::size_t n) : n_(n) {}
  template <class Wait>
  void wait_with(Wait&& wait) {
    for (std::size_t i = 1; i <= n_; ++i) {
      about_to_wait_.store(i, base::release);
      spin(i * 7 % 61);
      wait(i);
      ++woken_;
    }
  }
  template <class Wake>
  void wake_with(Wake&& wake) {
    for (std::size_t i = 1; i <= n_; ++i) {
      until([&] { return about_to_wait_.load(base::acquire) >= i; });
      spin(i * 13 % 401);
      wake(i);
    }
  }
  [[nodiscard]] std::size_t woken() const { return woken_; }

 private:
  const std::size_t n_;
  base::atomic<std::size_t> about_to_wait_{0};
  std::size_t woken_ = 0;
};

// req: LS-P1 CSP-6
TEST(Park, a_wake_under_the_lock_at_any_moment_of_the_park_is_never_lost) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s, "wakes by a semaphore");
    const std::size_t n = scaled(10'000);
    watched_runtime rt(workers);
    semaphore s;
    rounds_of_waking r(n);
    auto waiter = rt->spawn([&] { r.wait_with([&](std::size_t) { ASSERT_EQ(s.take(), waits::outcome::completed); }); });
    r.wake_with([&](std::size_t) { s.post(); });
    waiter.join();
    EXPECT_EQ(r.woken(), n);
    EXPECT_EQ(s.count(), 0u);
  });
}

// unpark meets PARKING, which a waker under the object's lock never does.
// req: LS-P1 LS-P2 CC-5
TEST(Park, an_unpark_at_any_moment_of_the_park_is_never_lost) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s, "wakes by unpark");
    const std::size_t n = scaled(20'000);
    watched_runtime rt(workers);
    base::atomic<std::size_t> said{0};
    rounds_of_waking r(n);
    auto waiter = rt->spawn([&] {
      r.wait_with([&](std::size_t i) {
        while (said.load() < i) weft::park_if(said, i - 1);
      });
    });
    const weft::task_ref who = waiter.ref();
    r.wake_with([&](std::size_t i) {
      said.store(i);
      who.unpark();
    });
    waiter.join();
    EXPECT_EQ(r.woken(), n);
  });
}

// The same from a task on another worker, which wakes through its own queues.
// req: LS-P1 CC-5
TEST(Park, an_unpark_by_another_task_at_any_moment_of_the_park_is_never_lost) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s, "wakes by unpark from a task");
    const std::size_t n = scaled(10'000);
    watched_runtime rt(workers);
    base::atomic<std::size_t> said{0};
    rounds_of_waking r(n);
    auto waiter = rt->spawn([&] {
      r.wait_with([&](std::size_t i) {
        while (said.load() < i) weft::park_if(said, i - 1);
      });
    });
    auto waker = rt->spawn([&, who = waiter.ref()] {
      r.wake_with([&](std::size_t i) {
        said.store(i);
        who.unpark();
      });
    });
    waker.join();
    waiter.join();
    EXPECT_EQ(r.woken(), n);
  });
}

// req: LS-P1 LS-P3
TEST(Park, a_cancellation_at_any_moment_of_the_park_is_never_lost) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s, "wakes by cancel");
    const std::size_t n = scaled(4'000);
    watched_runtime rt(workers);
    semaphore never;
    std::size_t cancelled = 0;
    for (std::size_t i = 0; i < n; ++i) {
      base::atomic<bool> started{false};
      auto h = rt->spawn([&] {
        started.store(true, base::release);
        spin(i * 7 % 61);
        if (never.take() == waits::outcome::cancelled) throw weft::cancelled();
      });
      until([&] { return started.load(base::acquire); });
      spin(i * 13 % 401);
      h.cancel();
      try {
        h.join();
      } catch (const weft::task_cancelled&) {
        ++cancelled;
      }
    }
    EXPECT_EQ(cancelled, n);
    EXPECT_EQ(never.waiters(), 0u);
  });
}

// Says what it saw of the parking task at every call it gets.
class witness final : public waits::waitable {
 public:
  struct sight {
    const char* call;
    phase saw;
    bool on_the_waiters_stack;
  };
  explicit witness(task::record& waiter) : waiter_(waiter) { sights_.reserve(64); }

  bool try_complete() noexcept override {
    note("try_complete");
    return completed_.load();
  }
  bool publish(waits::node& n) noexcept override {
    note("publish");
    node_ = &n;
    return true;
  }
  void unpublish(waits::node&) noexcept override {
    note("unpublish");
    node_ = nullptr;
  }
  void lock() noexcept {
    lock_.acquire();
    note("lock");
  }
  void unlock() noexcept {
    note("unlock");
    lock_.release();
  }
  [[nodiscard]] base::lock* own_lock() noexcept override { return nullptr; }  // of no select
  [[nodiscard]] waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"witness"};
    return {&kind, this};
  }

  // The entry stays where it is, so that everybody who comes later finds it too. True: this one won the claim.
  bool complete() {
    base::lock_guard hold(lock_);
    completed_ = true;
    if (node_ == nullptr || !waits::claim(*node_, task::wake_reason::data)) return false;
    waits::resume(*node_->who);
    return true;
  }
  [[nodiscard]] bool is_published() {
    base::lock_guard hold(lock_);
    return node_ != nullptr;
  }
  [[nodiscard]] const std::vector<sight>& sights() const { return sights_; }

 private:
  void note(const char* call) {
    const auto* here = static_cast<const std::byte*>(__builtin_frame_address(0));
    const weft::context::stack* s = weft::task::as_fiber(waiter_).stack;
    sights_.push_back(
        {call, state_word::phase_of(waiter_.word.load()), s != nullptr && here >= s->base && here < s->base + s->size});
  }
  task::record& waiter_;
  base::lock lock_;
  waits::node* node_ = nullptr;
  base::atomic<bool> completed_{false};
  std::vector<sight> sights_;
};

// The lock of the object is held across the switch, and another stack releases it when the task is PARKED. From the
// commit until the resume the task's own stack executes nothing.
// req: LS-F5 LS-P1 CSP-7
TEST(Park, after_the_commit_the_next_stack_goes_on_and_the_parked_one_stands_still) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  base::atomic<witness*> shown{nullptr};
  auto waiter = rt->spawn([&] {
    witness w(*waits::current_task());
    shown = &w;
    waits::node n;
    EXPECT_EQ(waits::fiber_wait(w, n, {}), waits::outcome::completed);
    const std::vector<witness::sight> seen = w.sights();
    ASSERT_EQ(seen.size(), 4u);
    EXPECT_STREQ(seen[0].call, "try_complete");
    EXPECT_EQ(seen[0].saw, phase::active);
    EXPECT_STREQ(seen[1].call, "lock");
    EXPECT_STREQ(seen[2].call, "publish");
    EXPECT_EQ(seen[2].saw, phase::parking) << "discoverable only once it is PARKING";
    EXPECT_TRUE(seen[2].on_the_waiters_stack);
    EXPECT_STREQ(seen[3].call, "unlock");
    EXPECT_EQ(seen[3].saw, phase::parked) << "whoever takes the lock never meets a half-parked task";
    EXPECT_FALSE(seen[3].on_the_waiters_stack);
  });
  until([&] { return shown.load() != nullptr && shown.load()->is_published(); });
  EXPECT_TRUE(shown.load()->complete());
  waiter.join();
}

// A chosen moment of the park: the waitable's own calls come at all of them.
enum class moment { first_look, before_parking, parking, committed };
constexpr moment moments[] = {moment::first_look, moment::before_parking, moment::parking, moment::committed};

class stepper final : public waits::waitable {
 public:
  enum class act { cancel, complete };
  stepper(task::record& waiter, moment when, act what) : waiter_(waiter), when_(when), what_(what) {}

  bool try_complete() noexcept override {
    const bool is_over = completed_;
    at(moment::first_look, phase::active);
    return is_over;
  }
  bool publish(waits::node& n) noexcept override {
    if (completed_) return false;
    node_ = &n;
    at(moment::parking, phase::parking);
    return true;
  }
  void unpublish(waits::node&) noexcept override { node_ = nullptr; }
  void lock() noexcept {
    lock_.acquire();
    at(moment::before_parking, phase::active);
  }
  void unlock() noexcept {
    if (node_ != nullptr) at(moment::committed, phase::parked);
    lock_.release();
  }
  [[nodiscard]] base::lock* own_lock() noexcept override { return nullptr; }  // of no select
  [[nodiscard]] waits::subject what() const noexcept override {
    static constexpr waits::wait_kind kind{"stepper"};
    return {&kind, this};
  }
  [[nodiscard]] bool acted() const { return acted_; }

 private:
  void at(moment now, phase expected) noexcept {
    if (now != when_ || acted_) return;
    acted_ = true;
    EXPECT_EQ(state_word::phase_of(waiter_.word.load()), expected);
    if (what_ == act::cancel) return waits::cancel(waiter_);
    completed_ = true;
    if (node_ == nullptr || !waits::claim(*node_, task::wake_reason::data)) return;
    task::parkable& who = *std::exchange(node_, nullptr)->who;
    waits::resume(who);
  }
  task::record& waiter_;
  const moment when_;
  const act what_;
  base::lock lock_;
  waits::node* node_ = nullptr;
  bool completed_ = false;
  bool acted_ = false;
};

// req: LS-P1 LS-P2 LS-P3
TEST(Park, a_cancellation_at_each_step_of_the_park_ends_it_once) {
  support::watchdog guard(20s, "cancellation at each step");
  for (const moment when : moments) {
    SCOPED_TRACE(static_cast<int>(when));
    watched_runtime rt(1);
    auto h = rt->spawn([when] {
      stepper s(*waits::current_task(), when, stepper::act::cancel);
      waits::node n;
      EXPECT_EQ(waits::fiber_wait(s, n, {}), waits::outcome::cancelled);
      EXPECT_TRUE(s.acted());
      EXPECT_FALSE(n.linked);
      const weft::this_task::shield still_alive;
      weft::sleep_for(1ms);
    });
    h.join();
  }
}

// req: LS-P1 LS-P2
TEST(Park, a_wake_at_each_step_of_the_park_ends_it_once) {
  support::watchdog guard(20s, "a wake at each step");
  for (const moment when : moments) {
    SCOPED_TRACE(static_cast<int>(when));
    watched_runtime rt(1);
    const weft::runtime_statistics s = rt->run([&] {
      stepper w(*waits::current_task(), when, stepper::act::complete);
      waits::node n;
      EXPECT_EQ(waits::fiber_wait(w, n, {}), waits::outcome::completed);
      EXPECT_TRUE(w.acted());
      return rt->statistics();
    });
    EXPECT_EQ(s.parks, when >= moment::parking ? 1u : 0u);
  }
}

// The question of park_if is asked twice: RUNNING, and PARKING.
// req: LS-P1 LS-P2 CC-5
TEST(Park, an_unpark_or_a_cancellation_during_each_question_of_park_if_is_not_lost) {
  support::watchdog guard(20s, "park_if");
  for (const int question : {1, 2})
    for (const bool by_cancel : {false, true}) {
      SCOPED_TRACE(testing::Message() << question << (by_cancel ? " cancel" : " unpark"));
      watched_runtime rt(1);
      struct door {
        int question;
        bool by_cancel;
        mutable int asked = 0;
        [[nodiscard]] bool load() const {
          if (++asked == question) {
            EXPECT_EQ(state_word::phase_of(waits::current_task()->word.load()),
                      question == 1 ? phase::active : phase::parking);
            if (by_cancel)
              weft::this_task::ref().cancel();
            else
              weft::this_task::ref().unpark();
          }
          return true;
        }
      };
      auto h = rt->spawn([&] { weft::park_if(door{question, by_cancel}, true); });
      if (by_cancel)
        EXPECT_THROW(h.join(), weft::task_cancelled);
      else
        h.join();
    }
}

// req: LS-W1 LS-P1
TEST(Park, a_wait_that_publish_turns_down_goes_on_without_a_switch) {
  watched_runtime rt(1);
  const weft::runtime_statistics before = rt->statistics();
  rt->run([] {
    class over final : public waits::waitable {
     public:
      bool try_complete() noexcept override { return false; }
      bool publish(waits::node&) noexcept override { return false; }
      void unpublish(waits::node&) noexcept override { ADD_FAILURE() << "nothing was published"; }
      void lock() noexcept { ++locked; }
      void unlock() noexcept { --locked; }
      [[nodiscard]] base::lock* own_lock() noexcept override { return nullptr; }  // of no select
      [[nodiscard]] waits::subject what() const noexcept override {
        static constexpr waits::wait_kind kind{"over"};
        return {&kind, this};
      }
      int locked = 0;
    } w;
    waits::node n;
    EXPECT_EQ(waits::fiber_wait(w, n, {}), waits::outcome::completed);
    EXPECT_EQ(w.locked, 0);
    EXPECT_EQ(state_word::phase_of(waits::current_task()->word.load()), phase::active);
  });
  EXPECT_EQ(rt->statistics().parks, before.parks);
}

// req: LS-F4
TEST(Park, of_many_wakers_of_one_wait_one_enqueues) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    const std::size_t n = scaled(2'000);
    constexpr std::size_t wakers = 4;
    watched_runtime rt(workers);
    base::atomic<std::size_t> winners{0};
    std::size_t resumed = 0;
    for (std::size_t i = 0; i < n; ++i) {
      base::atomic<witness*> shown{nullptr};
      base::atomic<std::size_t> done{0};
      auto waiter = rt->spawn([&] {
        witness w(*waits::current_task());
        waits::node node;
        shown = &w;
        EXPECT_EQ(waits::fiber_wait(w, node, {}), waits::outcome::completed);
        ++resumed;
        until([&] { return done.load() == wakers; });  // the node lives until nobody looks at it any more
      });
      until([&] { return shown.load() != nullptr && shown.load()->is_published(); });
      std::vector<weft::join_handle<void>> others;
      for (std::size_t k = 0; k < wakers; ++k)
        others.push_back(rt->spawn([&] {
          if (shown.load()->complete()) ++winners;
          ++done;
        }));
      for (auto& o : others) o.join();
      waiter.join();
    }
    EXPECT_EQ(resumed, n);
    EXPECT_EQ(winners.load(), n);
  });
}

// A task that ran on two workers at once, or was enqueued twice, would find itself inside already.
// req: CSP-6 LS-F1 LS-F4
TEST(Park, a_wake_between_publication_and_switch_neither_loses_a_task_nor_runs_it_twice) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    constexpr std::size_t waiters = 8;
    const std::size_t each = scaled(3'000);
    watched_runtime rt(workers);
    semaphore tokens;
    base::atomic<std::size_t> taken{0};
    base::atomic<std::size_t> twice{0};
    std::vector<weft::join_handle<void>> tasks;
    for (std::size_t k = 0; k < waiters; ++k)
      tasks.push_back(rt->spawn([&] {
        base::atomic<int> inside{0};
        for (std::size_t i = 0; i < each; ++i) {
          if (tokens.take() != waits::outcome::completed) break;
          if (inside.exchange(1) != 0) ++twice;
          ++taken;
          spin(i % 17);
          inside.store(0);
        }
      }));
    std::thread outside([&] {
      for (std::size_t i = 0; i < waiters * each / 2; ++i) {
        tokens.post();
        spin(i % 97);
      }
    });
    auto inside = rt->spawn([&] {
      for (std::size_t i = 0; i < waiters * each / 2; ++i) {
        tokens.post();
        if (i % 7 == 0) weft::yield();
      }
    });
    outside.join();
    inside.join();
    for (auto& t : tasks) t.join();
    EXPECT_EQ(taken.load(), waiters * each);
    EXPECT_EQ(twice.load(), 0u);
    EXPECT_EQ(tokens.count(), 0u);
  });
}

// req: LS-W2
TEST(Park, what_a_dump_shows_of_a_parked_task_is_why_where_and_on_what) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  semaphore s;
  std::uint32_t line = 0;
  auto h = rt->spawn([&] {
    waits::node n;
    line = __LINE__ + 1;
    (void)waits::fiber_wait(s, n, {});
  });
  until([&] { return s.waiters() == 1; });
  std::size_t seen = 0;
  rt.core().records().walk([&](task::record& t) {
    if (state_word::phase_of(t.word.load()) != phase::parked) return;
    ++seen;
    EXPECT_STREQ(t.waits_for.load()->name, "semaphore");
    EXPECT_EQ(t.waits_on().load(), &s);
    EXPECT_NE(std::string_view(t.waits_at.load().file_name()).find("park_test.cpp"), std::string_view::npos);
    EXPECT_EQ(t.waits_at.load().line(), line);
  });
  EXPECT_EQ(seen, 1u);
  s.post();
  h.join();
}

}  // namespace
