// join_handle and task_ref: the result or the exception goes once, to the one caller that may have it.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/usual.hpp"
#include "task/task.hpp"

namespace {

using namespace support::usual;

static_assert(!std::is_copy_constructible_v<weft::join_handle<int>>);
static_assert(std::is_nothrow_move_constructible_v<weft::join_handle<int>>);
static_assert(std::is_copy_constructible_v<weft::task_ref>);

// Alive at a time.
struct counted {
  static inline base::atomic<int> alive{0};
  int value = 0;
  explicit counted(int v) : value(v) { ++alive; }
  counted(counted&& other) noexcept : value(other.value) { ++alive; }
  counted(const counted& other) : value(other.value) { ++alive; }
  counted& operator=(const counted&) = default;
  ~counted() { --alive; }
};

// req: BZ-8
TEST(Handle, join_delivers_the_result_once) {
  support::watchdog guard(20s);
  {
    watched_runtime rt(2);
    auto h = rt->spawn([] { return counted(7); });
    EXPECT_EQ(h.join().value, 7);
    EXPECT_FALSE(h.joinable());
    EXPECT_EQ(counted::alive.load(), 0) << "nothing is kept in the record";
  }
  EXPECT_EQ(counted::alive.load(), 0);
}

// req: BZ-8
TEST(Handle, join_delivers_the_exception_once) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  auto h = rt->spawn([]() -> int { throw std::out_of_range("mine"); });
  try {
    (void)h.join();
    ADD_FAILURE() << "joined";
  } catch (const std::out_of_range& e) {
    EXPECT_STREQ(e.what(), "mine");
  }
  EXPECT_FALSE(h.joinable());
  EXPECT_THROW((void)h.join(), weft::usage_error);
}

// One after the other on one worker, so that neither looks at the handle while the other changes it.
// req: BZ-8 CC-6
TEST(Handle, of_two_tasks_that_join_the_same_handle_one_gets_the_result_and_the_other_is_told) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    base::atomic<bool> closed{true};
    auto h = weft::spawn({.name = "wanted"}, [&] {
      while (closed.load()) weft::park_if(closed, true);
      return std::make_unique<int>(7);
    });
    int results = 0;
    std::string complaint;
    const auto joins = [&] {
      try {
        EXPECT_EQ(*h.join(), 7);
        ++results;
      } catch (const weft::usage_error& e) {
        complaint = e.what();
      }
    };
    auto first = weft::spawn(joins);
    auto second = weft::spawn(joins);
    for (int i = 0; i < 10; ++i) weft::yield();  // one worker: both have parked by now
    closed = false;
    h.ref().unpark();
    first.join();
    second.join();
    EXPECT_EQ(results, 1);
    EXPECT_NE(complaint.find("joined by somebody else meanwhile; only one may join(), others wait()"),
              std::string::npos)
        << complaint;
    EXPECT_NE(complaint.find("handle_test.cpp"), std::string::npos) << complaint;
  });
}

// req: BZ-8 CC-6
TEST(Handle, those_who_wait_are_not_disturbed_by_the_one_who_joins) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  rt->run([] {
    base::atomic<bool> closed{true};
    auto h = weft::spawn([&] {
      while (closed.load()) weft::park_if(closed, true);
      return 7;
    });
    int woken = 0;
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 10; ++i)
      all.push_back(weft::spawn([&, i] {
        if (i == 3)
          EXPECT_EQ(h.join(), 7);
        else
          h.wait();
        ++woken;
      }));
    for (int i = 0; i < 20; ++i) weft::yield();
    closed = false;
    h.ref().unpark();
    for (auto& w : all) w.join();
    EXPECT_EQ(woken, 10);
  });
}

// req: BZ-8 CC-6
TEST(Handle, those_who_wait_already_are_not_disturbed_by_a_join_on_another_thread) {
  support::watchdog guard(60s);
  watched_runtime rt(4);
  for (std::size_t round = 0; round < support::scaled(200); ++round) {
    base::atomic<bool> closed{true};
    auto h = rt->spawn([&] {
      while (closed.load()) weft::park_if(closed, true);
      return 7;
    });
    constexpr std::size_t waiters = 4;
    base::atomic<std::size_t> woken{0};
    std::vector<weft::join_handle<void>> all;
    for (std::size_t i = 0; i < waiters; ++i)
      all.push_back(rt->spawn([&] {
        h.wait();
        ++woken;
      }));
    support::until([&] {
      std::size_t waiting = 0;
      rt.core().records().walk([&](weft::task::record& t) {
        if (weft::task::state_word::phase_of(t.word.load()) != weft::task::phase::parked) return;
        const weft::waits::wait_kind* kind = t.waits_for.load();
        if (kind != nullptr && kind->number == weft::waits::kind_number::join) ++waiting;
      });
      return waiting == waiters;
    });
    closed = false;
    h.ref().unpark();
    EXPECT_EQ(h.join(), 7);
    for (auto& w : all) w.join();
    EXPECT_EQ(woken.load(), waiters);
  }
}

