// operator new that fails at the n-th call. Not under TSan, whose runtime has an operator new of its own.
// ctest: notsan timeout=300
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <weft/weft.hpp>

#include "base/atomic.hpp"
#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

namespace base = weft::base;

base::atomic<long> until_failure{-1};  // counts down; the call that finds 0 fails
base::atomic<long> alive{0};
base::atomic<long> made{0};

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (until_failure.load(base::relaxed) >= 0 && until_failure.fetch_sub(1) == 0) return nullptr;
  void* p = alignment <= alignof(std::max_align_t)
                ? std::malloc(size == 0 ? 1 : size)
                : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (p != nullptr) {
    ++alive;
    ++made;
  }
  return p;
}
[[maybe_unused]] void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* p = allocate(size, alignment)) return p;
  throw std::bad_alloc();
}
[[maybe_unused]] void give_back(void* p) noexcept {
  if (p == nullptr) return;
  --alive;
  std::free(p);
}

}  // namespace

#if !defined(WEFT_TSAN)
void* operator new(std::size_t n) { return allocate_or_throw(n, 1); }
void* operator new[](std::size_t n) { return allocate_or_throw(n, 1); }
void* operator new(std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return allocate_or_throw(n, static_cast<std::size_t>(a)); }
void* operator new(std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new[](std::size_t n, const std::nothrow_t&) noexcept { return allocate(n, 1); }
void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return allocate(n, static_cast<std::size_t>(a));
}
void operator delete(void* p) noexcept { give_back(p); }
void operator delete[](void* p) noexcept { give_back(p); }
void operator delete(void* p, std::size_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { give_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_back(p); }
void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept { give_back(p); }
#endif

namespace {

using namespace std::chrono_literals;

// A worker lets go of what a task had a moment after its joiner has gone on.
void settle(weft::runtime& rt) {
  support::until([&] { return rt.statistics().finished == rt.statistics().spawned; });
}

// Runs `life` with the n-th allocation failing, for n = 0, 1, … until it makes fewer. Whatever happens, all is given back
// when `settled` has returned.
template <class Life, class Settled>
void fails_cleanly_at_every(Life&& life, Settled&& settled) {
  life();  // first uses allocate things that stay
  settled();
  long n = 0;
  std::size_t failures = 0;
  for (; n < 2'000; ++n) {
    const long before = alive.load();
    until_failure = n;
    try {
      life();
    } catch (const std::bad_alloc&) {
      ++failures;
    } catch (const std::system_error&) {  // a thread that could not be had
      ++failures;
    }
    settled();
    const bool reached = until_failure.exchange(-1) < 0;
    ASSERT_EQ(alive.load(), before) << "leaked after the failure of allocation " << n;
    if (!reached) break;
  }
  EXPECT_EQ(failures, static_cast<std::size_t>(n)) << "each failure is somebody's exception";
  EXPECT_GT(n, 2);
}

// req: W-9
TEST(Allocation, a_runtime_that_cannot_be_made_leaves_nothing_behind) {
  support::watchdog guard(200s);
  const std::size_t threads = support::threads();
  for (const std::size_t workers : {1, 4, 70})
    fails_cleanly_at_every(
        [&] {
          weft::runtime rt({.workers = workers, .on_unhandled_exception = [](std::string_view, std::exception_ptr) {}});
        },
        [] {});
  EXPECT_EQ(support::threads(), threads);
}

// req: W-9
TEST(Allocation, a_spawn_that_cannot_be_made_throws_and_the_runtime_goes_on) {
  support::watchdog guard(200s);
  weft::runtime rt({.workers = 2});
  const std::array<char, 1'000> large{};
  fails_cleanly_at_every(
      [&] {
        for (int i = 0; i < 5; ++i) rt.spawn([large] { return large[0]; }).join();
        rt.run([&] {
          for (int i = 0; i < 5; ++i) weft::spawn([large] { return large[0]; }).join();
        });
      },
      [&] { settle(rt); });
  EXPECT_EQ(rt.run([] { return 1; }), 1);
  rt.shutdown();
  EXPECT_EQ(rt.statistics().spawned, rt.statistics().finished);
}

// req: W-9
TEST(Allocation, failures_inside_of_tasks_are_theirs_to_deliver) {
  support::watchdog guard(200s);
  weft::runtime rt({.workers = 2});
  fails_cleanly_at_every(
      [&] {
        auto h = rt.spawn([] {
          std::vector<int> mine(100);
          auto inner = weft::spawn([] {
            weft::yield();
            return std::string(100, 'x');
          });
          mine.resize(1'000);
          return inner.join().size() + mine.size();
        });
        EXPECT_EQ(h.join(), 1'100u);
      },
      [&] { settle(rt); });
}

// req: W-9
TEST(Allocation, spawns_that_fail_give_their_records_back) {
  support::watchdog guard(60s);
  weft::runtime rt({.workers = 2});
  const std::array<char, 1'000> large{};
  const auto fails = [&](auto spawn) {
    for (int i = 0; i < 10'000; ++i) {
      until_failure = 0;
      bool refused = false;
      try {
        (void)spawn([large] { return large[0]; });
      } catch (const std::bad_alloc&) {
        refused = true;
      }
      until_failure = -1;
      ASSERT_TRUE(refused);
    }
  };
  fails([&](auto f) { return rt.spawn(f); });
  rt.run([&] { fails([](auto f) { return weft::spawn(f); }); });
  EXPECT_LE(rt.core().records().slab_count(), 4u);
}

// req: W-9 LS-M1
TEST(Allocation, spawning_and_joining_a_small_closure_allocates_nothing) {
  weft::runtime rt({.workers = 1});
  rt.run([] {
    for (int i = 0; i < 1'000; ++i) weft::spawn([i] { return i; }).join();
    const long before = made.load();
    for (int i = 0; i < 10'000; ++i) weft::spawn([i] { return i; }).join();
    EXPECT_EQ(made.load(), before);
  });
}

}  // namespace
