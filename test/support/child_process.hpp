// A program that is run in a child of the test: it may end in any way, and what it writes to stderr is kept.
//
//     const support::ended e = support::in_child([] { std::exit(weft::run([] { … })); });
//     EXPECT_EQ(e.code, 124);
//     EXPECT_THAT(e.said, HasSubstr("cycle of 2"));
//
// The test itself must have no other threads at that time, because a child of a fork has only the one that forked.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace support {

struct ended {
  int code = -1;  // the exit code; 128 + n after signal n; -1: it had to be killed, because its time was up
  std::string said = {};
  std::chrono::milliseconds took{0};
};

// The program ends with code 0 if it returns.
[[nodiscard]] ended in_child(const std::function<void()>& program,
                             std::chrono::seconds limit = std::chrono::seconds(10));

}  // namespace support
