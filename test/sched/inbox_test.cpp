#include "sched/inbox.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "item.hpp"
#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using queue_test::chain;
using queue_test::count_up;
using queue_test::item;
using queue_test::items;
using inbox = weft::sched::inbox<item>;

// req: CC-4
TEST(Inbox, gives_everything_in_the_order_it_came) {
  items all(10);
  inbox box;
  EXPECT_TRUE(box.empty());
  for (std::size_t i = 0; i < 10; ++i) box.push(all[i]);
  EXPECT_FALSE(box.empty());
  chain got = box.take_all();
  EXPECT_EQ(got.size(), 10u);
  EXPECT_EQ(queue_test::numbers(got), count_up(0, 10));
  EXPECT_TRUE(box.empty());
  EXPECT_TRUE(box.take_all().empty());
}

// req: CC-4
TEST(Inbox, each_task_of_many_senders_is_taken_once_and_in_its_senders_order) {
  support::watchdog guard(60s, "senders and takers of an inbox");
  constexpr std::size_t senders = 3;
  constexpr std::size_t takers = 2;  // the owner and a thief
  const std::size_t each = support::scaled(300'000);
  items all(senders * each);
  inbox box;
  weft::base::atomic<std::size_t> taken{0};
  weft::base::atomic<bool> in_order{true};
  std::vector<std::thread> threads;
  for (std::size_t s = 0; s < senders; ++s)
    threads.emplace_back([&, s] {
      for (std::size_t i = 0; i < each; ++i) box.push(all[s * each + i]);
    });
  for (std::size_t t = 0; t < takers; ++t)
    threads.emplace_back([&] {
      std::vector<std::size_t> least(senders, 0);
      while (taken.load() < all.size()) {
        chain got = box.take_all();
        while (item* i = got.pop_front()) {
          take(i);
          taken.fetch_add(1);
          std::size_t& expected = least[i->number / each];
          if (i->number < expected) in_order.store(false);
          expected = i->number + 1;
        }
      }
    });
  for (auto& t : threads) t.join();
  all.expect_each_taken_once();
  EXPECT_TRUE(in_order.load());
}

}  // namespace
