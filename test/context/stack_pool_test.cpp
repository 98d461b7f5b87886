#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "context/failing_memory.hpp"
#include "context/process.hpp"
#include "context/size_class.hpp"
#include "context/stack.hpp"
#include "context/system_memory.hpp"
#include "context/valgrind.hpp"

namespace {

using namespace weft::context;
using testing::HasSubstr;
using testing::ThrowsMessage;
using weft_test::failing_memory;

// req: W-9
TEST(StackPool, refuses_absurd_sizes_and_names_the_limits) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, smallest_stack - 1, largest_stack + 1, std::size_t{1} << 40, SIZE_MAX}) {
    EXPECT_THAT([=] { (void)stack_pool::check_size(size); },
                ThrowsMessage<std::invalid_argument>(
                    testing::AllOf(HasSubstr(std::to_string(size)), HasSubstr("16 KiB"), HasSubstr("1 GiB"))));
    EXPECT_THROW(stack_pool({.default_size = size}), std::invalid_argument);
  }
  EXPECT_THROW(stack_pool({.guard_size = 0}), std::invalid_argument);
}

TEST(StackPool, rounds_a_size_up_to_a_class_that_wastes_at_most_a_third) {
  EXPECT_EQ(stack_pool::check_size(smallest_stack), smallest_stack);
  EXPECT_EQ(stack_pool::check_size(default_stack), default_stack);
  EXPECT_EQ(stack_pool::check_size(largest_stack), largest_stack);
  for (std::size_t size = smallest_stack; size < largest_stack; size += size / 7 + 1) {
    const std::size_t rounded = stack_pool::check_size(size);
    EXPECT_GE(rounded, size);
    EXPECT_LT(rounded, size + size / 2 + 4096);
    EXPECT_EQ(rounded % 4096, 0u);
    EXPECT_EQ(stack_pool::check_size(rounded), rounded);
  }
}

TEST(StackPool, hands_out_stacks_that_do_not_overlap_and_can_be_written_from_end_to_end) {
  stack_pool pool;
  std::vector<stack*> held;
  std::set<std::pair<std::byte*, std::byte*>> ranges;
  for (int i = 0; i < 100; ++i)
    for (const std::size_t size : {smallest_stack, default_stack, std::size_t{1} << 20}) {
      stack* s = pool.acquire(size);
      ASSERT_NE(s, nullptr);
      EXPECT_GE(s->size, size);
      std::memset(s->base + 64, i, s->size - 64);  // above the canary
      ranges.emplace(s->base, s->base + s->size);
      held.push_back(s);
    }
  EXPECT_EQ(ranges.size(), 300u);
  std::byte* last = nullptr;
  for (const auto& [begin, end] : ranges) {
    EXPECT_TRUE(last == nullptr || begin - last >= 64 << 10) << "no room for a guard";
    last = end;
  }
  EXPECT_EQ(pool.in_use(), 300u);
  pool.verify();
  for (stack* s : held) pool.release(s);
  EXPECT_EQ(pool.in_use(), 0u);
}

// req: KC-5
TEST(StackPool, gives_the_most_recently_freed_stack_first_and_keeps_classes_apart) {
  stack_pool pool;
  stack *a = pool.acquire(), *b = pool.acquire(), *large = pool.acquire(std::size_t{1} << 20);
  pool.release(a);
  pool.release(large);
  pool.release(b);
  EXPECT_EQ(pool.acquire(), b);
  EXPECT_EQ(pool.acquire(), a);
  EXPECT_EQ(pool.acquire((std::size_t{1} << 20) - 5), large);
  for (stack* s : {a, b, large}) pool.release(s);
}

TEST(StackPool, travels_in_chains) {
  stack_pool pool;
  stack* chain = pool.acquire_batch(10);
  std::size_t count = 0;
  for (stack* s = chain; s != nullptr; s = s->next) ++count;
  EXPECT_EQ(count, 10u);
  EXPECT_EQ(pool.in_use(), 10u);
  stack* other = pool.acquire(smallest_stack);
  other->next = chain;  // a chain may mix sizes
  pool.release_batch(other);
  EXPECT_EQ(pool.in_use(), 0u);
  pool.verify();
}

// req: W-9
TEST(StackPool, says_nullptr_at_its_limit_and_goes_on_when_one_comes_back) {
  stack_pool pool({.max_stacks = 3});
  stack *a = pool.acquire(), *b = pool.acquire(smallest_stack), *c = pool.acquire();
  EXPECT_EQ(pool.acquire(), nullptr);
  EXPECT_EQ(pool.acquire_batch(5), nullptr);
  EXPECT_EQ(pool.in_use(), 3u);
  pool.release(b);
  stack* d = pool.acquire_batch(5);
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->next, nullptr);
  for (stack* s : {a, c, d}) pool.release(s);
}