// req: BZ-8
TEST(Handle, try_join_is_empty_until_the_end_and_then_takes) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  base::atomic<bool> go{false};
  static int referred = 5;
  const auto after = [&](auto f) {
    return rt->spawn([&go, f] {
      until([&] { return go.load(); });
      return f();
    });
  };
  auto value = after([] { return std::string("done"); });
  auto nothing = after([] {});
  auto reference = rt->spawn([&]() -> int& {
    until([&] { return go.load(); });
    return referred;
  });
  auto error = after([]() -> int { throw std::runtime_error("mine"); });
  EXPECT_FALSE(value.try_join().has_value());
  EXPECT_FALSE(nothing.try_join());
  EXPECT_EQ(reference.try_join(), nullptr);
  EXPECT_FALSE(error.try_join().has_value());
  EXPECT_TRUE(value.joinable() && nothing.joinable() && reference.joinable() && error.joinable());
  go = true;
  until([&] { return value.is_finished() && nothing.is_finished() && reference.is_finished() && error.is_finished(); });
  EXPECT_EQ(value.try_join(), "done");
  EXPECT_TRUE(nothing.try_join());
  EXPECT_EQ(reference.try_join(), &referred);
  EXPECT_THROW((void)error.try_join(), std::runtime_error);
  EXPECT_FALSE(value.joinable() || nothing.joinable() || reference.joinable() || error.joinable());
  EXPECT_THROW((void)value.try_join(), weft::usage_error);
}

// req: BZ-8
TEST(Handle, is_finished_says_so_only_after_the_result_is_complete) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    for (std::size_t i = 0; i < scaled(5'000); ++i) {
      auto h = rt->spawn([i] { return std::vector<std::size_t>(8, i); });
      while (!h.is_finished()) std::this_thread::yield();
      ASSERT_EQ(h.join(), std::vector<std::size_t>(8, i));
    }
  });
}

// req: BZ-8
TEST(Handle, a_detached_task_runs_on_and_its_result_is_destroyed) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    counted::alive = 0;
    base::atomic<int> ran{0};
    {
      watched_runtime rt(workers);
      for (int i = 0; i < 200; ++i) {
        auto h = rt->spawn([&ran] {
          weft::yield();
          ++ran;
          return counted(1);
        });
        if (i % 3 == 0) until([&] { return h.is_finished(); });  // the handle's owner disposes of it
        if (i % 3 == 1) h.detach();                               // the finisher does
        EXPECT_EQ(h.joinable(), i % 3 != 1);
      }
    }
    EXPECT_EQ(ran.load(), 200);
    EXPECT_EQ(counted::alive.load(), 0);
  });
}

// req: BZ-8
TEST(Handle, a_dropped_handle_races_with_the_end_and_the_result_is_destroyed_once) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    counted::alive = 0;
    {
      watched_runtime rt(workers);
      for (std::size_t i = 0; i < scaled(20'000); ++i) {
        auto h = rt->spawn([i] {
          for (std::size_t spin = i % 41; spin > 0; --spin) base::cpu_relax();
          return counted(1);
        });
        for (std::size_t spin = i % 2'003; spin > 0; --spin) base::cpu_relax();
      }
    }
    EXPECT_EQ(counted::alive.load(), 0);
  });
}

// req: BZ-8
TEST(Handle, assigning_over_a_handle_detaches_what_it_held) {
  support::watchdog guard(20s);
  base::atomic<int> ran{0};
  {
    watched_runtime rt(2);
    auto h = rt->spawn([&] {
      weft::sleep_for(1ms);
      ++ran;
      return 1;
    });
    h = rt->spawn([&] {
      ++ran;
      return 2;
    });
    EXPECT_EQ(h.join(), 2);
  }
  EXPECT_EQ(ran.load(), 2);
}

// req: BZ-8
TEST(Handle, assigning_a_handle_to_itself_changes_nothing) {
  support::watchdog guard(20s);
  watched_runtime rt(1);
  auto h = rt->spawn([] { return 3; });
  auto& same = h;
  h = std::move(same);
  ASSERT_TRUE(h.joinable());
  EXPECT_EQ(h.join(), 3);
}

