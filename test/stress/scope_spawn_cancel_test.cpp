// Scopes into which many spawn while they are cancelled.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/usual.hpp"

namespace {

using namespace support::usual;

enum class by { body, deadline, failure, outside_thread, owner };

// Four spawners, a thousand children each. Whatever ends the scope, all that started have finished when it returns.
void spawners_while_cancelled(by whom) {
  support::watchdog guard(280s);
  const std::size_t rounds = support::under_tsan || support::under_asan ? 4 : 50;
  const int each = support::under_tsan || support::under_asan ? 200 : 1'000;
  at_worker_counts([&](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<int> spawned{0}, started{0}, finished{0}, cancelled{0};
    for (std::size_t round = 0; round < rounds; ++round) {
      const int before = spawned.load();
      auto h = rt->spawn([&] {
        try {
          weft::with_scope([&](weft::scope& s) {
            for (int i = 0; i < 4; ++i)
              s.spawn([&] {
                for (int k = 0; k < each; ++k) {
                  s.spawn([&, k] {
                    ++started;
                    struct tally {
                      base::atomic<int>& count;
                      ~tally() { ++count; }
                    } const t{finished};
                    try {
                      if (k % 3 == 0)
                        wait_for_ever();
                      else if (k % 3 == 1)
                        weft::sleep_for(1h);
                      else
                        weft::yield();
                    } catch (const weft::cancelled&) {
                      ++cancelled;
                      throw;
                    }
                  });
                  ++spawned;
                }
              });
            if (whom == by::deadline) s.cancel_after(100us);
            until([&] { return spawned.load() > before + 10; });
            if (whom == by::body) s.cancel();
            if (whom == by::failure) s.spawn([] { throw std::runtime_error("enough"); });
            if (whom == by::outside_thread) std::thread([r = s.ref()] { r.cancel(); }).join();
            wait_for_ever();
          });
        } catch (const std::runtime_error&) {  // scope_cancelled as well
        }
        EXPECT_EQ(started.load(), finished.load());
      });
      if (whom == by::owner) {
        until([&] { return spawned.load() > before + 10; });
        h.cancel();
      }
      try {
        h.join();
      } catch (const weft::task_cancelled&) {
        EXPECT_EQ(whom, by::owner);
      }
      ASSERT_EQ(spawned.load(), started.load());
      ASSERT_EQ(started.load(), finished.load());
    }
    EXPECT_GT(cancelled.load(), 0);
  });
}

// req: W-3 LS-N1
TEST(ScopeSpawnCancel, cancelled_by_its_body) { spawners_while_cancelled(by::body); }
// req: W-3 LS-N1
TEST(ScopeSpawnCancel, cancelled_by_its_deadline) { spawners_while_cancelled(by::deadline); }
// req: W-3 LS-N1
TEST(ScopeSpawnCancel, cancelled_by_a_failure) { spawners_while_cancelled(by::failure); }
// req: W-3 LS-N1
TEST(ScopeSpawnCancel, cancelled_by_an_outside_thread) { spawners_while_cancelled(by::outside_thread); }
// req: W-3 LS-N1
TEST(ScopeSpawnCancel, cancelled_with_its_owner) { spawners_while_cancelled(by::owner); }

}  // namespace
