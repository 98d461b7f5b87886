// Cancellation: where it strikes, what it runs, what defers it.
#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace support::usual;
using weft::task::phase;
using weft::task::state_word;
namespace waits = weft::waits;

static_assert(!std::is_base_of_v<std::exception, weft::cancelled>);
static_assert(std::is_base_of_v<std::exception, weft::task_cancelled>);

// Counts its own destructions.
struct tally {
  base::atomic<int>* count;
  explicit tally(base::atomic<int>& c) : count(&c) {}
  tally(tally&& other) noexcept : count(std::exchange(other.count, nullptr)) {}
  ~tally() {
    if (count != nullptr) ++*count;
  }
};

// A task that waits by `waiting`, is cancelled when it is parked, and must end with its destructors run.
template <class Waiting>
void is_cancelled_while_parked(std::size_t workers, Waiting waiting) {
  watched_runtime rt(workers);
  base::atomic<weft::task::record*> who{nullptr};
  base::atomic<int> destroyed{0};
  bool went_on = false;
  auto h = rt->spawn([&, in_closure = tally(destroyed)] {
    tally outer(destroyed);
    const auto inner = [&] {
      tally local(destroyed);
      who = waits::current_task();
      waiting();
      went_on = true;
    };
    inner();
  });
  until([&] { return is_parked(who.load()); });
  EXPECT_EQ(destroyed.load(), 0);
  h.cancel();
  EXPECT_THROW(h.join(), weft::task_cancelled);
  EXPECT_EQ(destroyed.load(), 3);
  EXPECT_FALSE(went_on);
}

// req: LS-P3 W-3
TEST(Cancel, a_task_parked_in_a_sleep_ends_at_once_with_its_destructors_run) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) { is_cancelled_while_parked(workers, [] { weft::sleep_for(1h); }); });
}

// req: LS-P3 W-3
TEST(Cancel, a_task_parked_in_park_if_ends_at_once_with_its_destructors_run) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    base::atomic<bool> closed{true};
    is_cancelled_while_parked(workers, [&] {
      for (;;) weft::park_if(closed, true);
    });
  });
}

// req: LS-P3 W-3
TEST(Cancel, a_task_parked_in_a_join_ends_at_once_with_its_destructors_run) {
  support::watchdog guard(60s);
  at_worker_counts([](std::size_t workers) {
    watched_runtime other(1);
    base::atomic<bool> go{false};
    auto slow = other->spawn([&] { until([&] { return go.load(); }); });
    is_cancelled_while_parked(workers, [&] { slow.join(); });
    go = true;
  });
}

// req: LS-P3
TEST(Cancel, a_task_that_only_yields_is_cancelled_at_the_next_yield) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    base::atomic<bool> started{false};
    base::atomic<int> destroyed{0};
    auto h = rt->spawn([&] {
      tally local(destroyed);
      for (;;) {
        started = true;
        weft::yield();
      }
    });
    until([&] { return started.load(); });
    h.cancel();
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_EQ(destroyed.load(), 1);
  });
}

// req: LS-P3
TEST(Cancel, check_is_a_cancellation_point_and_nothing_else) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([&] {
    const auto before = rt->statistics();
    for (int i = 0; i < 1000; ++i) weft::this_task::check();
    EXPECT_EQ(rt->statistics().dispatched, before.dispatched);
    EXPECT_FALSE(weft::this_task::is_cancelled());
    weft::this_task::ref().cancel();
    EXPECT_TRUE(weft::this_task::is_cancelled());
    EXPECT_THROW(weft::this_task::check(), weft::cancelled);
  });
}

// req: LS-P3
TEST(Cancel, it_is_not_a_std_exception_so_a_handler_for_those_does_not_stop_it) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  auto h = rt->spawn([] {
    try {
      weft::this_task::ref().cancel();
      weft::yield();
    } catch (const std::exception&) {
      ADD_FAILURE() << "stopped";
    }
  });
  EXPECT_THROW(h.join(), weft::task_cancelled);
}

// req: LS-P3
TEST(Cancel, who_swallows_it_meets_it_again_at_every_cancellation_point) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  auto h = rt->spawn([] {
    weft::this_task::ref().cancel();
    auto child = weft::spawn([] { weft::this_task::check(); });
    base::atomic<bool> closed{true};
    int struck = 0;
    const auto strikes = [&](auto point) {
      try {
        point();
      } catch (...) {
        ++struck;
      }
    };
    for (int i = 0; i < 3; ++i) {
      strikes([] { weft::yield(); });
      strikes([] { weft::this_task::check(); });
      strikes([] { weft::sleep_for(1h); });
      strikes([] { weft::sleep_for(0s); });
      strikes([] { weft::sleep_for(-1s); });
      strikes([&] { child.wait(); });
      strikes([&] { weft::park_if(closed, true); });
      strikes([&] { weft::park_if(closed, false); });
    }
    weft::this_task::shield s;
    child.join();
    return struck;
  });
  EXPECT_EQ(h.join(), 24);
}

