// The queues of a worker and the order in which it takes from them (sched/local_queues.hpp, run_queues.hpp), without a worker.
#include "sched/run_queues.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "sched/worker.hpp"

namespace {

using weft::sched::chain;
using weft::sched::local_queues;
using weft::sched::ring;
using weft::sched::run_queues;
using weft::task::fiber;
using weft::task::record;

// Numbered tasks, and the queues of one worker that is alone.
class queues_test : public testing::Test {
 protected:
  record* task(std::size_t number) {
    while (all_.size() <= number) {
      all_.push_back(std::make_unique<fiber>(weft::task::ticket{0}));
      all_.back()->id = all_.size() - 1;
    }
    return all_[number].get();
  }
  static long number(const record* t) { return t == nullptr ? -1 : static_cast<long>(t->id); }
  void put_in_slot(std::size_t n) { ASSERT_EQ(q.slot.put(task(n)), nullptr); }
  void push_fresh(std::size_t n) {
    bool first = false;
    ASSERT_TRUE(q.fresh.try_push(task(n), first));
  }
  static std::vector<long> numbers(chain<record> c) {
    std::vector<long> out;
    while (record* t = c.pop_front()) out.push_back(number(t));
    return out;
  }
  std::vector<long> take_all() {
    std::vector<long> out;
    while (record* t = q.next()) out.push_back(number(t));
    return out;
  }

  static constexpr std::size_t capacity = 8;
  weft::sched::idle_set idle{1, 1};
  weft::sched::worker_set workers{1, 1, idle, {}};  // one, which nobody has made
  weft::sched::notifier others{workers, idle};
  weft::sched::shared_queues shared;
  weft::sched::starved without_stack;
  weft::sched::worker_counters counters;
  const run_queues::rooms rooms{shared, without_stack, workers, others};
  run_queues q{0, capacity, rooms, counters};

