// A dump of very many tasks.
#include "observe/looks.hpp"

namespace {

using namespace support::usual;
using namespace looks;

TEST(ObserveMany, a_hundred_thousand_parked_tasks_are_one_group) {
  const support::watchdog guard(290s);
  watched_runtime rt({.workers = 2, .stack_size = std::size_t{16} << 10});
  const std::size_t count = scaled(100'000);
  weft::event stop;
  for (std::size_t i = 0; i < count; ++i) rt->spawn([&] { stop.wait(); }).detach();
  until([&] { return parked_tasks(rt.core()) == count; }, 120s);
  const observe::snapshot s = observe::take_snapshot(rt.core());
  EXPECT_EQ(s.parked, count);
  ASSERT_EQ(s.objects.size(), 1);
  EXPECT_EQ(s.objects[0].waiters.size(), count);
  for (const observe::task_view& t : s.tasks) ASSERT_TRUE(t.is_exact && t.trace != observe::none);
  const std::string text = observe::groups_text(s);
  EXPECT_EQ(count_of(text, "\n-- "), 1) << text.substr(0, 4000);
  stop.set();
}

}  // namespace
