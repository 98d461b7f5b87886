// Where records come from: slabs, the caches in front of them, and what is given back.
#include "task/record_pool.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>
#include <vector>

#include "context/system_memory.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
namespace task = weft::task;
using task::phase;
using task::record;
using task::record_cache;
using task::record_pool;
using task::slab;
using task::state_word;

struct retire {
  void operator()(record_pool* p) const { p->retire(); }
};
using pool_ptr = std::unique_ptr<record_pool, retire>;
pool_ptr make_pool() { return pool_ptr(new record_pool); }

record* acquire_one(record_pool& p) {
  std::size_t one = 1;
  return p.acquire(one);
}

void release_all(record_pool& p, const std::vector<record*>& all) {
  for (record* r : all) {
    r->next = nullptr;
    p.release(r);
  }
}

// One whole life with a wait in it: the ticket moves on by one.
task::ticket live(record* r) {
  r->word.reset_for_spawn(true);
  r->word.spawned();
  const task::ticket t = state_word::ticket_of(r->word.begin_park(0));
  r->word.abort_park();
  (void)r->word.finish(phase::done);
  return t;
}

// req: LS-M1 KC-5
TEST(RecordPool, a_record_given_back_is_handed_out_again_with_a_higher_ticket) {
  const pool_ptr pool = make_pool();
  record* r = acquire_one(*pool);
  ASSERT_NE(r, nullptr);
  const task::ticket first = live(r);
  release_all(*pool, {r});
  EXPECT_EQ(acquire_one(*pool), r);
  EXPECT_EQ(live(r), first + 1);
  release_all(*pool, {r});
}

// req: LS-M1
TEST(RecordPool, grows_by_slabs_and_not_while_there_are_free_ones) {
  const pool_ptr pool = make_pool();
  std::vector<record*> all;
  std::set<record*> different;
  for (std::size_t i = 0; i < slab::capacity; ++i) all.push_back(acquire_one(*pool));
  EXPECT_EQ(pool->slab_count(), 1u);
  all.push_back(acquire_one(*pool));
  EXPECT_EQ(pool->slab_count(), 2u);
  different.insert(all.begin(), all.end());
  EXPECT_EQ(different.size(), all.size());
  release_all(*pool, all);
  for (int round = 0; round < 10; ++round) {
    all.clear();
    for (std::size_t i = 0; i < 2 * slab::capacity; ++i) all.push_back(acquire_one(*pool));
    release_all(*pool, all);
  }
  EXPECT_EQ(pool->slab_count(), 2u);
}

// req: LS-M1
TEST(RecordPool, a_batch_is_a_chain_of_at_least_one_and_at_most_as_many_as_asked_for) {
  const pool_ptr pool = make_pool();
  std::size_t count = 32;
  record* chain = pool->acquire(count);
  std::size_t n = 0;
  for (record* r = chain; r != nullptr; r = r->next) ++n;
  EXPECT_EQ(n, count);
  EXPECT_GE(n, 1u);
  EXPECT_LE(n, 32u);
  pool->release(chain);
}

// req: LS-M1 LS-T1
TEST(RecordPool, trim_gives_whole_free_slabs_back_and_their_tickets_never_go_back) {
  const pool_ptr pool = make_pool();
  std::vector<record*> all;
  for (std::size_t i = 0; i < 2 * slab::capacity; ++i) all.push_back(acquire_one(*pool));
  std::vector<task::ticket> highest;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t n = 0; n < i % 5; ++n) (void)live(all[i]);
    highest.push_back(live(all[i]));
  }
  record* kept = all.back();
  slab* used = slab::of(kept);
  all.pop_back();
  release_all(*pool, all);
  EXPECT_EQ(pool->trim(), slab::bytes - slab::header_bytes) << "one of the two is in use";
  EXPECT_EQ(pool->trim(), 0u);
  all.push_back(kept);
  // A stale pointer still meets a word that no ticket of an earlier wait fits.
  for (std::size_t i = 0; i < all.size(); ++i)
    for (task::ticket t = 1; slab::of(all[i]) != used && t <= highest[i]; ++t) {
      EXPECT_EQ(all[i]->word.wake(t), task::wake_result::stale);
    }
  std::vector<record*> again;
  for (std::size_t i = 0; i < 2 * slab::capacity - 1; ++i) again.push_back(acquire_one(*pool));
  EXPECT_EQ(pool->slab_count(), 2u) << "the trimmed slab is used again";
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] != kept) {
      EXPECT_GT(live(all[i]), highest[i]);
    }
  again.push_back(kept);
  release_all(*pool, again);
}

