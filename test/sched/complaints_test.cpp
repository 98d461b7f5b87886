// What the user is told when no task advances.
#include "sched/complaints.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "support/process.hpp"
#include "support/watchdog.hpp"

namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using weft::sched::standstill;
namespace base = weft::base;

constexpr base::time_ns second = standstill::patience;

// req: CC-16
TEST(Standstill, is_told_once_when_nothing_has_moved_for_a_second) {
  standstill s;
  EXPECT_FALSE(s.has_lasted(true, 7, 100));
  EXPECT_FALSE(s.has_lasted(true, 7, 100 + second - 1));
  EXPECT_TRUE(s.has_lasted(true, 7, 100 + second));
  EXPECT_FALSE(s.has_lasted(true, 7, 100 + 9 * second));
  EXPECT_FALSE(s.has_lasted(true, 8, 100 + 20 * second));
  EXPECT_FALSE(s.has_lasted(true, 8, 100 + 40 * second));
}

// req: CC-16
TEST(Standstill, begins_anew_when_something_moves) {
  standstill s;
  for (base::time_ns now = 1; now < 20 * second; now += second / 2)
    EXPECT_FALSE(s.has_lasted(true, static_cast<std::uint64_t>(now), now));
}

// req: CC-16
TEST(Standstill, is_none_while_nobody_waits) {
  standstill s;
  for (base::time_ns now = 1; now < 20 * second; now += second / 2) EXPECT_FALSE(s.has_lasted(false, 7, now));
  EXPECT_FALSE(s.has_lasted(true, 7, 20 * second)) << "only now somebody does";
}

// req: CC-16
TEST(Standstill, begins_anew_after_the_process_was_stopped) {
  standstill s;
  EXPECT_FALSE(s.has_lasted(true, 7, 100));
  s.forget();
  EXPECT_FALSE(s.has_lasted(true, 7, 100 + 2 * second));
  EXPECT_TRUE(s.has_lasted(true, 7, 100 + 3 * second));
}

// What is said on stderr meanwhile.
class listener {
 public:
  listener() : before_(::dup(2)) {
    if (::pipe(pipe_) != 0) std::abort();
    std::fflush(stderr);
    ::dup2(pipe_[1], 2);
  }
  ~listener() {
    std::fflush(stderr);
    ::dup2(before_, 2);
    ::close(before_);
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  listener(const listener&) = delete;
  listener& operator=(const listener&) = delete;

  // Waits for a line with that in it. The watchdog says where we are if it does not come.
  std::string line_with(const std::string& text) {
    for (;;) {
      std::string line;
      for (char c = 0; ::read(pipe_[0], &c, 1) == 1 && c != '\n';) line += c;
      if (line.find(text) != std::string::npos) return line;
    }
  }

 private:
  int before_;
  int pipe_[2] = {};
};

// req: CC-16
TEST(Complaints, when_blocking_calls_have_taken_all_turns_the_option_is_named) {
  support::watchdog guard(100s);
  weft::runtime rt({.workers = 1, .io_tasks = 2});
  base::atomic<bool> go{false};
  std::vector<weft::join_handle<void>> all;
  listener said;
  for (int i = 0; i < 3; ++i)
    all.push_back(rt.spawn([&] {
      weft::blocking([&] {
        while (!go.load()) std::this_thread::sleep_for(1ms);
      });
    }));
  EXPECT_THAT(said.line_with("io_tasks"),
              HasSubstr("all 2 turns for blocking() and dispatcher::io() have been taken for a "
                        "second, and 1 task waits for one"));
  go = true;
  for (auto& h : all) h.join();
}

// req: CC-16
TEST(Complaints, when_tasks_that_compute_keep_all_workers_it_is_told_what_to_do) {
  support::watchdog guard(100s);
  weft::runtime rt({.workers = 1});
  base::atomic<bool> go{false};
  std::vector<weft::join_handle<void>> all;
  listener said;
  for (int i = 0; i < 3; ++i)
    all.push_back(rt.spawn([&] {
      while (!go.load(base::relaxed)) {}
    }));
  const std::string line = said.line_with("no task has had its turn for a second");
  EXPECT_THAT(line, HasSubstr("all 2 workers are kept by tasks that do not end, 0 of them blocked"));
  EXPECT_THAT(line, HasSubstr("weft::yield()"));
  EXPECT_THAT(line, HasSubstr("max_workers"));
  go = true;
  for (auto& h : all) h.join();
}

}  // namespace
