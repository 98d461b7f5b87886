// Everything that can end a wait at once: wakes, permits, timers, cancellation and joins, on tasks that come and go. What is
// counted in must be counted out.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"
#include "wait/semaphore.hpp"

namespace {

using namespace support::usual;
using weft_test::semaphore;
namespace waits = weft::waits;

struct ledger {
  base::atomic<std::size_t> taken{0};
  base::atomic<std::size_t> slept{0};
  base::atomic<std::size_t> parked{0};
  base::atomic<std::size_t> joined{0};
  base::atomic<std::size_t> cancelled{0};
  base::atomic<std::size_t> early{0};
};

// One round of waiting of one kind.
void wait_somehow(std::uint64_t dice, semaphore& s, ledger& l, base::atomic<std::uint64_t>& flag) {
  switch (dice % 4) {
    case 0:
      if (s.take() == waits::outcome::cancelled) throw weft::cancelled();
      ++l.taken;
      break;
    case 1: {
      const auto time = std::chrono::microseconds(dice / 4 % 300);
      const auto from = std::chrono::steady_clock::now();
      weft::sleep_for(time);
      if (std::chrono::steady_clock::now() - from < time) ++l.early;
      ++l.slept;
      break;
    }
    case 2:
      weft::park_if(flag, flag.load());  // by a permit, or by cancellation; the caller's neighbour unparks
      ++l.parked;
      break;
    default: {
      auto child = weft::spawn([dice] {
        for (std::uint64_t i = dice / 4 % 3; i > 0; --i) weft::yield();
        return std::size_t{1};
      });
      l.joined += child.join();
      break;
    }
  }
}

// req: LS-P1 LS-P3 LS-T1 LS-T2 CSP-6
TEST(WaitEverything, every_wait_ends_and_every_token_is_accounted_for) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(120s);
    const std::size_t generations = scaled(40);
    constexpr std::size_t tasks = 64;
    constexpr std::size_t waits = 40;
    watched_runtime rt(workers);
    semaphore s;
    ledger l;
    std::size_t posted = 0;
    std::size_t ended = 0;
    std::mt19937_64 random(workers);
    for (std::size_t g = 0; g < generations; ++g) {
      base::atomic<std::uint64_t> flag{0};
      base::atomic<std::size_t> running{tasks};
      std::vector<weft::join_handle<void>> all;
      std::vector<weft::task_ref> refs;
      for (std::size_t i = 0; i < tasks; ++i) {
        all.push_back(rt->spawn([&, seed = random()] {
          struct at_the_end {
            base::atomic<std::size_t>& running;
            ~at_the_end() { --running; }
          } end{running};
          std::mt19937_64 dice(seed);
          for (std::size_t k = 0; k < waits; ++k) wait_somehow(dice(), s, l, flag);
        }));
        refs.push_back(all.back().ref());
      }
      // From outside and from inside: permits and posts for whoever waits, a cancellation for every eighth.
      auto inside = rt->spawn([&] {
        for (std::size_t i = 0; running.load() != 0; ++i) {
          refs[i % tasks].unpark();
          weft::yield();
        }
      });
      for (std::size_t i = 0; running.load() != 0; ++i) {
        if (s.waiters() != 0) {
          s.post();
          ++posted;
        }
        if (i % 7 == 0) refs[random() % tasks].unpark();
        if (i < tasks / 8) refs[random() % tasks].cancel();
        if (i % 64 == 0) std::this_thread::yield();
      }
      inside.join();
      for (auto& h : all) try {
          h.join();
          ++ended;
        } catch (const weft::task_cancelled&) {
          ++l.cancelled;
        }
    }
    EXPECT_EQ(ended + l.cancelled.load(), generations * tasks);
    EXPECT_EQ(posted, l.taken.load() + s.count());
    EXPECT_EQ(s.waiters(), 0u);
    EXPECT_EQ(l.early.load(), 0u);
    EXPECT_GE(l.taken.load() + l.slept.load() + l.parked.load() + l.joined.load(), ended * waits);
    rt->shutdown();
    EXPECT_EQ(rt->statistics().spawned, rt->statistics().finished);
  });
}

}  // namespace