// req: BZ-7
TEST(Handle, references_keep_a_finished_task_known_and_equal_to_itself) {
  support::watchdog guard(20s);
  watched_runtime rt(2);
  auto h = rt->spawn({.name = "known"}, [] { return weft::this_task::ref(); });
  const std::uint64_t id = h.id();
  const weft::task_ref from_handle = h.ref();
  const weft::task_ref from_inside = h.join();
  EXPECT_EQ(from_handle, from_inside);
  EXPECT_EQ(from_inside.id(), id);
  EXPECT_EQ(from_inside.name(), "known");
  EXPECT_TRUE(from_inside.is_finished());
  EXPECT_NE(from_inside, rt->spawn([] { return weft::this_task::ref(); }).join());
  EXPECT_EQ(weft::task_ref(), weft::task_ref());
  EXPECT_FALSE(static_cast<bool>(weft::task_ref()));
}

// Counted once too often, a record would never come back; once too rarely, two tasks would share one.
// req: BZ-7
TEST(Handle, a_record_is_freed_once_wherever_its_last_reference_is_dropped) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    for (int round = 0; round < 5; ++round) {
      std::vector<weft::task_ref> refs;
      std::vector<weft::join_handle<int>> handles;
      for (int i = 0; i < 1'000; ++i) {
        handles.push_back(rt->spawn([i] { return i; }));
        refs.push_back(handles.back().ref());
        refs.push_back(refs.back());
      }
      std::thread elsewhere([&, dropped = std::vector<weft::task_ref>(refs)]() mutable { dropped.clear(); });
      auto inside = rt->spawn([dropped = refs]() mutable { dropped.clear(); });
      for (int i = 0; i < 1'000; ++i) ASSERT_EQ(handles[static_cast<std::size_t>(i)].join(), i);
      refs.clear();
      inside.join();
      elsewhere.join();
    }
    rt->shutdown();
    // All are free again: no record of the walk still has a reference.
    std::size_t held = 0;
    rt.core().records().walk([&](weft::task::record& t) {
      if (!weft::task::state_word::is_final(t.word.load())) return;
      held += t.references.load() > 1 ? 1u : 0u;
    });
    EXPECT_EQ(held, 0u);
    EXPECT_LE(rt.core().records().slab_count(), 1'000 / weft::task::slab::capacity + 8);
  });
}

// req: BZ-7 W-7
TEST(Handle, a_handle_may_outlive_its_runtime) {
  support::watchdog guard(20s);
  counted::alive = 0;
  weft::join_handle<counted> kept;
  weft::join_handle<counted> dropped;
  weft::join_handle<int> failed;
  weft::task_ref ref;
  {
    weft::runtime rt({.workers = 2});
    kept = rt.spawn({.name = "survivor"}, [] { return counted(3); });
    dropped = rt.spawn([] { return counted(4); });
    failed = rt.spawn([]() -> int { throw std::runtime_error("late"); });
    ref = kept.ref();
  }
  EXPECT_TRUE(kept.is_finished());
  EXPECT_EQ(kept.name(), "survivor");
  EXPECT_EQ(kept.join().value, 3);
  ref.cancel();
  ref.unpark();
  EXPECT_EQ(ref.name(), "survivor");
  dropped.detach();
  EXPECT_EQ(counted::alive.load(), 0);
  EXPECT_THROW((void)failed.join(), std::runtime_error);
}

// req: BZ-8
TEST(Handle, ids_are_unique_over_the_life_of_a_runtime) {
  at_worker_counts([](std::size_t workers) {
    support::watchdog guard(60s);
    watched_runtime rt(workers);
    std::set<std::uint64_t> seen;
    std::vector<weft::join_handle<std::vector<std::uint64_t>>> all;
    constexpr int outer = 40;
    constexpr int inner = 100;
    for (int i = 0; i < outer; ++i)
      all.push_back(rt->spawn([] {
        std::vector<std::uint64_t> ids{weft::this_task::id()};
        for (int k = 0; k < inner; ++k) ids.push_back(weft::spawn([] { return weft::this_task::id(); }).join());
        return ids;
      }));
    for (auto& h : all) {
      const std::uint64_t id = h.id();
      const auto ids = h.join();
      EXPECT_EQ(ids[0], id);
      seen.insert(ids.begin(), ids.end());
    }
    EXPECT_EQ(seen.size(), std::size_t{outer * (inner + 1)});
  });
}

}  // namespace
