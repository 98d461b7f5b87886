// The text that a signal handler writes: whole, however little the system takes at a time.
#include "context/signal_text.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <string>

namespace {

// What the next calls of write() do to the descriptor `to`, which is none of the system's.
struct {
  int to = -1;
  std::size_t at_a_time = 0;
  int calls = 0;
  std::string taken;
} writes;

}  // namespace

// Stands for the C library's in this program.
extern "C" ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (fd != writes.to) return ::syscall(SYS_write, fd, bytes, size);
  ++writes.calls;
  const std::size_t n = std::min(size, writes.at_a_time);
  writes.taken.append(static_cast<const char*>(bytes), n);
  return static_cast<ssize_t>(n);
}

namespace {

using weft::context::signal_text;

constexpr int nowhere = 1'000'000;

void take_at_a_time(std::size_t most) {
  writes = {};
  writes.to = nowhere;
  writes.at_a_time = most;
}

// req: KC-10
TEST(SignalText, what_a_short_write_left_is_written_next) {
  take_at_a_time(7);
  signal_text text;
  text << "stack of " << std::size_t{192} << " KiB at " << reinterpret_cast<const void*>(0xabc);
  text.write_to(nowhere);
  EXPECT_EQ(writes.taken, "stack of 192 KiB at 0xabc");
  EXPECT_EQ(writes.calls, 4);
  text << "more";  // it was empty again
  text.write_to(nowhere);
  EXPECT_EQ(writes.taken, "stack of 192 KiB at 0xabcmore");
}

// req: KC-10
TEST(SignalText, is_written_whole_if_the_system_takes_one_byte_at_a_time) {
  take_at_a_time(1);
  signal_text text;
  text << "all of it";
  text.write_to(nowhere);
  EXPECT_EQ(writes.taken, "all of it");
}

// req: KC-10
TEST(SignalText, a_descriptor_that_takes_nothing_is_given_up) {
  take_at_a_time(0);
  signal_text text;
  text << "lost";
  text.write_to(nowhere);
  EXPECT_EQ(writes.calls, 1);
  take_at_a_time(100);
  text << "kept";
  text.write_to(nowhere);
  EXPECT_EQ(writes.taken, "kept");
}

// req: KC-10
TEST(SignalText, what_is_too_long_is_cut) {
  take_at_a_time(100'000);
  signal_text text;
  const std::string much(700, 'x');
  text << much.c_str() << much.c_str() << "y";
  text.write_to(nowhere);
  EXPECT_EQ(writes.taken, std::string(1024, 'x'));
}

}  // namespace
