// Many short lives over few records, with more workers than cores.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"
#include "wait/semaphore.hpp"

namespace {

using namespace support::usual;
using weft_test::semaphore;
namespace waits = weft::waits;

// Every task parks once, so every life of a record has a wait whose waker may come late.
// req: LS-T1 CSP-9 CC-6
TEST(WaitLifecycles, three_hundred_thousand_over_recycled_records_each_wait_and_end_once) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(200s);
    const std::size_t n = scaled(300'000) / 4;  // a quarter at each of the four counts
    constexpr std::size_t at_once = 500;
    watched_runtime rt(workers);
    base::atomic<std::size_t> ran{0};
    std::size_t joined = 0;
    rt->run([&] {
      for (std::size_t i = 0; i < n; i += at_once) {
        semaphore s;
        std::vector<weft::join_handle<std::size_t>> all;
        for (std::size_t k = 0; k < at_once; ++k)
          all.push_back(weft::spawn([&] {
            if (s.take() == waits::outcome::completed) ++ran;
            return std::size_t{1};
          }));
        for (std::size_t k = 0; k < at_once; ++k) s.post();
        for (auto& h : all) joined += h.join();
      }
    });
    const std::size_t rounds = (n + at_once - 1) / at_once * at_once;
    EXPECT_EQ(ran.load(), rounds);
    EXPECT_EQ(joined, rounds);
    EXPECT_LE(rt.core().records().slab_count(), 24u) << "records live again";
    rt->shutdown();
    EXPECT_EQ(rt->statistics().finished, rounds + 1);
  });
}

// A finished task's stack and record may go only after the last step on that stack: scribbling over a freed one would show
// as a wrong sum or a crash. The tasks end in every way there is.
// req: CSP-9
TEST(WaitLifecycles, stacks_and_records_of_tasks_that_end_in_any_way_are_used_again_unharmed) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(200s);
    const std::size_t n = scaled(40'000);
    watched_runtime rt(workers);
    std::size_t values = 0;
    std::size_t errors = 0;
    std::size_t cancellations = 0;
    base::atomic<std::size_t> detached{0};
    rt->run([&] {
      for (std::size_t i = 0; i < n; ++i) {
        auto h = weft::spawn({.stack_size = i % 5 == 0 ? std::size_t{16} << 10 : 0}, [&, i]() -> std::size_t {
          volatile char deep[4'000];
          for (std::size_t k = 0; k < sizeof deep; k += 64) deep[k] = static_cast<char>(i);
          if (i % 3 == 0) weft::yield();
          for (std::size_t k = 0; k < sizeof deep; k += 64)
            if (deep[k] != static_cast<char>(i)) return 1'000'000;
          if (i % 4 == 1) throw i;
          if (i % 4 == 2) throw weft::cancelled();
          if (i % 4 == 3) ++detached;
          return 1;
        });
        if (i % 4 == 3) {
          h.detach();
          continue;
        }
        try {
          values += h.join();
        } catch (std::size_t) {
          ++errors;
        } catch (const weft::task_cancelled&) {
          ++cancellations;
        }
      }
    });
    rt->shutdown();
    EXPECT_EQ(values, n / 4);
    EXPECT_EQ(errors, n / 4);
    EXPECT_EQ(cancellations, n / 4);
    EXPECT_EQ(detached.load(), n / 4);
  });
}

}  // namespace
