// mmap that fails at the n-th call: an exception for whoever asked, nothing leaked, and the runtime works on.
// ctest: timeout=300
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "base/atomic.hpp"
#include "context/stack.hpp"
#include "context/system_memory.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
namespace base = weft::base;
namespace context = weft::context;

// The kernel's calls, of which one, or from one on every one, is refused.
class unreliable_memory {
 public:
  static inline base::atomic<long> maps{0};
  static inline base::atomic<long> others{0};
  static inline base::atomic<long> refused_map{-1};    // by number, from 0
  static inline base::atomic<long> refused_other{-1};  // advise and protect, together
  static inline base::atomic<bool> refuse_all{false};
  static inline base::atomic<long> mapped{0};  // bytes

  unreliable_memory() : replaced_(table) { reset(); }
  static void reset() {
    maps = others = mapped = 0;
    refused_map = refused_other = -1;
    refuse_all = false;
  }

 private:
  static void* map(std::size_t size) noexcept {
    if (maps.fetch_add(1) == refused_map.load() || refuse_all.load()) return nullptr;
    void* at = context::real_memory().map(size);
    if (at != nullptr) mapped += static_cast<long>(size);
    return at;
  }
  static int unmap(void* begin, std::size_t size) noexcept {
    mapped -= static_cast<long>(size);
    return context::real_memory().unmap(begin, size);
  }
  static bool refuses() noexcept { return others.fetch_add(1) == refused_other.load(); }
  static int advise(void* begin, std::size_t size, int advice) noexcept {
    return refuses() ? ENOMEM : context::real_memory().advise(begin, size, advice);
  }
  static std::size_t advise_many(const context::memory_range* ranges, std::size_t count, int advice) noexcept {
    return refuses() ? 0 : context::real_memory().advise_many(ranges, count, advice);
  }
  static int protect(void* begin, std::size_t size, int protection) noexcept {
    return refuses() ? ENOMEM : context::real_memory().protect(begin, size, protection);
  }
  static inline const context::system_memory table{map, unmap, advise, advise_many, protect};
  context::replace_system_memory replaced_;
};

constexpr std::size_t some_sizes[] = {0, 16 << 10, 64 << 10, 1 << 20, 8 << 20};

// Spawns of several stack sizes from outside and inside, enough of them alive at once for several slabs and regions. Everybody
// counts what became of what: a result, or bad_alloc at the spawn, or bad_alloc at the join.
struct outcome {
  std::size_t tried = 0, ran = 0, not_spawned = 0, no_stack = 0;
  base::atomic<std::size_t> bodies{0};

  template <class Spawn>
  void burst(std::size_t n, Spawn&& spawn) {
    std::vector<weft::join_handle<std::size_t>> handles;
    for (std::size_t i = 0; i < n; ++i) {
      ++tried;
      try {
        handles.push_back(spawn(some_sizes[i % std::size(some_sizes)], [this] {
          weft::yield();
          ++bodies;
          return std::size_t{1};
        }));
      } catch (const std::bad_alloc&) {
        ++not_spawned;
      }
    }
    for (auto& h : handles) try {
        ran += h.join();
      } catch (const std::bad_alloc&) {
        ++no_stack;
      }
  }
  void check() const {
    EXPECT_EQ(ran + not_spawned + no_stack, tried);
    EXPECT_EQ(bodies.load(), ran);
  }
};