// req: CC-14 W-9
TEST(StackPool, whoever_gets_none_learns_whether_one_may_come_back) {
  stack_pool pool({.max_stacks = 1});
  const stack_pool::attempt first = pool.try_acquire(default_stack);
  ASSERT_NE(first.got, nullptr);
  EXPECT_FALSE(first.others_out);
  const stack_pool::attempt second = pool.try_acquire(default_stack);
  EXPECT_EQ(second.got, nullptr);
  EXPECT_TRUE(second.others_out);
  pool.release(first.got);
  // However quickly it comes and goes: there is one, so that nobody is told there will be none.
  std::atomic<bool> stop{false};
  const auto come_and_go = [&] {
    while (!stop.load())
      if (stack* s = pool.acquire()) pool.release(s);
  };
  std::thread other(come_and_go);
  int missed = 0;
  for (int i = 0; i < 200'000; ++i) {
    const stack_pool::attempt a = pool.try_acquire(default_stack);
    if (a.got != nullptr)
      pool.release(a.got);
    else if (!a.others_out)
      ++missed;
  }
  stop.store(true);
  other.join();
  EXPECT_EQ(missed, 0);
}

TEST(StackPool, successive_stacks_start_in_different_cache_sets_and_leave_half_a_page) {
  stack_pool pool;
  std::set<std::uintptr_t> offsets;
  std::vector<stack*> held;
  for (int i = 0; i < 32; ++i) {
    held.push_back(pool.acquire());
    const auto top = reinterpret_cast<std::uintptr_t>(held.back()->top());
    const auto end = reinterpret_cast<std::uintptr_t>(held.back()->base + held.back()->size);
    EXPECT_EQ(top % 64, 0u);
    EXPECT_LE(end - top, 2048u);
    offsets.insert(top % 4096);
  }
  EXPECT_EQ(offsets.size(), 32u);
  for (stack* s : held) pool.release(s);
}

std::size_t resident_pages(const stack& s) {
  std::vector<unsigned char> map(s.size / 4096);
  EXPECT_EQ(mincore(s.base, s.size, map.data()), 0);
  std::size_t count = 0;
  for (const unsigned char page : map) count += page & 1;
  return count;
}

TEST(StackPool, a_small_fiber_costs_one_page) {
  stack_pool pool({.canary = false});
  std::vector<stack*> held;
  for (int i = 0; i < 40; ++i) {
    stack* s = pool.acquire();
    EXPECT_EQ(resident_pages(*s), 0u);
    std::memset(static_cast<std::byte*>(s->top()) - 2000, 1, 2000);
    EXPECT_EQ(resident_pages(*s), 1u);
    held.push_back(s);
  }
  for (stack* s : held) pool.release(s);
}

TEST(StackPool, stacks_that_come_together_bring_the_page_they_start_on) {
  stack_pool pool({.canary = false});
  stack* few = pool.acquire_batch(64);  // a small program does not pay for what it may not need
  for (const stack* s = few; s != nullptr; s = s->next) EXPECT_EQ(resident_pages(*s), 0u);
  stack* more = pool.acquire_batch(32);
  ASSERT_NE(more, nullptr);
  const memory_range top{more->base + more->size - page_size(), page_size()};
  const bool possible = !running_on_valgrind() && real_memory().advise_many(&top, 1, MADV_POPULATE_WRITE) == 1;
  for (const stack* s = more; possible && s != nullptr; s = s->next) EXPECT_EQ(resident_pages(*s), 1u);
  pool.release_batch(few);
  pool.release_batch(more);
  if (!possible) GTEST_SKIP() << "this kernel has no process_madvise for it";
}

// req: KC-5
TEST(StackPool, trim_gives_memory_back_down_to_the_cache_NoAsan_NoTsan) {
  stack_pool pool({.cache_bytes = 100 * default_stack, .canary = false});
  constexpr std::size_t count = 3000;
  constexpr std::size_t touched = 64 << 10;
  const std::size_t before = weft_test::status_kib("VmRSS:");
  std::vector<stack*> held;
  for (std::size_t i = 0; i < count; ++i) {
    held.push_back(pool.acquire());
    std::memset(static_cast<std::byte*>(held.back()->top()) - touched, 1, touched);
  }
  const std::size_t during = weft_test::status_kib("VmRSS:");
  EXPECT_GT(during - before, count * touched / 1024 * 9 / 10);
  std::shuffle(held.begin(), held.end(), std::mt19937(7));
  for (stack* s : held) pool.release(s);
  EXPECT_EQ(pool.surplus_bytes(), (count - 100) * default_stack);
  EXPECT_EQ(pool.trim(), (count - 100) * default_stack);
  EXPECT_EQ(pool.surplus_bytes(), 0u);
  EXPECT_EQ(pool.trim(), 0u);
  pool.verify();
  // The hundred that stay, and some slack for this vector and the records.
  EXPECT_LT(weft_test::status_kib("VmRSS:"), before + 100 * (touched + 4096) / 1024 + 1024);
}