// req: LS-M1 KC-5
TEST(RecordPool, trim_lowers_the_resident_size_NoAsan_NoTsan) {
  const pool_ptr pool = make_pool();
  std::vector<record*> all;
  for (std::size_t i = 0; i < 100 * slab::capacity; ++i) all.push_back(acquire_one(*pool));
  const std::size_t full = support::rss();
  release_all(*pool, all);
  EXPECT_EQ(pool->trim(), 100 * (slab::bytes - slab::header_bytes));
  EXPECT_LT(support::rss() + 20 * slab::bytes * 4, full) << "100 slabs of 256 KiB were given back";
}

// req: CSP-14 LS-M1
TEST(RecordPool, a_walk_sees_every_record_handed_out) {
  const pool_ptr pool = make_pool();
  std::vector<record*> all;
  for (std::size_t i = 0; i < slab::capacity + 10; ++i) all.push_back(acquire_one(*pool));
  std::set<const record*> seen;
  pool->walk([&](const record& r) { EXPECT_TRUE(seen.insert(&r).second); });
  for (record* r : all) EXPECT_EQ(seen.count(r), 1u);
  EXPECT_EQ(seen.size(), pool->slab_count() * slab::capacity);
  release_all(*pool, all);
}

// req: LS-M1
TEST(RecordPool, can_be_walked_without_locks_while_others_take_give_back_and_trim) {
  support::watchdog guard(60s, "a walk beside a busy pool");
  const pool_ptr pool = make_pool();
  weft::base::atomic<bool> over{false};
  weft::base::atomic<std::size_t> trimmed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      while (!over.load()) {
        std::vector<record*> mine;
        for (std::size_t i = 0; i < slab::capacity; ++i) {
          mine.push_back(acquire_one(*pool));
          (void)live(mine.back());
        }
        release_all(*pool, mine);
        if (pool->trim().value_or(0) != 0) trimmed.fetch_add(1);
      }
    });
  std::size_t odd = 0;
  for (std::size_t i = 0; i < support::scaled(500); ++i) {
    if (i % 16 == 0) std::this_thread::yield();  // so that some are trimmed
    pool->walk([&](const record& r) {
      const std::uint64_t w = r.word.peek();
      // Whatever the moment: a phase that exists, a kind that exists.
      if (state_word::phase_of(w) > phase::cancelled) ++odd;
    });
  }
  over.store(true);
  for (auto& t : threads) t.join();
  EXPECT_EQ(odd, 0u);
}

// req: LS-M1
TEST(RecordPool, keeps_its_pages_while_somebody_walks_and_gives_them_back_later) {
  const pool_ptr pool = make_pool();
  std::vector<record*> all;
  for (std::size_t i = 0; i < slab::capacity; ++i) all.push_back(acquire_one(*pool));
  release_all(*pool, all);
  std::size_t seen = 0;
  pool->walk([&](const record&) {
    if (seen++ == 0) {
      EXPECT_EQ(pool->trim(), std::nullopt);
    }
  });
  EXPECT_EQ(seen, slab::capacity) << "none is missing, during the walk";
  EXPECT_GT(pool->trim().value(), 0u);
  seen = 0;
  pool->walk([&](const record&) { ++seen; });
  EXPECT_EQ(seen, 0u) << "all have ended";
}

// req: LS-M1
TEST(RecordPool, goes_with_the_last_record_somebody_holds_not_before) {
  record_pool* pool = new record_pool;
  record* r = acquire_one(*pool);
  pool->retire();
  r->word.reset_for_spawn(false);  // still there
  r->next = nullptr;
  pool->release(r);  // deletes the pool: ASan and the leak checker watch
}

int slabs_unmapped = 0;
int counting_unmap(void* begin, std::size_t size) noexcept {
  if (size == slab::bytes) ++slabs_unmapped;
  return weft::context::real_memory().unmap(begin, size);
}

