// What the scheduler decides, by topic, when the environment asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>

#include <weft/weft.hpp>

#include "base/log.hpp"

namespace {

// On stderr, by one worker that runs f.
template <class F>
std::string said_with(const char* topics, F f) {
  setenv("WEFT_LOG", topics, 1);
  testing::internal::CaptureStderr();
  weft::run(weft::runtime_options{.workers = 1, .elastic = false}, f);
  std::string said = testing::internal::GetCapturedStderr();
  unsetenv("WEFT_LOG");
  weft::base::logged_topics.store(0, weft::base::relaxed);
  return said;
}

std::string said_with(const char* topics) {
  return said_with(topics, [] {
    weft::spawn([] { weft::yield(); }).join();
    weft::spawn([] {}).join();
  });
}

// Of the one line that a task named bob is told to have parked in.
testing::Matcher<const std::string&> bob_parks_for(const std::string& what) {
  return testing::ContainsRegex("weft: park: task #[0-9]+ \"bob\" parks for " + what + " at .*log_test.cpp:[0-9]+\n");
}

// bob runs f until it parks, then `help` runs.
template <class F, class Help>
std::string said_of_bob(F f, Help help) {
  return said_with("park", [&] {
    auto bob = weft::spawn({.name = "bob"}, f);
    weft::yield();
    help();
    bob.join();
  });
}

// req: CC-18
TEST(Log, park_decisions_are_told_with_reason_and_place) {
  const std::string said = said_with("park");
  EXPECT_NE(said.find("parks for join"), std::string::npos) << said;
  EXPECT_NE(said.find("log_test.cpp"), std::string::npos) << said;
  EXPECT_EQ(said.find("inbox"), std::string::npos) << "a topic nobody asked for: " << said;
}

// req: CC-18
TEST(Log, a_wait_for_a_mutex_is_a_park) {
  weft::mutex m;
  const std::string said = said_with("park", [&] {
    m.lock();
    auto bob = weft::spawn({.name = "bob"}, [&] { const std::lock_guard held(m); });
    weft::yield();
    m.unlock();
    bob.join();
  });
  EXPECT_THAT(said, bob_parks_for("mutex"));
}

// req: CC-18
TEST(Log, a_wait_for_a_channel_is_a_park) {
  for (const std::size_t capacity : {0, 1}) {
    auto [out, in] = weft::make_channel<int>(capacity);
    EXPECT_THAT(said_of_bob([&] { (void)in.recv(); }, [&] { EXPECT_TRUE(out.send(1)); }), bob_parks_for("receive"));
    if (capacity == 1) (void)out.send(2);
    EXPECT_THAT(said_of_bob([&] { EXPECT_TRUE(out.send(3)); }, [&] { EXPECT_TRUE(in.recv()); }), bob_parks_for("send"));
    auto [big_out, big_in] = weft::make_channel<std::string>(capacity);
    EXPECT_THAT(said_of_bob([&] { (void)big_in.recv(); }, [&] { EXPECT_TRUE(big_out.send("a")); }),
                bob_parks_for("receive"));
  }
}

// req: CC-18
TEST(Log, a_wait_for_anything_else_is_a_park) {
  weft::semaphore permits(0);
  EXPECT_THAT(said_of_bob([&] { permits.acquire(); }, [&] { permits.release(); }), bob_parks_for("semaphore"));
  weft::event set;
  EXPECT_THAT(said_of_bob([&] { set.wait(); }, [&] { set.set(); }), bob_parks_for("event"));
  EXPECT_THAT(said_of_bob([] { weft::sleep_for(std::chrono::milliseconds(1)); }, [] {}), bob_parks_for("sleep"));
  auto [out, in] = weft::make_channel<int>();
  EXPECT_THAT(said_of_bob(
                  [&] {
                    int v = 0;
                    weft::select(in >> v, in >> v);
                  },
                  [&] { EXPECT_TRUE(out.send(1)); }),
              bob_parks_for("select"));
  weft::base::atomic<bool> closed{true};
  const std::string said = said_with("park", [&] {
    auto bob = weft::spawn({.name = "bob"}, [&] {
      while (closed.load()) weft::park_if(closed, true);
    });
    weft::yield();
    closed = false;
    bob.ref().unpark();
    bob.join();
  });
  EXPECT_THAT(said, bob_parks_for("park_if"));
}

// req: CC-18
TEST(Log, wakes_are_a_topic_of_their_own) {
  auto [out, in] = weft::make_channel<int>();
  const std::string said = said_with("wake", [&] {
    auto bob = weft::spawn({.name = "bob"}, [&] { (void)in.recv(); });
    weft::yield();
    EXPECT_TRUE(out.send(1));
    bob.join();
  });
  EXPECT_THAT(said, testing::ContainsRegex("wake: task #[0-9]+ \"bob\" to the slot of worker 0\n"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("park")));
}

// req: CC-18
TEST(Log, that_a_channel_is_closed_and_by_whom_is_a_topic_of_its_own) {
  const std::string said = said_with("channel", [] {
    auto [out, in] = weft::make_channel<int>();
    out.close();
    auto [other_out, other_in] = weft::make_channel<int>();
    other_in.close();
  });
  EXPECT_THAT(said, testing::ContainsRegex("channel: channel 0x[0-9a-f]+ is closed by its writer\n"));
  EXPECT_THAT(said, testing::ContainsRegex("channel: channel 0x[0-9a-f]+ is closed by its reader\n"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("park")));
}

// req: CC-18
TEST(Log, who_watches_for_timers_is_a_topic_of_its_own) {
  const std::string said = said_with("watch", [] { weft::sleep_for(std::chrono::milliseconds(1)); });
  EXPECT_THAT(said, testing::ContainsRegex("watch: worker 0 watches, 1 of 1 asleep, with a deadline\n"));
  EXPECT_THAT(said, testing::Not(testing::HasSubstr("park")));
}

// req: CC-18 CSP-14
TEST(Log, tasks_are_told_by_their_names_and_a_join_says_whom) {
  setenv("WEFT_LOG", "all", 1);
  testing::internal::CaptureStderr();
  weft::run(weft::runtime_options{.workers = 1}, [] { weft::spawn({.name = "alice"}, [] { weft::yield(); }).join(); });
  const std::string said = testing::internal::GetCapturedStderr();
  unsetenv("WEFT_LOG");
  weft::base::logged_topics.store(0, weft::base::relaxed);
  EXPECT_THAT(said, testing::ContainsRegex("park: task #[0-9]+ \"main\" parks for join of #[0-9]+ \"alice\" at "));
  EXPECT_THAT(said, testing::ContainsRegex("join: task #[0-9]+ \"alice\" has ended"));
  EXPECT_THAT(said, testing::ContainsRegex("inbox: task #[0-9]+ \"main\" to the inbox"));
}

// req: CC-18
TEST(Log, join_and_inbox_are_topics_of_their_own) {
  const std::string said = said_with("join,inbox");
  EXPECT_NE(said.find("wakes its joiners"), std::string::npos) << said;
  EXPECT_NE(said.find("to the inbox of worker 0"), std::string::npos) << said;
}

// req: CC-18 CC-13
TEST(Log, an_unknown_topic_is_named_and_nothing_is_logged_for_it) {
  const std::string said = said_with("everything");
  EXPECT_NE(said.find("there is no topic \"everything\""), std::string::npos) << said;
  EXPECT_EQ(said.find("parks"), std::string::npos) << said;
}

// req: CC-18
TEST(Log, without_the_variable_nothing_is_said) {
  testing::internal::CaptureStderr();
  weft::run([] { weft::spawn([] {}).join(); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
