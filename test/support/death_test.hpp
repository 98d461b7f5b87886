// Death tests of programs that have threads.
#pragma once

#include <gtest/gtest.h>

namespace support {

// The child process starts from the beginning instead of continuing from a fork, in which no other thread would exist.
//
//     using GroupDeathTest = support::threadsafe_death_test;
class threadsafe_death_test : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

}  // namespace support