 private:
  std::vector<std::unique_ptr<fiber>> all_;
};

class OrderOfTurns : public queues_test {};
class LocalQueues : public queues_test {};

// ---- the order -------------------------------------------------------------------------------------------------------

// req: BZ-1 BZ-2
TEST_F(OrderOfTurns, is_urgent_slot_ring_inbox_fresh_global) {
  shared.global.push(task(6));
  push_fresh(5);
  q.inbox.push(task(3));
  q.inbox.push(task(4));
  q.append(task(2));
  put_in_slot(1);
  shared.urgent.push(task(0));
  EXPECT_EQ(take_all(), (std::vector<long>{0, 1, 2, 3, 4, 5, 6}));
}

// req: BZ-1
TEST_F(OrderOfTurns, the_slot_has_three_turns_then_the_ring) {
  for (std::size_t i = 100; i < 103; ++i) q.append(task(i));
  std::vector<long> taken;
  for (std::size_t i = 0; i < 8; ++i) {  // each that runs wakes the next one
    if (q.slot.empty()) put_in_slot(i);
    taken.push_back(number(q.next()));
  }
  EXPECT_EQ(taken, (std::vector<long>{0, 1, 2, 100, 3, 5, 6, 101}));
}

// req: BZ-1
TEST_F(OrderOfTurns, of_the_slot_is_taken_after_all_if_the_ring_is_empty) {
  for (std::size_t i = 0; i < 10; ++i) {
    put_in_slot(i);
    EXPECT_EQ(number(q.next()), static_cast<long>(i));
  }
}

// req: BZ-2
TEST_F(OrderOfTurns, a_fresh_task_has_every_fifth_turn_and_the_newest_is_first) {
  for (std::size_t i = 0; i < 3; ++i) push_fresh(100 + i);
  std::vector<long> taken;
  for (std::size_t i = 0; i < 15; ++i) {
    q.append(task(i));
    taken.push_back(number(q.next()));
  }
  EXPECT_EQ(taken, (std::vector<long>{0, 1, 2, 3, 102, 4, 5, 6, 7, 101, 8, 9, 10, 11, 100}));
}

// req: CC-14
TEST_F(OrderOfTurns, while_somebody_starves_for_a_stack_fresh_tasks_wait) {
  without_stack.put(task(200), 1);
  push_fresh(100);
  for (std::size_t i = 0; i < 20; ++i) {
    q.append(task(i));
    EXPECT_EQ(number(q.next()), static_cast<long>(i));
  }
  EXPECT_EQ(number(q.next()), 100) << "if there is nothing else";
}

// req: BZ-2
TEST_F(OrderOfTurns, another_task_has_its_turn_after_eight_urgent_ones) {
  for (std::size_t i = 0; i < 20; ++i) shared.urgent.push(task(i));
  q.append(task(100));
  q.append(task(101));
  std::vector<long> taken;
  for (int i = 0; i < 18; ++i) taken.push_back(number(q.next()));
  EXPECT_EQ(taken, (std::vector<long>{0, 1, 2, 3, 4, 5, 6, 7, 100, 8, 9, 10, 11, 12, 13, 14, 15, 101}));
}

// What a task that parks with a lock may ask for is the same order, without what needs a lock.
// req: BZ-1 BZ-2
TEST_F(OrderOfTurns, at_hand_is_the_same_without_inbox_and_shared_queues) {
  shared.urgent.push(task(0));
  shared.global.push(task(1));
  q.inbox.push(task(2));
  push_fresh(5);
  q.append(task(4));
  put_in_slot(3);
  const auto at_hand = [&](bool may_start) {
    record* t = q.next_at_hand();
    return number(t != nullptr ? t : q.next_at_hand_after_slot(may_start));
  };
  EXPECT_EQ(at_hand(true), 3);
  EXPECT_EQ(at_hand(true), 4);
  EXPECT_EQ(at_hand(false), -1) << "there is no stack for a fresh one";
  EXPECT_EQ(at_hand(true), 5);
  EXPECT_EQ(at_hand(true), -1);
}

// req: BZ-1
TEST_F(OrderOfTurns, the_short_cut_of_a_yield_is_taken_only_where_the_order_is_the_same) {
  q.append(task(0));
  EXPECT_TRUE(q.only_ring_counts());
  put_in_slot(1);
  EXPECT_FALSE(q.only_ring_counts());
  EXPECT_EQ(number(q.next_at_hand()), 1);
  EXPECT_TRUE(q.only_ring_counts());
  push_fresh(2);
  EXPECT_FALSE(q.only_ring_counts());
  EXPECT_EQ(number(q.fresh.pop()), 2);
  for (std::size_t i = 3; i < 5; ++i) {
    put_in_slot(i);
    EXPECT_EQ(number(q.next_at_hand()), static_cast<long>(i));
  }
  put_in_slot(5);
  EXPECT_TRUE(q.only_ring_counts()) << "the slot has had its three turns";
  EXPECT_EQ(number(q.next_in_ring()), 0);
  EXPECT_FALSE(q.only_ring_counts()) << "and may again";
}

// sched.W4, with the ring never empty: each of these comes to its turn within some looks.
// req: BZ-2 CC-4
TEST_F(OrderOfTurns, at_looks_the_oldest_of_everything_has_its_turn) {
  shared.background.push(task(0));
  shared.global.push(task(1));
  q.inbox.push(task(2));
  push_fresh(3);
  push_fresh(4);
  std::vector<long> taken;
  for (int look = 0; look < 32; ++look) {
    if (q.woken.empty()) q.append(task(100));
    if (record* t = q.next_at_look((look + 1) * 1'000'000)) taken.push_back(number(t));
  }
  std::vector<long> sorted = taken;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(sorted, (std::vector<long>{0, 1, 2, 3, 4}));
  EXPECT_EQ(taken.front(), 3) << "the oldest fresh one, at the first look";
  EXPECT_EQ(taken.back(), 0) << "background is last, at the fifteenth";
}

// req: BZ-2
TEST_F(OrderOfTurns, the_oldest_fresh_task_has_at_most_one_turn_in_a_millisecond) {
  for (std::size_t i = 0; i < 8; ++i) push_fresh(i);
  int taken = 0;
  for (int look = 0; look < 40; ++look) taken += q.next_at_look(5'000'000 + look) != nullptr ? 1 : 0;
  EXPECT_EQ(taken, 1);
}

// ---- tasks that line up ------------------------------------------------------------------------------------------------

// req: BZ-2
TEST_F(OrderOfTurns, those_who_line_up_come_behind_the_woken_in_the_order_of_their_spawns) {
  push_fresh(10);
  q.append(task(0));
  for (std::size_t i = 1; i < 4; ++i) push_fresh(i);
  EXPECT_TRUE(q.line_has_passed());
  q.line_up(3);
  EXPECT_FALSE(q.line_has_passed());
  for (long i = 0; i < 4; ++i) {
    EXPECT_FALSE(q.line_has_passed());
    EXPECT_EQ(number(q.next_in_ring()), i);
  }
  EXPECT_TRUE(q.line_has_passed());
  EXPECT_EQ(number(q.next()), 10);
}

// req: BZ-3
TEST_F(OrderOfTurns, what_lines_up_and_does_not_fit_goes_to_the_global_queue) {
  for (std::size_t i = 0; i < capacity - 2; ++i) q.append(task(i));
  for (std::size_t i = 0; i < capacity; ++i) push_fresh(100 + i);
  q.line_up(capacity);
  EXPECT_NE(shared.global.size(), 0u);
  EXPECT_EQ(take_all().size(), 2 * capacity - 2) << "nothing is lost";
}

// req: BZ-3
TEST_F(OrderOfTurns, the_next_look_comes_soon_while_more_waits_outside_than_the_ring_takes) {
  run_queues large(0, 1024, rooms, counters);
  EXPECT_FALSE(q.much_waits_outside());
  shared.global.push(task(0));
  EXPECT_TRUE(q.much_waits_outside()) << "there is no room for a share";
  EXPECT_FALSE(large.much_waits_outside());
  for (std::size_t i = 1; i < 65; ++i) shared.global.push(task(i));
  EXPECT_TRUE(large.much_waits_outside()) << "more than one share";
}

// The other tasks in the ring were woken, and would have to wait behind what comes from outside.
TEST_F(OrderOfTurns, tasks_from_outside_fill_the_ring_only_up_to_a_share) {
  run_queues large(0, 1024, rooms, counters);
  for (std::size_t i = 0; i < 200; ++i) shared.global.push(task(i));
  EXPECT_EQ(number(large.next()), 0);
  EXPECT_EQ(large.woken.size(), 63u) << "one share, with the one that runs";
  EXPECT_EQ(number(large.next_at_look(1)), 64);
  EXPECT_EQ(large.woken.size(), 64u);
  EXPECT_EQ(number(large.next_at_look(2)), 66) << "one at each look, while the ring has no room for more";
  EXPECT_EQ(large.woken.size(), 64u);
}

// ---- the queues --------------------------------------------------------------------------------------------------------

// req: BZ-3
TEST_F(LocalQueues, what_overflows_goes_to_the_global_queue_and_is_counted) {
  for (std::size_t i = 0; i < capacity + 1; ++i) q.append(task(i));
  EXPECT_EQ(shared.global.size() + q.woken.size(), capacity + 1);
  EXPECT_NE(shared.global.size(), 0u);
  EXPECT_EQ(counters.overflow_batches.get(), 1u);
  bool first = false;
  for (std::size_t i = 0; i < capacity; ++i) ASSERT_TRUE(q.fresh.try_push(task(100 + i), first));
  EXPECT_FALSE(q.fresh.try_push(task(200), first));
  q.push_fresh_overflowing(task(200));
  EXPECT_EQ(counters.overflow_batches.get(), 2u);
  EXPECT_EQ(number(q.fresh.pop()), 200);
  EXPECT_EQ(number(q.fresh.steal()), 100 + static_cast<long>(capacity / 2)) << "the older half has gone";
}

// req: BZ-3
TEST_F(LocalQueues, of_a_batch_only_those_are_appended_that_are_kept) {
  chain<record> batch;
  for (std::size_t i = 0; i < 6; ++i) batch.push_back(task(i));
  std::vector<long> odd;
  q.append_those(std::move(batch), [&](record* t) {
    if (t->id % 2 == 0) return true;
    odd.push_back(number(t));
    return false;
  });
  EXPECT_EQ(take_all(), (std::vector<long>{0, 2, 4}));
  EXPECT_EQ(odd, (std::vector<long>{1, 3, 5}));
}

// req: BZ-3 BZ-5
TEST_F(LocalQueues, a_thief_takes_half_of_the_ring_then_half_of_the_fresh_then_the_inbox) {
  weft::sched::worker_counters its_counters;
  run_queues thief(1, capacity, rooms, its_counters);
  for (std::size_t i = 0; i < 4; ++i) q.append(task(i));
  for (std::size_t i = 10; i < 14; ++i) push_fresh(i);
  for (std::size_t i = 20; i < 23; ++i) q.inbox.push(task(i));
  put_in_slot(30);
  bool more = true;
  EXPECT_EQ(number(thief.steal_from(q, more)), 0);
  EXPECT_FALSE(more);
  EXPECT_EQ(thief.woken.size(), 1u);
  while (q.woken.pop() != nullptr) {}
  EXPECT_EQ(number(thief.steal_from(q, more)), 10) << "the oldest is the largest subtree";
  EXPECT_EQ(thief.fresh.size(), 1u);
  while (q.fresh.pop() != nullptr) {}
  EXPECT_EQ(number(thief.steal_from(q, more)), 20);
  EXPECT_TRUE(more) << "two more, which others may want";
  EXPECT_EQ(thief.steal_from(q, more), nullptr) << "the slot is not for thieves";
  EXPECT_FALSE(q.has_visible_work());
  EXPECT_EQ(number(q.slot.take()), 30);
  EXPECT_EQ(its_counters.steals.get(), 3u);
  EXPECT_EQ(its_counters.steal_attempts.get(), 4u);
}

// req: LS-K2
TEST_F(LocalQueues, a_worker_that_leaves_leaves_everything) {
  put_in_slot(0);
  q.append(task(1));
  q.append(task(2));
  push_fresh(3);
  push_fresh(4);
  q.inbox.push(task(5));
  EXPECT_EQ(q.size(), 6);
  EXPECT_EQ(numbers(q.drain()), (std::vector<long>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(q.size(), 0);
}

// req: CC-16
TEST_F(LocalQueues, the_monitor_takes_the_slot_or_all_that_lies_there) {
  ring<record> hands(capacity);
  put_in_slot(0);
  for (std::size_t i = 1; i < 5; ++i) q.append(task(i));
  push_fresh(5);
  q.inbox.push(task(6));
  EXPECT_EQ(numbers(q.take_over(true, hands)), (std::vector<long>{0}));
  EXPECT_EQ(numbers(q.take_over(false, hands)), (std::vector<long>{1, 2, 5, 6})) << "half of the ring stays";
  EXPECT_EQ(take_all(), (std::vector<long>{3, 4}));
}

}  // namespace
