// A waker that comes too late, with a ticket of a wait that is over: of the same task, or of one whose record lives again.
#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"
#include "wait/semaphore.hpp"

namespace {

using namespace support::usual;
using weft::task::phase;
using weft::task::record;
using weft::task::record_pool;
using weft::task::state_word;
using weft_test::semaphore;
namespace task = weft::task;
namespace waits = weft::waits;

// req: LS-T1
TEST(Ticket, a_stale_node_does_not_wake_the_next_wait_of_the_same_task) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  semaphore first;
  semaphore second;
  waits::node old;
  base::atomic<int> step{0};
  auto h = rt->spawn([&] {
    waits::node n;
    EXPECT_EQ(first.take(n), waits::outcome::completed);
    old = n;
    step = 1;
    EXPECT_EQ(second.take(), waits::outcome::completed);
    step = 2;
  });
  until([&] { return first.waiters() == 1; });
  first.post();
  until([&] { return second.waiters() == 1; });
  const std::uint64_t before = old.who->word.load();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(waits::claim(old, task::wake_reason::data));
  EXPECT_EQ(old.who->word.load(), before) << "not even word was left";
  EXPECT_EQ(step.load(), 1);
  second.post();
  h.join();
  EXPECT_EQ(step.load(), 2);
}

// req: LS-T1
TEST(Ticket, a_stale_node_does_not_wake_another_task_in_the_same_record) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    constexpr std::size_t tasks = 200;
    constexpr std::size_t generations = 20;
    watched_runtime rt(workers);
    std::vector<waits::node> stale;
    std::size_t reused = 0;
    for (std::size_t g = 0; g <= generations; ++g) {
      semaphore s;
      base::atomic<std::size_t> woken{0};
      std::vector<waits::node> now(tasks);
      std::vector<weft::join_handle<void>> handles;
      for (std::size_t i = 0; i < tasks; ++i)
        handles.push_back(rt->spawn([&, i] {
          waits::node n;
          EXPECT_EQ(s.take(n), waits::outcome::completed);
          now[i] = n;
          ++woken;
        }));
      until([&] { return s.waiters() == tasks; });
      for (waits::node& n : stale) {
        if (state_word::phase_of(n.who->word.load()) == phase::parked) ++reused;
        EXPECT_FALSE(waits::claim(n, task::wake_reason::data));
      }
      EXPECT_EQ(s.waiters(), tasks);
      EXPECT_EQ(woken.load(), 0u);
      for (std::size_t i = 0; i < tasks; ++i) s.post();
      for (auto& h : handles) h.join();
      EXPECT_EQ(woken.load(), tasks);
      stale.insert(stale.end(), now.begin(), now.end());
    }
    EXPECT_GT(reused, tasks) << "records were to live several times for this test to say something";
  });
}

// req: LS-T1 LS-M1
TEST(Ticket, a_ticket_is_not_given_again_after_the_pages_of_its_slab_went_back) {
  auto* pool = new record_pool;  // goes by retire()
  std::vector<std::pair<record*, task::ticket>> known;
  for (int generation = 0; generation < 3; ++generation) {
    std::vector<record*> held;
    for (std::size_t i = 0; i < 2 * task::slab::capacity; ++i) {
      std::size_t one = 1;
      record* r = pool->acquire(one);
      ASSERT_NE(r, nullptr);
      held.push_back(r);
    }
    for (record* r : held) {
      for (const auto& [seen, last] : known)
        if (seen == r) {
          EXPECT_GE(state_word::ticket_of(r->word.load()), last);
        }
      r->word.reset_for_spawn(false);
      r->word.spawned();
      for (int i = 0; i <= generation + static_cast<int>(reinterpret_cast<std::uintptr_t>(r) / 64 % 3); ++i) {
        (void)r->word.begin_park(0);
        r->word.abort_park();
      }
    }
    known.clear();
    for (record* r : held) known.emplace_back(r, state_word::ticket_of(r->word.load()));
    for (record* r : held) {
      r->next = nullptr;
      pool->release(r);
    }
    EXPECT_GT(pool->trim(), 0u);
  }
  pool->retire();
}

}  // namespace