TEST(StackPool, trim_leaves_alone_what_is_in_use) {
  stack_pool pool({.cache_bytes = 0});
  std::vector<stack*> kept, freed;
  for (int i = 0; i < 1000; ++i) {
    stack* s = pool.acquire(smallest_stack);
    std::memset(s->base + 64, i % 251, s->size - 64);
    (i % 3 == 0 ? kept : freed).push_back(s);
  }
  for (stack* s : freed) pool.release(s);
  EXPECT_EQ(pool.trim(), freed.size() * smallest_stack);
  pool.verify();
  for (std::size_t i = 0; i < kept.size(); ++i)
    for (std::size_t at = 64; at < kept[i]->size; at += 512)
      ASSERT_EQ(kept[i]->base[at], static_cast<std::byte>(3 * i % 251));
  std::set<stack*> again;
  for (std::size_t i = 0; i < freed.size(); ++i) again.insert(pool.acquire(smallest_stack));
  EXPECT_EQ(again, std::set<stack*>(freed.begin(), freed.end())) << "clean stacks are used again before new ones";
  for (stack* s : again) EXPECT_EQ(s->base[1000], std::byte{0});
  for (stack* s : again) pool.release(s);
  for (stack* s : kept) pool.release(s);
}

TEST(StackPool, trim_unmaps_regions_that_nobody_uses_and_maps_them_again_when_needed) {
  stack_pool pool({.cache_bytes = 10 * default_stack});
  for (int round = 0; round < 3; ++round) {
    std::vector<stack*> held;
    for (int i = 0; i < 2000; ++i) {
      held.push_back(pool.acquire());
      held.back()->base[held.back()->size - 1] = std::byte{1};
    }
    EXPECT_GE(pool.reserved_bytes(), 2000 * (default_stack + (64 << 10)));
    for (stack* s : held) pool.release(s);
    EXPECT_GT(pool.trim(), 0u);
    EXPECT_LE(pool.reserved_bytes(), 200 * (default_stack + (64 << 10)));
    pool.verify();
  }
}

TEST(StackPool, reserved_bytes_count_the_smallest_stacks_too) {
  stack_pool pool;
  stack* s = pool.acquire(weft::context::smallest_stack);
  EXPECT_GE(pool.reserved_bytes(), weft::context::smallest_stack);
  pool.release(s);
}

// context.I6: a dump may look at a record whenever it likes.
TEST(StackPool, records_stay_readable_after_their_region_was_unmapped) {
  stack_pool pool({.cache_bytes = 0});
  std::vector<stack*> held;
  for (int i = 0; i < 1000; ++i) held.push_back(pool.acquire());
  for (stack* s : held) pool.release(s);
  (void)pool.trim();
  EXPECT_EQ(pool.reserved_bytes(), 0u);
  std::size_t size = 0;
  for (stack* s : held) size |= static_cast<volatile stack*>(s)->size;
  EXPECT_TRUE(size == 0 || size == default_stack);
}

TEST(StackPool, gives_everything_back_when_it_ends) {
  failing_memory counted;
  {
    stack_pool pool;
    std::vector<stack*> held;
    for (int i = 0; i < 1000; ++i) held.push_back(pool.acquire(i % 2 == 0 ? default_stack : smallest_stack));
    EXPECT_GT(failing_memory::mapped, 0);
    for (stack* s : held) pool.release(s);
  }
  EXPECT_EQ(failing_memory::mapped, 0);
}

// A life of a pool in which any call may fail: acquires in several ways, trims, acquires again.
std::size_t exercise(stack_pool& pool) {
  std::vector<stack*> held;
  std::size_t refused = 0;
  weft_test::fault_probe probe;
  const auto keep = [&](stack* s) {
    s != nullptr ? held.push_back(s) : void(++refused);
    EXPECT_TRUE(s == nullptr || probe.faults(s->base - 1)) << "handed out without a guard";
  };
  const auto free_all = [&] {
    for (stack* s : held) pool.release(s);
    held.clear();
  };
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 30; ++i) keep(pool.acquire(i % 5 == 0 ? std::size_t{1} << 20 : default_stack));
    for (int i = 0; i < 5; ++i) {
      stack* chain = pool.acquire_batch(32);
      if (chain == nullptr) ++refused;
      while (chain != nullptr) keep(std::exchange(chain, chain->next));
    }
    for (stack* s : held) std::memset(static_cast<std::byte*>(s->top()) - 100, 1, 100);
    stack* pinned = held.empty() ? nullptr : held.back();
    if (pinned != nullptr) held.pop_back();
    free_all();
    (void)pool.trim();
    pool.verify();
    if (pinned != nullptr) pool.release(pinned);
    (void)pool.trim();
    pool.verify();
  }
  EXPECT_EQ(pool.in_use(), 0u);
  return refused;
}