// req: LS-P3
TEST(Cancel, inside_the_handler_it_strikes_again) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  int struck = 0;
  auto h = rt->spawn([&] {
    weft::this_task::ref().cancel();
    try {
      weft::yield();
    } catch (...) {
      ++struck;
      try {
        weft::yield();
      } catch (...) {
        ++struck;
      }
      throw;
    }
  });
  EXPECT_THROW(h.join(), weft::task_cancelled);
  EXPECT_EQ(struck, 2);
}

// req: LS-P3
TEST(Cancel, a_task_that_ends_in_spite_of_it_delivers_its_result) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  auto value = rt->spawn([] {
    weft::this_task::ref().cancel();
    return 4;
  });
  EXPECT_EQ(value.join(), 4);
  auto error = rt->spawn([]() -> int {
    weft::this_task::ref().cancel();
    throw std::runtime_error("mine");
  });
  EXPECT_THROW((void)error.join(), std::runtime_error);
}

// req: LS-P3
TEST(Cancel, a_task_cancelled_before_it_ever_ran_starts_and_ends_at_its_first_cancellation_point) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  base::atomic<int> destroyed{0};
  bool started = false;
  bool went_on = false;
  rt->run([&] {
    auto h = weft::spawn([&, t = tally(destroyed)] {
      started = true;
      weft::yield();
      went_on = true;
    });
    h.cancel();
    EXPECT_THROW(h.join(), weft::task_cancelled);
  });
  EXPECT_TRUE(started);
  EXPECT_FALSE(went_on);
  EXPECT_EQ(destroyed.load(), 1);
}

// req: BZ-9
TEST(Cancel, a_shield_defers_it_and_when_the_last_one_goes_it_takes_effect) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  int reached = 0;
  auto h = rt->spawn([&] {
    weft::this_task::ref().cancel();
    {
      weft::this_task::shield outer;
      {
        weft::this_task::shield inner;
        weft::yield();
        weft::sleep_for(1ms);
        reached = 1;
      }
      weft::yield();
      weft::sleep_for(1ms);
      weft::this_task::check();
      EXPECT_TRUE(weft::this_task::is_cancelled()) << "a shield does not change the answer";
      reached = 2;
    }
    reached = 3;
    weft::yield();
    reached = 4;
  });
  EXPECT_THROW(h.join(), weft::task_cancelled);
  EXPECT_EQ(reached, 3);
}

// req: BZ-9
TEST(Cancel, a_shielded_wait_is_not_interrupted) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    base::atomic<weft::task::record*> who{nullptr};
    base::atomic<bool> closed{true};
    bool woke_by_itself = false;
    auto h = rt->spawn([&] {
      {
        weft::this_task::shield s;
        who = waits::current_task();
        while (closed.load()) weft::park_if(closed, true);
        woke_by_itself = true;
      }
      weft::this_task::check();
    });
    until([&] { return is_parked(who.load()); });
    for (int i = 0; i < 100; ++i) h.cancel();
    EXPECT_TRUE(is_parked(who.load()));
    closed = false;
    h.ref().unpark();
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_TRUE(woke_by_itself);
  });
}

// req: LS-P3 W-3
TEST(Cancel, while_a_task_unwinds_its_suspension_points_act_as_shielded) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    bool slept = false;
    bool joined = false;
    struct blocks_at_its_end {
      bool& slept;
      bool& joined;
      ~blocks_at_its_end() {
        weft::yield();
        weft::this_task::check();
        const auto from = std::chrono::steady_clock::now();
        weft::sleep_for(5ms);
        slept = std::chrono::steady_clock::now() - from >= 5ms;
        joined = weft::spawn([] {
                   weft::yield();
                   return true;
                 }).join();
      }
    };
    auto h = rt->spawn([&] {
      blocks_at_its_end b{slept, joined};
      weft::sleep_for(1h);
    });
    h.cancel();
    EXPECT_THROW(h.join(), weft::task_cancelled);
    EXPECT_TRUE(slept);
    EXPECT_TRUE(joined);
  });
}

