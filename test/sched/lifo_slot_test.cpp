#include "sched/lifo_slot.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "item.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using queue_test::item;
using queue_test::items;
using slot = weft::sched::lifo_slot<item>;

// req: BZ-1
TEST(LifoSlot, a_new_task_evicts_the_old_one) {
  items all(2);
  slot s;
  EXPECT_EQ(s.put(all[0]), nullptr);
  EXPECT_EQ(s.put(all[1]), all[0]);
  EXPECT_EQ(s.take(), all[1]);
  EXPECT_EQ(s.take(), nullptr);
  EXPECT_TRUE(s.empty());
}

// req: BZ-1
TEST(LifoSlot, a_thief_may_take_it) {
  items all(1);
  slot s;
  EXPECT_EQ(s.steal(), nullptr);
  EXPECT_EQ(s.put(all[0]), nullptr);
  EXPECT_EQ(s.steal(), all[0]);
  EXPECT_EQ(s.take(), nullptr);
}

// req: BZ-1
TEST(LifoSlot, each_task_is_taken_once_by_owner_or_thief) {
  support::watchdog guard(60s, "owner and thief of a slot");
  items all(support::scaled(300'000));
  slot s;
  weft::base::atomic<bool> over{false};
  std::thread thief([&] {
    while (!over.load(weft::base::acquire))
      if (item* i = s.steal()) take(i);
  });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (item* evicted = s.put(all[i])) take(evicted);
    if (i % 3 == 0)
      if (item* own = s.take()) take(own);
    if (i % 1024 == 0) std::this_thread::yield();
  }
  if (item* own = s.take()) take(own);
  over.store(true, weft::base::release);
  thief.join();
  all.expect_each_taken_once();
}

}  // namespace
