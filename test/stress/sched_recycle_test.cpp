// Many lives over few records: whatever of an earlier life could still reach a record must not disturb the next.
#include <gtest/gtest.h>

#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;

// req: LS-M1 LS-T1 LS-F4 BZ-7
TEST(Recycle, three_hundred_thousand_lives_over_recycled_records_with_eight_workers_on_two_cores) {
  support::watchdog guard(250s, "300,000 lives");
  support::watched_runtime rt(8);
  constexpr std::size_t spawners = 16;
  const std::size_t lives = support::scaled(300'000) / spawners;
  weft::base::atomic<std::size_t> started{0};
  weft::base::atomic<std::size_t> finished{0};
  weft::base::atomic<std::size_t> cancelled{0};
  rt->run([&] {
    std::vector<weft::join_handle<void>> all;
    for (std::size_t s = 0; s < spawners; ++s)
      all.push_back(weft::spawn([&, s] {
        for (std::size_t i = 0; i < lives; ++i) {
          weft::base::atomic<int> flag{0};
          auto h = weft::spawn([&started, &finished, &flag, kind = (i + s) % 5] {
            started.fetch_add(1, weft::base::relaxed);
            switch (kind) {
              case 0: break;
              case 1: weft::yield(); break;
              case 2:
              case 3:
                while (flag.load() == 0) weft::park_if(flag, 0);
                break;
              default:
                for (;;) weft::park_if(flag, 0);  // until cancelled
            }
            finished.fetch_add(1, weft::base::relaxed);
          });
          const weft::task_ref stale = h.ref();
          if ((i + s) % 5 == 4) {
            h.cancel();
            try {
              h.join();
            } catch (const weft::task_cancelled&) {
              cancelled.fetch_add(1, weft::base::relaxed);
            }
          } else {
            flag.store(1);
            stale.unpark();
            h.join();
          }
          stale.unpark();  // to a task that has ended
          stale.cancel();
        }
      }));
    for (auto& h : all) h.join();
  });
  EXPECT_EQ(finished.load() + cancelled.load(), spawners * lives);
  EXPECT_LE(started.load(), spawners * lives);
  EXPECT_GE(started.load(), finished.load());
  // A handful per spawner and the workers' caches: the records were the same ones all the time.
  EXPECT_LE(rt.core().records().slab_count(), 6u);
}

}  // namespace