// The closure's own captures are destroyed after the unwinding; the task is still cancelled, so without a shield around it the
// first suspension in such a destructor would throw out of a destructor.
// req: LS-P3 W-3
TEST(Cancel, what_a_closure_captured_may_block_when_it_is_destroyed) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  base::atomic<int> slept{0};
  struct blocks_at_its_end {
    base::atomic<int>* slept;
    explicit blocks_at_its_end(base::atomic<int>& s) : slept(&s) {}
    blocks_at_its_end(blocks_at_its_end&& other) noexcept : slept(std::exchange(other.slept, nullptr)) {}
    ~blocks_at_its_end() {
      if (slept == nullptr) return;
      weft::sleep_for(1ms);
      ++*slept;
    }
  };
  auto h = rt->spawn([b = blocks_at_its_end(slept)] {
    weft::this_task::ref().cancel();
    weft::yield();
  });
  EXPECT_THROW(h.join(), weft::task_cancelled);
  EXPECT_EQ(slept.load(), 1);
}

// req: LS-P3
TEST(Cancel, an_exception_in_flight_shields_too) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  bool yielded = false;
  struct yields_at_its_end {
    bool& yielded;
    ~yields_at_its_end() {
      weft::yield();
      yielded = true;
    }
  };
  auto h = rt->spawn([&] {
    weft::this_task::ref().cancel();
    yields_at_its_end y{yielded};
    throw std::runtime_error("mine");
  });
  EXPECT_THROW(h.join(), std::runtime_error);
  EXPECT_TRUE(yielded);
}

// req: LS-P3 BZ-8
TEST(Cancel, a_join_on_a_cancelled_task_says_so_and_does_not_cancel_the_joiner) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  rt->run([] {
    auto h = weft::spawn({.name = "sleeper"}, [] { weft::sleep_for(1h); });
    const std::uint64_t id = h.id();
    h.cancel();
    try {
      h.join();
      ADD_FAILURE() << "joined";
    } catch (const weft::task_cancelled& e) {
      EXPECT_EQ(e.what(), "weft: the joined task \"sleeper\" (#" + std::to_string(id) + ") was cancelled");
      EXPECT_EQ(e.task_name(), "sleeper");
      EXPECT_EQ(e.task_id(), id);
    }
    EXPECT_FALSE(weft::this_task::is_cancelled());
    weft::yield();
  });
}

// req: LS-P3 BZ-8
TEST(Cancel, a_cancel_that_races_with_the_end_gives_a_result_or_a_cancellation_and_never_both) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(110s);
    const std::size_t n = scaled(100'000);
    watched_runtime rt(workers);
    base::atomic<std::size_t> constructed{0};
    base::atomic<std::size_t> destructed{0};
    base::atomic<std::size_t> ended{0};
    struct local {
      base::atomic<std::size_t>& out;
      ~local() { ++out; }
    };
    constexpr std::size_t at_once = 50;
    std::size_t values = 0;
    std::size_t cancellations = 0;
    rt->run([&] {
      for (std::size_t i = 0; i < n; i += at_once) {
        std::vector<weft::join_handle<std::size_t>> hs;
        for (std::size_t k = 0; k < at_once; ++k)
          hs.push_back(weft::spawn([&, k] {
            ++constructed;
            local l{destructed};
            for (std::size_t y = k % 3; y > 0; --y) weft::yield();
            ++ended;
            return std::size_t{1};
          }));
        for (std::size_t k = 0; k < at_once; ++k) {
          if (k % 5 == 1) weft::yield();
          hs[(k * 7 + i) % at_once].cancel();
        }
        for (auto& h : hs) try {
            values += h.join();
          } catch (const weft::task_cancelled&) {
            ++cancellations;
          }
      }
    });
    EXPECT_EQ(values + cancellations, n);
    EXPECT_EQ(values, ended.load());
    EXPECT_EQ(constructed.load(), n);
    EXPECT_EQ(destructed.load(), n);
    EXPECT_GT(values, 0u);
    EXPECT_GT(cancellations, 0u);
  });
}

// Cancellation and another wake race for the same wait; whoever wins, the wait ends once and nothing is left behind.
// req: LS-P3 LS-F4
TEST(Cancel, a_cancel_that_races_with_a_timer_ends_the_sleep_once) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    const std::size_t n = scaled(300);
    watched_runtime rt(workers);
    std::size_t ends = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const auto when = std::chrono::steady_clock::now() + 500us;
      auto h = rt->spawn([when] { weft::sleep_until(when); });
      while (std::chrono::steady_clock::now() < when - 100us + std::chrono::microseconds(i % 300))
        std::this_thread::yield();
      h.cancel();
      try {
        h.join();
        EXPECT_GE(std::chrono::steady_clock::now(), when);
      } catch (const weft::task_cancelled&) {}
      ++ends;
    }
    EXPECT_EQ(ends, n);
    rt->shutdown();
    EXPECT_EQ(rt->statistics().finished, n);
  });
}

}  // namespace
