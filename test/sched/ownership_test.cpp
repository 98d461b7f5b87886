// One owner at a time: no task runs twice at once, none is resumed before its context is saved, and none frees the
// stack that it runs on.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task::phase;
using weft::task::state_word;

// Held while a task is between two suspension points. Two holders: the task runs on two workers.
class presence {
 public:
  void enter() {
    if (inside_.exchange(true)) twice_.store(true);
  }
  void leave() { inside_.store(false); }
  [[nodiscard]] bool was_twice() const { return twice_.load(); }

 private:
  weft::base::atomic<bool> inside_{false};
  weft::base::atomic<bool> twice_{false};
};

// Local data across a suspension, with its own address in it: a context resumed too early or twice garbles it.
class footprint {
 public:
  footprint() {
    for (std::size_t i = 0; i < size; ++i) words_[i] = expected(i);
  }
  [[nodiscard]] bool intact() const {
    for (std::size_t i = 0; i < size; ++i)
      if (words_[i] != expected(i)) return false;
    return true;
  }

 private:
  static constexpr std::size_t size = 64;
  [[nodiscard]] std::uintptr_t expected(std::size_t i) const { return reinterpret_cast<std::uintptr_t>(this) * 31 + i; }
  volatile std::uintptr_t words_[size];
};

// req: LS-F1 LS-F2 CSP-7
TEST(Ownership, a_task_that_yields_is_on_one_worker_at_a_time_and_that_workers_current) {
  support::watchdog guard(100s, "yielding tasks");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    constexpr int tasks = 20;
    const std::size_t yields = support::scaled(5000);
    weft::base::atomic<int> wrong{0};
    rt->run([&] {
      std::vector<weft::join_handle<void>> all;
      for (int t = 0; t < tasks; ++t)
        all.push_back(weft::spawn([&] {
          presence here;
          const footprint mark;
          const weft::task::record* self = weft::waits::current_task();
          here.enter();
          for (std::size_t i = 0; i < yields; ++i) {
            const bool as_it_should_be = weft::sched::this_worker()->current() == self &&
                                         state_word::phase_of(self->word.peek()) == phase::active &&
                                         self->running.load() == weft::task::run_state::running && mark.intact();
            if (!as_it_should_be) wrong.fetch_add(1);
            here.leave();
            weft::yield();
            here.enter();
          }
          if (here.was_twice()) wrong.fetch_add(1);
        }));
      for (auto& h : all) h.join();
    });
    EXPECT_EQ(wrong.load(), 0);
  });
}

// req: CSP-7 LS-F1
TEST(Ownership, a_task_stolen_the_moment_it_yields_has_left_its_stack_before) {
  support::watchdog guard(100s, "tasks stolen while they yield");
  for (const std::size_t workers : {2u, 4u}) {
    support::watched_runtime rt(workers);
    weft::base::atomic<int> wrong{0};
    // Two tasks yield to each other. When the third has ended, its worker comes and steals the task in the ring, which
    // is the one that yields at that moment.
    const auto yield_often = [&wrong](int times) {
      presence here;
      const footprint mark;
      here.enter();
      for (int i = 0; i < times; ++i) {
        here.leave();
        weft::yield();
        here.enter();
        if (!mark.intact()) wrong.fetch_add(1);
      }
      if (here.was_twice()) wrong.fetch_add(1);
    };
    rt->run([&] {
      for (std::size_t round = 0; round < support::scaled(3000); ++round) {
        std::vector<weft::join_handle<void>> three;
        for (const int times : {5, 300, 300}) three.push_back(weft::spawn([&, times] { yield_often(times); }));
        for (auto& h : three) h.join();
      }
    });
    EXPECT_EQ(wrong.load(), 0) << workers << " workers";
  }
}

