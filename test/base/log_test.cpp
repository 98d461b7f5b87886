// What the scheduler decides, by topic, when the environment asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include <weft/weft.hpp>

#include "base/log.hpp"

namespace {

std::string said_with(const char* topics) {
  setenv("WEFT_LOG", topics, 1);
  testing::internal::CaptureStderr();
  weft::run(weft::runtime_options{.workers = 1}, [] {
    weft::spawn([] { weft::yield(); }).join();
    weft::spawn([] {}).join();
  });
  std::string said = testing::internal::GetCapturedStderr();
  unsetenv("WEFT_LOG");
  weft::base::logged_topics.store(0, weft::base::relaxed);
  return said;
}

// req: CC-18
TEST(Log, ParkDecisionsAreToldWithReasonAndPlace) {
  const std::string said = said_with("park");
  EXPECT_NE(said.find("parks for join"), std::string::npos) << said;
  EXPECT_NE(said.find("log_test.cpp"), std::string::npos) << said;
  EXPECT_EQ(said.find("inbox"), std::string::npos) << "a topic nobody asked for: " << said;
}

// req: CC-18 CSP-14
TEST(Log, TasksAreToldByTheirNamesAndAJoinSaysWhom) {
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
TEST(Log, JoinAndInboxAreTopicsOfTheirOwn) {
  const std::string said = said_with("join,inbox");
  EXPECT_NE(said.find("wakes its joiners"), std::string::npos) << said;
  EXPECT_NE(said.find("to the inbox of worker 0"), std::string::npos) << said;
}

// req: CC-18 CC-13
TEST(Log, AnUnknownTopicIsNamedAndNothingIsLoggedForIt) {
  const std::string said = said_with("everything");
  EXPECT_NE(said.find("there is no topic \"everything\""), std::string::npos) << said;
  EXPECT_EQ(said.find("parks"), std::string::npos) << said;
}

// req: CC-18
TEST(Log, WithoutTheVariableNothingIsSaid) {
  testing::internal::CaptureStderr();
  weft::run([] { weft::spawn([] {}).join(); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