// req: W-9
TEST(StackPool, nth_failure_leaks_nothing_and_leaves_the_pool_usable) {
  failing_memory memory;
  int failures_met = 0;
  for (int n = 0; n < 200; ++n) {
    failing_memory::calls = 0;
    failing_memory::fail_at = n;
    {
      stack_pool pool({.cache_bytes = 3 * default_stack});
      (void)exercise(pool);
      failures_met += failing_memory::calls > n;
      failing_memory::fail_at = -1;
      EXPECT_EQ(exercise(pool), 0u) << "after the failure of call " << n;
    }
    ASSERT_EQ(failing_memory::mapped, 0) << "call " << n << " failed";
  }
  EXPECT_GT(failures_met, 50) << "the exercise makes too few calls to be one";
}

// req: W-9
TEST(StackPool, says_nullptr_while_there_is_no_memory_and_recovers) {
  failing_memory memory;
  stack_pool pool;
  failing_memory::fail_all_maps = true;
  EXPECT_EQ(pool.acquire(), nullptr);
  EXPECT_FALSE(pool.try_acquire(default_stack).others_out) << "none will come back";
  EXPECT_EQ(pool.acquire_batch(32), nullptr);
  EXPECT_EQ(pool.in_use(), 0u);
  failing_memory::fail_all_maps = false;
  EXPECT_EQ(exercise(pool), 0u);
}

TEST(StackPool, trim_that_may_not_unmap_gives_back_the_pages_at_least) {
  failing_memory memory;
  stack_pool pool({.cache_bytes = 0, .canary = false});
  stack* s = pool.acquire();
  std::memset(s->base, 1, s->size);
  pool.release(s);
  failing_memory::fail_unmap = true;
  EXPECT_EQ(pool.trim(), default_stack);
  EXPECT_EQ(resident_pages(*s), 0u);
  failing_memory::fail_unmap = false;
  pool.verify();
  EXPECT_EQ(exercise(pool), 0u);
}

// The system calls of trim run without the lock: somebody may want a stack in the middle of one.
TEST(StackPool, a_stack_taken_while_its_region_is_being_unmapped_is_another) {
  failing_memory memory;
  static stack_pool* pool;
  static stack* taken;
  stack_pool the_pool({.cache_bytes = 0});
  pool = &the_pool;
  taken = nullptr;
  std::vector<stack*> held;
  for (int i = 0; i < 50; ++i) held.push_back(pool->acquire());
  for (stack* s : held) pool->release(s);
  failing_memory::before_unmap = [] {
    failing_memory::before_unmap = nullptr;
    taken = pool->acquire();
  };
  EXPECT_EQ(pool->trim(), 50 * default_stack);
  ASSERT_NE(taken, nullptr) << "trim unmapped nothing";
  std::memset(taken->base + 64, 1, taken->size - 64);
  pool->release(taken);
  pool->verify();
}

// Counts and conserves: no stack is with two threads at once, none is lost, whatever trim does meanwhile.
TEST(StackPool, many_threads_share_it_while_another_trims) {
  stack_pool pool({.cache_bytes = 20 * smallest_stack});
  weft::base::atomic<int> running{4};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      std::vector<stack*> held;
      for (int i = 0; i < 5000; ++i) {
        if (random() % 2 == 0 || held.empty()) {
          stack* s = pool.acquire(random() % 4 == 0 ? default_stack : smallest_stack);
          ASSERT_NE(s, nullptr);
          ASSERT_EQ(s->owner, nullptr) << "somebody else has it";
          s->owner = &held;
          std::memcpy(static_cast<std::byte*>(s->top()) - 8, &s, sizeof s);
          held.push_back(s);
        } else {
          std::swap(held[random() % held.size()], held.back());
          stack* s = held.back();
          held.pop_back();
          ASSERT_EQ(s->owner, &held);
          ASSERT_EQ(std::memcmp(static_cast<std::byte*>(s->top()) - 8, &s, sizeof s), 0) << "lost its contents";
          pool.release(s);
        }
      }
      for (stack* s : held) pool.release(s);
      --running;
    });
  while (running > 0) (void)pool.trim();
  for (auto& t : threads) t.join();
  EXPECT_EQ(pool.in_use(), 0u);
  pool.verify();
}

}  // namespace