// req: CSP-7 CSP-6 LS-F1
TEST(Ownership, a_task_woken_while_it_parks_is_resumed_once_and_only_when_its_context_is_saved) {
  support::watchdog guard(100s, "tasks woken while they park");
  for (const std::size_t workers : {2u, 4u, 8u}) {
    support::watched_runtime rt(workers);
    constexpr int pairs = 4;
    const std::size_t rounds = support::scaled(4000);
    weft::base::atomic<int> wrong{0};
    std::vector<weft::join_handle<void>> all;
    struct pair_state {
      weft::base::atomic<std::size_t> asked{0};
      weft::base::atomic<std::size_t> answered{0};
      weft::base::atomic<bool> waker_is_up{false};
    };
    std::vector<pair_state> states(pairs);
    for (int p = 0; p < pairs; ++p) {
      pair_state& s = states[static_cast<std::size_t>(p)];
      auto parker = rt->spawn([&wrong, &s] {
        presence here;
        const footprint mark;
        while (!s.waker_is_up.load()) weft::yield();
        here.enter();
        for (std::size_t i = 1; i <= rounds; ++i) {
          s.asked.store(i);  // from here on the waker may come: before, while and after we park
          here.leave();
          while (s.answered.load() < i) weft::park_if(s.answered, i - 1);
          here.enter();
          if (!mark.intact()) wrong.fetch_add(1);
        }
        if (here.was_twice()) wrong.fetch_add(1);
      });
      const weft::task_ref ref = parker.ref();
      all.push_back(std::move(parker));
      all.push_back(rt->spawn([&s, ref] {
        s.waker_is_up.store(true);
        for (std::size_t i = 1; i <= rounds; ++i) {
          while (s.asked.load() < i) weft::yield();
          s.answered.store(i);
          ref.unpark();
        }
      }));
    }
    for (auto& h : all) h.join();
    EXPECT_EQ(wrong.load(), 0) << workers << " workers";
  }
}

// req: CSP-9
TEST(Ownership, a_finished_tasks_stack_is_nobodys_before_it_has_left_it) {
  support::watchdog guard(100s, "stacks handed from task to task");
  support::at_worker_counts([](std::size_t workers) {
    // No stack stays in a cache: what one task gives back is what the next one gets, perhaps on another worker at once.
    support::watched_runtime rt({.workers = workers, .stack_cache_bytes = 0, .elastic = false});
    const std::size_t rounds = support::scaled(3000);
    weft::base::atomic<int> wrong{0};
    rt->run([&] {
      std::vector<weft::join_handle<void>> spawners;
      for (std::size_t s = 0; s < 4; ++s)
        spawners.push_back(weft::spawn([&] {
          for (std::size_t i = 0; i < rounds; ++i) {
            // A size of its own: such stacks go straight to the pool and from there to whoever asks first.
            auto h = weft::spawn({.stack_size = 32 << 10}, [&] {
              const footprint mark;
              weft::yield();
              if (!mark.intact()) wrong.fetch_add(1);
            });
            h.join();
          }
        }));
      for (auto& h : spawners) h.join();
    });
    EXPECT_EQ(wrong.load(), 0);
    rt.core().stacks().verify();
  });
}

// req: CSP-9
TEST(Ownership, while_a_tasks_last_destructor_runs_its_stack_is_still_its_own) {
  support::watchdog guard(60s, "a destructor at the end of a task");
  support::watched_runtime rt(2);
  // Runs after the body, when the closure goes: spawns others that would get this stack if it were free.
  struct last_words {
    weft::base::atomic<int>* wrong;
    explicit last_words(weft::base::atomic<int>* w) : wrong(w) {}
    last_words(last_words&& other) noexcept : wrong(std::exchange(other.wrong, nullptr)) {}
    ~last_words() {
      if (wrong == nullptr) return;
      const footprint mark;
      for (int i = 0; i < 20; ++i) weft::spawn([] { (void)footprint().intact(); }).join();
      if (!mark.intact()) wrong->fetch_add(1);
    }
  };
  weft::base::atomic<int> wrong{0};
  for (int i = 0; i < 100; ++i) rt->spawn([end = last_words(&wrong)] {}).join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