void use(weft::runtime& rt, outcome& o) {
  o.burst(50, [&](std::size_t size, auto f) { return rt.spawn({.stack_size = size}, f); });
  try {
    rt.run([&] { o.burst(1'000, [&](std::size_t size, auto f) { return weft::spawn({.stack_size = size}, f); }); });
  } catch (const std::bad_alloc&) {}
}

// For n = 0, 1, … until a whole life of a runtime makes fewer calls than n.
void fails_cleanly_at_every(base::atomic<long>& refused, base::atomic<long>& calls, long most) {
  unreliable_memory memory;
  std::size_t exceptions = 0;
  long n = 0;
  for (; n < most; ++n) {
    unreliable_memory::reset();
    refused = n;
    outcome o;
    try {
      weft::runtime rt({.workers = 2, .elastic = false});
      use(rt, o);
      o.check();
      exceptions += o.not_spawned + o.no_stack;
      refused = -1;
      outcome again;
      use(rt, again);  // the runtime has not been harmed
      again.check();
      EXPECT_EQ(again.ran, again.tried) << "after the failure of call " << n;
    } catch (const std::bad_alloc&) {
      ++exceptions;
    } catch (const std::system_error&) {
      ++exceptions;
    }
    ASSERT_EQ(unreliable_memory::mapped.load(), 0) << "leaked after the failure of call " << n;
    if (testing::Test::HasFailure()) return;
    if (calls.load() <= n) break;
  }
  EXPECT_GT(n, 5) << "more calls were expected";
  (void)exceptions;
}

// req: W-9
TEST(Memory, a_map_that_fails_at_the_nth_call_costs_an_exception_at_most_and_leaks_nothing) {
  support::watchdog guard(280s);
  fails_cleanly_at_every(unreliable_memory::refused_map, unreliable_memory::maps, 500);
}

// req: W-9
TEST(Memory, an_advice_or_protection_that_fails_at_the_nth_call_costs_an_exception_at_most_and_leaks_nothing) {
  support::watchdog guard(280s);
  fails_cleanly_at_every(unreliable_memory::refused_other, unreliable_memory::others,
                         support::under_asan || support::under_tsan ? 20 : 100);
}

// req: W-9
TEST(Memory, a_task_for_which_no_stack_can_be_had_ends_with_bad_alloc_for_its_joiner) {
  support::watchdog guard(60s);
  unreliable_memory memory;
  {
    weft::runtime rt({.workers = 2, .elastic = false});
    rt.run([] {});
    unreliable_memory::refuse_all = true;
    bool ran = false;
    auto h = rt.spawn({.name = "large", .stack_size = 16 << 20}, [&] { ran = true; });
    EXPECT_THROW(h.join(), std::bad_alloc);
    EXPECT_FALSE(ran);
    unreliable_memory::refuse_all = false;
    auto again = rt.spawn({.stack_size = 16 << 20}, [&] { ran = true; });
    again.join();
    EXPECT_TRUE(ran);
  }
  EXPECT_EQ(unreliable_memory::mapped.load(), 0);
}

// req: W-9
TEST(Memory, while_another_task_holds_a_stack_one_without_waits_for_better_times) {
  support::watchdog guard(60s);
  unreliable_memory memory;
  weft::runtime rt({.workers = 2, .elastic = false});
  base::atomic<bool> go{false};
  base::atomic<bool> running{false};
  auto holder = rt.spawn([&] {
    running = true;
    while (!go.load()) weft::sleep_for(1ms);
  });
  support::until([&] { return running.load(); });
  unreliable_memory::refuse_all = true;
  const long before = unreliable_memory::maps.load();
  auto h = rt.spawn({.stack_size = 8 << 20}, [] { return 1; });
  support::until([&] { return unreliable_memory::maps.load() > before; });
  EXPECT_FALSE(h.is_finished());
  unreliable_memory::refuse_all = false;
  EXPECT_EQ(h.join(), 1);
  go = true;
  holder.join();
}

// req: W-9
TEST(Memory, when_no_record_can_be_had_spawn_throws_bad_alloc_and_existing_tasks_go_on) {
  support::watchdog guard(60s);
  unreliable_memory memory;
  weft::runtime rt({.workers = 2, .elastic = false});
  rt.spawn([] {}).join();  // some stacks and records are there
  unreliable_memory::refuse_all = true;
  base::atomic<bool> go{false};
  std::vector<weft::join_handle<void>> held;
  bool refused = false;
  for (int i = 0; i < 100'000 && !refused; ++i) try {
      held.push_back(rt.spawn([&] { support::until([&] { return go.load(); }); }));
    } catch (const std::bad_alloc&) {
      refused = true;
    }
  EXPECT_TRUE(refused);
  EXPECT_GT(held.size(), 10u);
  unreliable_memory::refuse_all = false;
  go = true;
  for (auto& h : held) h.join();
  EXPECT_EQ(rt.run([] { return 1; }), 1);
}

}  // namespace
