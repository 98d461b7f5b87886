// Who keeps a record alive, when its closure goes, and what a recycled record remembers.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/until.hpp"
#include "support/watchdog.hpp"
#include "support/worker_counts.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace std::chrono_literals;
using weft::task::record;

std::uint32_t count(const record* r) { return r->references.load(); }
record* self() { return weft::waits::current_task(); }

// req: BZ-7
TEST(References, scheduler_handle_and_ref_each_hold_one) {
  support::watchdog guard(60s, "references");
  support::watched_runtime rt(1);
  support::latch may_end;
  weft::base::atomic<record*> seen{nullptr};
  auto h = rt->spawn([&] {
    seen.store(self());
    may_end.wait();
  });
  support::until([&] { return seen.load() != nullptr; });
  record* r = seen.load();
  EXPECT_EQ(count(r), 2u) << "scheduler, handle";
  {
    weft::task_ref a = h.ref();
    weft::task_ref b = a;
    EXPECT_EQ(count(r), 4u);
    weft::task_ref moved = std::move(a);
    EXPECT_EQ(count(r), 4u);
  }
  EXPECT_EQ(count(r), 2u);
  {
    auto end = ~h;
    auto copy = end;
    EXPECT_EQ(count(r), 4u) << "each arm of a select as well";
    auto joins = h.on_join([] {});
    EXPECT_EQ(weft::select(copy, joins, weft::otherwise).index(), 2u);
  }
  EXPECT_EQ(count(r), 2u);
  may_end.count_down();
  h.wait();
  support::until([&] { return count(r) == 1; });  // the finisher drops the scheduler's last
  weft::task_ref last = h.ref();
  h.join();
  EXPECT_EQ(count(r), 1u) << "the ref keeps it";
  EXPECT_TRUE(last.is_finished());
}

// req: BZ-7
TEST(References, a_record_is_not_recycled_while_a_ref_to_it_lives) {
  support::watchdog guard(60s, "a held record");
  support::watched_runtime rt(1);
  rt->run([] {
    record* held = nullptr;
    auto h = weft::spawn([&] { held = self(); });
    const weft::task_ref ref = h.ref();
    const std::uint64_t id = ref.id();
    h.join();
    for (int i = 0; i < 5000; ++i) {
      record* other = nullptr;
      weft::spawn([&] { other = self(); }).join();
      EXPECT_NE(other, held);
    }
    EXPECT_EQ(ref.id(), id);
    EXPECT_TRUE(ref.is_finished());
  });
}

// req: BZ-7 LS-M1
TEST(References, the_last_one_to_go_frees_the_record_for_the_next_task) {
  if (weft::sched::force_migration) GTEST_SKIP() << "tasks end on other workers, with other caches, in this build";
  support::watchdog guard(60s, "a recycled record");
  support::watched_runtime rt(1);
  rt->run([] {
    record* first = nullptr;
    record* second = nullptr;
    auto h = weft::spawn([&] { first = self(); });
    weft::task_ref ref = h.ref();
    h.join();
    ref = {};
    weft::spawn([&] { second = self(); }).join();
    EXPECT_EQ(first, second);
  });
}

// req: BZ-7
TEST(References, are_dropped_from_many_threads_and_the_record_is_freed_once) {
  support::watchdog guard(60s, "references dropped by many");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    for (std::size_t round = 0; round < support::scaled(300); ++round) {
      auto h = rt->spawn([] { weft::yield(); });
      std::vector<std::thread> outside;
      for (int t = 0; t < 2; ++t)
        outside.emplace_back([ref = h.ref()] { std::vector<weft::task_ref> copies(10, ref); });
      std::vector<weft::join_handle<void>> inside;
      for (int t = 0; t < 4; ++t)
        inside.push_back(rt->spawn([ref = h.ref()] {
          weft::task_ref copy = ref;
          weft::yield();
        }));
      if (round % 2 == 0) h.detach();
      for (auto& t : outside) t.join();
      for (auto& t : inside) t.join();
    }
    // A record freed twice would now be handed out twice.
    rt->run([] {
      std::set<record*> different;
      std::vector<weft::join_handle<record*>> all;
      support::latch everybody(2000);
      for (int i = 0; i < 2000; ++i)
        all.push_back(weft::spawn([&] {
          everybody.arrive_and_wait();
          return self();
        }));
      for (auto& h : all) different.insert(h.join());
      EXPECT_EQ(different.size(), 2000u);
    });
  });
}

struct probe {
  explicit probe(weft::base::atomic<int>& n) : alive(&n) { alive->fetch_add(1); }
  probe(probe&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
  ~probe() {
    if (alive != nullptr) alive->fetch_sub(1);
  }
  weft::base::atomic<int>* alive;
};

// req: LS-M1
TEST(Closure, is_destroyed_when_the_task_ends_though_its_handle_lives_on) {
  support::watchdog guard(60s, "closures");
  support::watched_runtime rt(2);
  weft::base::atomic<int> alive{0};
  auto small = rt->spawn([p = probe(alive)] { return 1; });
  auto large = rt->spawn([p = probe(alive), room = std::array<char, 1000>{}] { return static_cast<int>(room[0]) + 2; });
  auto throwing = rt->spawn([p = probe(alive)] { throw 3; });
  small.wait();
  large.wait();
  throwing.wait();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_EQ(small.join(), 1);
  EXPECT_EQ(large.join(), 2);
  EXPECT_THROW(throwing.join(), int);
}

// req: LS-M1
TEST(Closure, of_a_cancelled_task_is_destroyed_too) {
  support::watchdog guard(60s, "the closure of a cancelled task");
  support::watched_runtime rt(2);
  weft::base::atomic<int> alive{0};
  weft::base::atomic<bool> never{false};
  auto h = rt->spawn([p = probe(alive), &never] {
    for (;;) weft::park_if(never, false);
  });
  h.cancel();
  h.wait();
  EXPECT_EQ(alive.load(), 0);
  EXPECT_THROW(h.join(), weft::task_cancelled);
}

// req: LS-M1 KC-5
TEST(Records, are_recycled_so_that_a_spawning_loop_does_not_grow) {
  support::watchdog guard(100s, "a spawning loop");
  support::at_worker_counts([](std::size_t workers) {
    support::watched_runtime rt(workers);
    rt->run([&] {
      const auto rounds = [](std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
          std::vector<weft::join_handle<void>> few;
          for (int k = 0; k < 10; ++k) few.push_back(weft::spawn([] {}));
          for (auto& h : few) h.join();
        }
      };
      rounds(100);
      const std::size_t before = rt.core().records().slab_count();
      rounds(support::scaled(5000));
      // Each worker may keep a cache full; beyond that nothing grows.
      EXPECT_LE(rt.core().records().slab_count(), before + 1);
    });
  });
}

// req: LS-M1
TEST(Records, go_back_to_the_system_when_the_runtime_goes_NoAsan_NoTsan) {
  support::watchdog guard(100s, "runtimes with many records");
  const auto cycle = [] {
    support::watched_runtime rt(2);
    rt->run([] {
      support::latch everybody(20'000);
      std::vector<weft::join_handle<void>> all;
      for (int i = 0; i < 20'000; ++i)
        all.push_back(weft::spawn({.stack_size = 16 << 10}, [&] { everybody.count_down(); }));
      for (auto& h : all) h.join();
    });
  };
  cycle();
  const std::size_t before = support::rss();
  const std::size_t mappings = support::mappings();
  for (int i = 0; i < 5; ++i) cycle();
  EXPECT_LT(support::rss(), before + (8u << 20));
  EXPECT_LE(support::mappings(), mappings + 8);
}

}  // namespace
