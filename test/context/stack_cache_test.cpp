#include <gtest/gtest.h>

#include <vector>

#include "context/failing_memory.hpp"
#include "context/stack.hpp"

namespace {

using namespace weft::context;

// req: KC-5
TEST(StackCache, a_hit_does_not_reach_the_pool_and_gives_the_last_one_put) {
  stack_pool pool;
  stack_cache cache(pool);
  stack *a = cache.take(), *b = cache.take();
  const std::size_t out = pool.in_use();
  EXPECT_TRUE(cache.put(a));
  EXPECT_TRUE(cache.put(b));
  EXPECT_EQ(cache.take(), b);
  EXPECT_EQ(cache.take(), a);
  EXPECT_EQ(pool.in_use(), out);
  cache.put(a);
  cache.put(b);
}

// req: KC-5
TEST(StackCache, is_bounded_and_passes_the_oldest_on) {
  stack_pool pool;
  stack_cache cache(pool);
  std::vector<stack*> held;
  for (int i = 0; i < 1000; ++i) held.push_back(pool.acquire());
  for (stack* s : held) {
    EXPECT_TRUE(cache.put(s));
    EXPECT_LE(cache.size(), stack_cache::capacity);
  }
  EXPECT_EQ(pool.in_use(), cache.size());
  EXPECT_EQ(cache.take(), held.back());
  EXPECT_TRUE(cache.put(held.back()));
  cache.drain();
  EXPECT_EQ(cache.size(), 0u);
  EXPECT_EQ(pool.in_use(), 0u);
  EXPECT_EQ(pool.acquire(), held.back()) << "draining keeps the newest on top";
  pool.release(held.back());
  pool.verify();
}

TEST(StackCache, takes_the_warmest_of_the_pool) {
  stack_pool pool;
  std::vector<stack*> held;
  for (int i = 0; i < 100; ++i) held.push_back(pool.acquire());
  for (stack* s : held) pool.release(s);
  stack_cache cache(pool);
  for (std::size_t i = 0; i < 2 * stack_cache::batch; ++i) {
    EXPECT_EQ(cache.take(), held[99 - i]);
  }
  for (std::size_t i = 0; i < 2 * stack_cache::batch; ++i) pool.release(held[99 - i]);
}

TEST(StackCache, refuses_a_stack_of_another_size) {
  stack_pool pool;
  stack_cache cache(pool);
  stack* s = pool.acquire(smallest_stack);
  EXPECT_FALSE(cache.put(s));
  pool.release(s);
}

// req: W-9
TEST(StackCache, says_nullptr_when_the_pool_has_none) {
  stack_pool pool({.max_stacks = 2});
  stack_cache cache(pool);
  stack *a = cache.take(), *b = cache.take();
  EXPECT_NE(b, nullptr);
  EXPECT_EQ(cache.take(), nullptr);
  pool.release(b);
  EXPECT_EQ(cache.take(), b);
  pool.release(a);
  pool.release(b);
}

TEST(StackCache, keeps_none_while_stacks_are_limited) {
  stack_pool pool({.max_stacks = 8});
  stack_cache cache(pool);
  stack* s = cache.take();
  EXPECT_EQ(cache.size(), 0u) << "the others may start only if it takes no more than it needs";
  EXPECT_FALSE(cache.put(s));
  pool.release(s);
}

}  // namespace
