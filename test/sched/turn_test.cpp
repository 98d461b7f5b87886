// The three ends of a turn: done, cancelled, and suspended without a stack, as a coroutine will be.
#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <source_location>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace weft::inline v1::sched {

// See src/sched/test_seam.hpp.
struct test_seam {
  // The running task lets the others go first, and then has to return `suspended`.
  static void note_yield(task_runner& on) {
    on.pass_gate();
    on.left_.what = departure::kind::yielded;
    on.left_.who = on.current();
  }
};

}  // namespace weft::inline v1::sched

namespace {

using namespace std::chrono_literals;
using weft::detail::ended;

// A body that has its turns one by one, each from the beginning of a frame.
class stepwise {
 public:
  stepwise(int turns, ended last) noexcept : left_(turns), last_(last) {}

  static ended run(void* p) noexcept {
    auto& self = *static_cast<stepwise*>(p);
    weft::sched::worker& on = *weft::sched::this_worker();
    if (self.inside_.exchange(true)) ADD_FAILURE() << "two workers give it a turn at the same time";
    all_turns.fetch_add(1);
    const std::size_t stacks = on.owner().stacks().in_use();
    for (std::size_t most = most_stacks.load(); most < stacks && !most_stacks.compare_exchange_weak(most, stacks);) {}
    const bool ends = --self.left_ == 0;
    self.inside_.store(false);
    if (ends) return self.last_;
    weft::sched::test_seam::note_yield(on);
    return ended::suspended;
  }
  static void fail(void*, std::exception_ptr) noexcept { ADD_FAILURE() << "there are stacks enough"; }
  static std::exception_ptr dispose(void*) noexcept { return nullptr; }
  static constexpr weft::detail::operations ops{&run, nullptr, &fail, &dispose};

  static inline weft::base::atomic<int> all_turns{0};
  static inline weft::base::atomic<std::size_t> most_stacks{0};

 private:
  int left_;
  const ended last_;
  weft::base::atomic<bool> inside_{false};
};

weft::detail::task_head* spawn_stepwise(support::watched_runtime& in, int turns, ended last) {
  const auto s =
      weft::detail::begin_spawn(&in.core(), nullptr, sizeof(stepwise), alignof(stepwise), &stepwise::ops, true);
  ::new (s.body) stepwise(turns, last);
  weft::detail::commit_spawn(s);
  return s.task;
}

ended end_of(weft::detail::task_head* t) {
  weft::detail::wait_for(t, std::source_location::current());
  const ended how = weft::detail::how_it_ended(t);
  weft::detail::drop_handle(t);
  return how;
}

class Turn : public testing::TestWithParam<unsigned> {
 protected:
  void SetUp() override {
    stepwise::all_turns.store(0);
    stepwise::most_stacks.store(0);
  }
  support::watchdog guard_{60s, "turns that end suspended"};
};

TEST_P(Turn, a_turn_that_ends_suspended_is_followed_by_another_until_the_task_has_ended) {
  support::watched_runtime rt(GetParam());
  std::vector<weft::detail::task_head*> all;
  for (int i = 1; i <= 50; ++i) {
    all.push_back(spawn_stepwise(rt, i, ended::done));
    all.push_back(spawn_stepwise(rt, i, ended::cancelled));
  }
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(end_of(all[i]), i % 2 == 0 ? ended::done : ended::cancelled);
  EXPECT_EQ(stepwise::all_turns.load(), 2 * 50 * 51 / 2);
}

TEST_P(Turn, a_turn_that_ends_suspended_leaves_room_for_fibers_and_they_for_it) {
  support::watched_runtime rt(GetParam());
  weft::base::atomic<int> yields{0};
  std::vector<weft::detail::task_head*> all;
  std::vector<weft::join_handle<void>> fibers;
  for (int i = 0; i < 20; ++i) {
    all.push_back(spawn_stepwise(rt, 100, ended::done));
    fibers.push_back(rt->spawn([&] {
      for (int n = 0; n < 100; ++n) {
        weft::yield();
        yields.fetch_add(1);
      }
    }));
  }
  for (auto* t : all) EXPECT_EQ(end_of(t), ended::done);
  for (auto& f : fibers) f.join();
  EXPECT_EQ(stepwise::all_turns.load(), 20 * 100);
  EXPECT_EQ(yields.load(), 20 * 100);
}

TEST_P(Turn, a_turn_that_ends_suspended_leaves_its_stack_to_the_next_task) {
  support::watched_runtime rt(GetParam());
  std::vector<weft::detail::task_head*> all;
  for (int i = 0; i < 2000; ++i) all.push_back(spawn_stepwise(rt, 5, ended::done));
  for (auto* t : all) EXPECT_EQ(end_of(t), ended::done);
  EXPECT_EQ(stepwise::all_turns.load(), 2000 * 5);
  EXPECT_LE(stepwise::most_stacks.load(), 2 * 64u * GetParam()) << "what the workers keep, and not one for each task";
}

INSTANTIATE_TEST_SUITE_P(Workers, Turn, testing::Values(1u, 2u, 4u, 8u));

}  // namespace
