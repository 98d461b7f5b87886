// Threads that cannot be started.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
namespace base = weft::base;
namespace sched = weft::sched;

// The n-th thread from now on cannot be started.
class refuse_thread {
 public:
  explicit refuse_thread(long n) : before_(sched::start_thread) {
    left() = n;
    sched::start_thread = [](sched::thread_role, std::function<void()> body) {
      if (left()-- == 0)
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "no more threads");
      return std::thread(std::move(body));
    };
  }
  ~refuse_thread() { sched::start_thread = before_; }
  refuse_thread(const refuse_thread&) = delete;
  refuse_thread& operator=(const refuse_thread&) = delete;

 private:
  static long& left() {
    static long n = -1;
    return n;
  }
  sched::thread_starter before_;
};

// req: W-9
TEST(Threads, a_runtime_whose_nth_worker_cannot_start_never_started) {
  support::watchdog guard(60s);
  constexpr long workers = 8;
  weft::run({.workers = workers}, [] {});
  const std::size_t threads = support::threads();
  const std::size_t mappings = support::mappings();
  for (int round = 0; round < 20; ++round)
    for (long n = 0; n <= workers; ++n) {  // the last one is the monitor
      refuse_thread fails(n);
      try {
        weft::runtime rt({.workers = workers});
        ADD_FAILURE() << "started without thread " << n;
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::resource_unavailable_try_again);
      }
    }
  support::until([&] { return support::threads() == threads; });
  if (!support::under_asan && !support::under_tsan) {
    EXPECT_LE(support::mappings(), mappings + 16);
  }
  EXPECT_EQ(weft::run({.workers = workers}, [] { return 3; }), 3) << "and the next one works";
}

// A pool that should grow and cannot continues with what it has, counts that, and tries again later.
TEST(Threads, a_pool_that_cannot_grow_tries_again) {
  if (sched::force_migration) GTEST_SKIP() << "without stealing the pool stays as it is";
  support::watchdog guard(60s);
  const sched::thread_starter before = sched::start_thread;
  static base::atomic<bool> refuses{false};
  sched::start_thread = [](sched::thread_role, std::function<void()> body) {
    if (refuses.load())
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "no more threads");
    return std::thread(std::move(body));
  };
  {
    support::watched_runtime rt({.workers = 1});
    refuses.store(true);
    base::atomic<bool> over{false};
    base::atomic<bool> held{false};
    auto hog = rt->spawn([&] {
      held.store(true);
      support::hold_worker_until([&] { return over.load(); });
    });
    support::until([&] { return held.load(); });
    base::atomic<bool> ran{false};
    auto waits = rt->spawn([&] { ran.store(true); });
    support::until([&] { return rt->elasticity().failed != 0; });
    EXPECT_FALSE(ran.load());
    EXPECT_EQ(rt->elasticity().workers, 1u);
    // The slot of the worker that could not be started is there, but nothing is sent to it.
    std::vector<weft::join_handle<void>> more;
    for (int i = 0; i < 10; ++i) {
      more.push_back(rt->spawn([] {}));
      EXPECT_FALSE(rt.core().workers()[1]->queues().has_visible_work());
    }
    // It does not try at every look, because that would keep a machine busy that has no more threads to give.
    const auto began = std::chrono::steady_clock::now();
    const std::uint64_t looks = rt->elasticity().samples, failures = rt->elasticity().failed;
    support::until([&] { return rt->elasticity().samples >= looks + 200; });
    const std::uint64_t more_failures = rt->elasticity().failed - failures;
    const auto pauses = (std::chrono::steady_clock::now() - began) / 100ms;
    EXPECT_LE(more_failures, static_cast<std::uint64_t>(pauses) + 1);
    refuses.store(false);
    support::until([&] { return ran.load(); });
    over.store(true);
    hog.join();
  }
  sched::start_thread = before;
}

// req: W-9
TEST(Threads, run_passes_the_error_on_and_its_function_never_runs) {
  refuse_thread fails(1);
  bool ran = false;
  EXPECT_THROW(weft::run({.workers = 2}, [&] { ran = true; }), std::system_error);
  EXPECT_FALSE(ran);
}

}  // namespace
