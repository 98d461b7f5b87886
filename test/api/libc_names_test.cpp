// A program may say `using namespace weft` beside the headers of libc: each name means one thing.
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weft/weft.hpp>

#include <gtest/gtest.h>

#include "support/watchdog.hpp"

namespace {

using namespace weft;
using namespace std::chrono_literals;

TEST(LibcNames, are_called_as_ever_under_a_using_directive) {
  EXPECT_GT(time(nullptr), 0);
  EXPECT_NE(clock(), static_cast<clock_t>(-1));
  EXPECT_EQ(wait(nullptr), -1);  // this process has no child
  EXPECT_EQ(signal(SIGUSR2, SIG_IGN), SIG_DFL);
  EXPECT_EQ(raise(SIGUSR2), 0);
  EXPECT_EQ(fabs(-1.0), 1.0);
  struct tms used = {};
  EXPECT_NE(times(&used), static_cast<clock_t>(-1));
  int ends[2] = {};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  char byte = 'x';
  EXPECT_EQ(write(ends[0], &byte, 1), 1);
  EXPECT_EQ(read(ends[1], &byte, 1), 1);
  EXPECT_EQ(send(ends[0], &byte, 1, 0), 1);
  EXPECT_EQ(recv(ends[1], &byte, 1, 0), 1);
  struct stat about = {};
  EXPECT_EQ(fstat(ends[0], &about), 0);
  EXPECT_EQ(close(ends[0]), 0);
  EXPECT_EQ(close(ends[1]), 0);
  EXPECT_EQ(sched_yield(), 0);
  timeval no_time = {};
  EXPECT_EQ(select(0, nullptr, nullptr, nullptr, &no_time), 0);
  (void)&sync;  // would write out every disk
  (void)&sleep;
  (void)&pause;
  (void)&alarm;
  (void)&poll;
}

TEST(LibcNames, do_not_hide_those_of_weft) {
  support::watchdog guard(20s);
  support::watched_runtime rt(2);
  const int sum = rt->run([] {
    auto [out, in] = make_channel<int>(4);
    mutex m;
    semaphore s(1);
    event e;
    latch l(1);
    int total = 0;
    with_scope([&](scope& children) {
      children.spawn([&] {
        const std::lock_guard held(m);
        s.acquire();
        e.set();
        l.count_down();
        EXPECT_TRUE(out.send(1));
      });
      e.wait();
      l.wait();
      timer limit = after(1h);
      EXPECT_EQ(select(in >> total, limit).index(), 0u);
    });
    yield();
    sleep_for(1us);
    return total;
  });
  EXPECT_EQ(sum, 1);
}

}  // namespace
