// The mutex: misuse is told, and dumps say what is waited for.
#include <set>
#include <string>

#include "sync/caller.hpp"
#include "sync/sync.hpp"

namespace {

using namespace sync_test;

// req: BZ-13
TEST(Mutex, locking_it_twice_is_a_usage_error_that_says_where) {
  in_task_and_thread([] {
    weft::mutex m;
    m.lock();
    try {
      m.lock();
      ADD_FAILURE() << "locked twice";
    } catch (const weft::usage_error& e) {
      EXPECT_NE(std::string(e.what()).find("mutex_misuse_test.cpp"), std::string::npos) << e.what();
    }
    EXPECT_THROW((void)m.try_lock_for(1h), weft::usage_error);
    m.unlock();
  });
}

// req: BZ-13
TEST(MutexDeathTest, unlocking_what_is_not_held_is_told) {
  weft::mutex m;
  EXPECT_DEATH(m.unlock(), "unlocked that nobody holds");
}

// req: BZ-13
TEST(MutexDeathTest, unlocking_what_somebody_else_holds_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  EXPECT_DEATH(
      {
        weft::mutex m;
        std::thread([&] { m.lock(); }).join();
        m.unlock();
      },
      "by another task or thread");
}

// req: BZ-13
TEST(MutexDeathTest, a_task_that_ends_with_a_mutex_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  weft::mutex m;
  const auto locks = [&] { m.lock(); };
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { weft::spawn({.name = "bob"}, locks).join(); }),
               "task #[0-9]+ \"bob\" has ended and still holds a mutex \\(0x[0-9a-f]+\\) that it locked at "
               ".*mutex_misuse_test.cpp:[0-9]+: .*lock_guard");
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { EXPECT_TRUE(m.try_lock()); }),
               "\"main\" has ended and still holds a mutex");
  EXPECT_DEATH(weft::run({.workers = 1}, [&] { EXPECT_TRUE(m.try_lock_for(1s)); }), "still holds a mutex .* locked at");
}

// req: BZ-13
TEST(MutexDeathTest, a_task_that_ends_with_a_mutex_it_was_handed_or_waited_with_is_told_in_checked_builds) {
  if (!base::checked_build) GTEST_SKIP();
  weft::mutex m;
  EXPECT_DEATH(weft::run({.workers = 1},
                         [&] {
                           m.lock();
                           auto waits = weft::spawn({.name = "bob"}, [&] { m.lock(); });
                           weft::yield();
                           m.unlock();
                           waits.join();
                         }),
               "\"bob\" has ended and still holds a mutex");
  EXPECT_DEATH(weft::run({.workers = 1},
                         [&] {
                           weft::condition_variable changed;
                           std::unique_lock held(m);
                           (void)changed.wait_for(held, 1ms);
                           (void)held.release();
                         }),
               "\"main\" has ended and still holds a mutex");
}

// req: BZ-13
TEST(Mutex, tasks_that_have_one_record_after_the_other_are_different_owners) {
  support::watchdog guard(60s);
  std::set<weft::locks::owner> owners;
  std::set<const void*> records;
  constexpr std::size_t runtimes = 2, tasks = 300;
  watched_runtime first(1), second(1);  // both number their tasks from 1
  for (watched_runtime* rt : {&first, &second}) {
    (*rt)->run([&] {
      for (std::size_t i = 0; i < tasks; ++i)
        weft::spawn([&] {
          owners.insert(weft::locks::this_owner());
          records.insert(weft::waits::current_task());
        }).join();
    });
  }
  EXPECT_EQ(owners.size(), runtimes * tasks);
  EXPECT_LT(records.size(), runtimes * tasks) << "or this has tested nothing";
}

// req: BZ-13
TEST(MutexDeathTest, destroying_what_is_held_is_told) {
  EXPECT_DEATH(
      {
        weft::mutex m;
        m.lock();
      },
      "destroyed while it is held");
}

// req: BZ-13
TEST(Mutex, an_exception_unlocks_it_and_leaves_no_poison) {
  weft::mutex m;
  try {
    const std::lock_guard held(m);
    throw 1;
  } catch (int) {}
  EXPECT_TRUE(m.try_lock());
  m.unlock();
}

// req: BZ-13
TEST(Mutex, a_parked_waiter_says_what_it_waits_for_and_where) {
  watched_runtime rt(2);
  weft::mutex m;
  m.lock();
  named_task waiter(*rt, [&] {
    m.lock();
    m.unlock();
  });
  waiter.until_parked();
  EXPECT_STREQ(waiter.record().waits_for.load()->name, "mutex");
  EXPECT_EQ(waiter.record().waits_on().load(), &m);
  EXPECT_NE(std::string(waiter.record().waits_at.load().file_name()).find("mutex_misuse_test.cpp"), std::string::npos);
  m.unlock();
  waiter.join();
}

}  // namespace