// Whatever a trim has given back and kept before.
// req: LS-M1 KC-5
TEST(RecordPool, goes_with_the_last_record_also_after_a_trim) {
  weft::context::system_memory counting = weft::context::real_memory();
  counting.unmap = &counting_unmap;
  auto* pool = new record_pool;
  std::vector<record*> all;
  for (std::size_t i = 0; i < 2 * slab::capacity; ++i) all.push_back(acquire_one(*pool));
  record* last = all.back();
  all.pop_back();
  release_all(*pool, all);
  EXPECT_EQ(pool->trim(), slab::bytes - slab::header_bytes) << "one of the two is in use";
  const weft::context::replace_system_memory replaced(counting);
  pool->retire();
  EXPECT_EQ(slabs_unmapped, 0);
  last->next = nullptr;
  pool->release(last);
  EXPECT_EQ(slabs_unmapped, 2);
}

int calls_left = 0;
void* failing_map(std::size_t size) noexcept {
  return calls_left-- > 0 ? weft::context::real_memory().map(size) : nullptr;
}

// req: W-9
TEST(RecordPool, without_memory_it_says_so_and_stays_usable) {
  weft::context::system_memory failing = weft::context::real_memory();
  failing.map = &failing_map;
  const pool_ptr pool = make_pool();
  std::vector<record*> all;
  {
    weft::context::replace_system_memory replaced(failing);
    calls_left = 1;
    for (record* r; (r = acquire_one(*pool)) != nullptr;) all.push_back(r);
    EXPECT_EQ(all.size(), slab::capacity);
    record_cache cache(*pool);
    EXPECT_EQ(cache.take(), nullptr);
    cache.put(all.back());
    EXPECT_EQ(cache.take(), all.back());
    EXPECT_EQ(cache.take(), nullptr);
    cache.put(all.back());
    all.pop_back();
  }
  all.push_back(acquire_one(*pool));
  EXPECT_NE(all.back(), nullptr);
  release_all(*pool, all);
}

// req: LS-M1 KC-5
TEST(RecordCache, keeps_a_few_warm_records_and_gives_the_rest_to_the_pool) {
  const pool_ptr pool = make_pool();
  {
    record_cache cache(*pool);
    record* r = cache.take();
    cache.put(r);
    EXPECT_EQ(cache.take(), r) << "the last one put is the warmest";
    std::vector<record*> many{r};
    for (std::size_t i = 0; i < 10 * record_cache::capacity; ++i) many.push_back(cache.take());
    EXPECT_EQ(std::set<record*>(many.begin(), many.end()).size(), many.size());
    for (record* m : many) cache.put(m);
    const std::size_t slabs = pool->slab_count();
    // What it did not keep is there for others.
    std::vector<record*> others;
    for (std::size_t i = 0; i < 9 * record_cache::capacity; ++i) others.push_back(acquire_one(*pool));
    EXPECT_EQ(pool->slab_count(), slabs);
    release_all(*pool, others);
  }
  EXPECT_EQ(pool->trim(), pool->slab_count() * (slab::bytes - slab::header_bytes)) << "a destroyed cache kept nothing";
}

// Many records that came back together are read from memory in the order of their addresses, not against it.
TEST(RecordCache, what_it_gave_to_the_pool_comes_back_in_the_order_in_which_it_came) {
  const pool_ptr pool = make_pool();
  record_cache cache(*pool);
  std::map<const record*, long> place;
  std::vector<record*> all;
  for (std::size_t i = 0; i < 2 * record_cache::capacity; ++i) {
    all.push_back(cache.take());
    place[all.back()] = static_cast<long>(i);
  }
  for (record* r : all) cache.put(r);
  EXPECT_EQ(cache.take(), all.back()) << "what it keeps is taken warmest first";
  cache.put(all.back());
  std::size_t forwards = 0;
  std::size_t backwards = 0;
  long last = -2;
  std::vector<record*> taken;
  while (taken.size() < all.size()) {
    taken.push_back(cache.take());
    const auto found = place.find(taken.back());
    const long now = found == place.end() ? -2 : found->second;  // others were in the pool before
    forwards += now == last + 1 ? 1 : 0;
    backwards += now == last - 1 ? 1 : 0;
    last = now;
  }
  EXPECT_GT(forwards, record_cache::capacity / 2) << "what it gave away";
  EXPECT_LT(backwards, record_cache::capacity) << "what it kept";
  for (record* r : taken) cache.put(r);
}

}  // namespace
