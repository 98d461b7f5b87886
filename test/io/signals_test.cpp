// Signals as waits and arms.
// Not under TSan, which runs a handler only when its thread comes to a call that TSan knows.
// ctest: notsan
#include <weft/signals.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "io/net.hpp"
#include "wait/fiber_wait.hpp"

namespace {

using namespace support::usual;
using namespace support;
using weft::signals;

void send_to_this_process(int number) { ASSERT_EQ(::kill(::getpid(), number), 0); }

using handler = void (*)(int);
handler handler_of(int number) {
  struct sigaction now = {};
  ::sigaction(number, nullptr, &now);
  return now.sa_handler;
}
void other_handler(int) {}

// req: IO-11
TEST(Signals, a_task_waits_for_them) {
  with_sockets([] {
    const signals s({SIGUSR1, SIGUSR2});
    base::atomic<const weft::task::record*> who{nullptr};
    auto waiter = weft::spawn([&] {
      who.store(weft::waits::current_task(), base::release);
      return s.recv();
    });
    until([&] { return is_parked(who.load(base::acquire)); });
    send_to_this_process(SIGUSR2);
    EXPECT_EQ(waiter.join(), SIGUSR2);
    EXPECT_EQ(s.try_recv(), std::nullopt);
  });
}

// req: IO-11
TEST(Signals, one_that_comes_between_two_waits_is_kept_and_merged_with_its_like) {
  with_sockets([] {
    const signals s({SIGUSR1, SIGUSR2});
    for (int i = 0; i < 3; ++i) {
      ::raise(SIGUSR2);  // to this thread, whose handler runs before this returns
      ::raise(SIGUSR1);
    }
    EXPECT_EQ(s.recv(), SIGUSR1);
    EXPECT_EQ(s.recv(), SIGUSR2);
    EXPECT_EQ(s.try_recv(), std::nullopt);
    ::raise(SIGUSR1);
    EXPECT_EQ(s.recv(), SIGUSR1);
  });
}

// req: IO-11
TEST(Signals, every_listener_gets_them) {
  with_sockets([] {
    std::vector<signals> all;
    for (int i = 0; i < 5; ++i) all.emplace_back(signals({SIGUSR1}));
    const signals another({SIGUSR2});
    send_to_this_process(SIGUSR1);
    for (const signals& s : all) EXPECT_EQ(s.recv(), SIGUSR1);
    EXPECT_EQ(another.try_recv(), std::nullopt);
  });
}

// req: IO-11
TEST(Signals, the_last_listener_restores_the_handler_of_before) {
  with_sockets([] {
    ::signal(SIGUSR1, &other_handler);
    {
      const signals first({SIGUSR1});
      EXPECT_NE(handler_of(SIGUSR1), &other_handler);
      { const signals second({SIGUSR1, SIGUSR2}); }
      EXPECT_NE(handler_of(SIGUSR1), &other_handler) << "the first still listens";
      EXPECT_EQ(handler_of(SIGUSR2), SIG_DFL);
    }
    EXPECT_EQ(handler_of(SIGUSR1), &other_handler);
    {
      const signals s({SIGUSR2});
      ::signal(SIGUSR2, &other_handler);
    }
    EXPECT_EQ(handler_of(SIGUSR2), &other_handler) << "somebody has replaced ours meanwhile";
    ::signal(SIGUSR1, SIG_DFL);
    ::signal(SIGUSR2, SIG_DFL);
  });
}

// req: IO-11
TEST(Signals, signals_are_arms) {
  with_sockets([] {
    const signals s({SIGUSR1});
    auto soon = weft::after(1ms);
    EXPECT_EQ(weft::select(s.arrived(), soon).index(), 1u);
    auto sender = weft::spawn([] { send_to_this_process(SIGUSR1); });
    auto late = weft::after(60s);
    int got = 0;
    EXPECT_EQ(weft::select(late, s.on_signal([&](int number) { got = number; })).index(), 1u);
    EXPECT_EQ(got, SIGUSR1);
    sender.join();
    EXPECT_EQ(weft::prialt(s.arrived(), weft::otherwise).index(), 1u) << "the arm has received it";
  });
}

// req: IO-2 IO-3 IO-11
TEST(Signals, time_limits_cancellation_and_close_end_a_wait) {
  with_sockets([] {
    signals s({SIGUSR1});
    EXPECT_EQ(s.recv_for(1ms), std::nullopt);
    auto cancelled = weft::spawn([&] { return s.recv(); });
    auto closed = weft::spawn([&] { return error_of([&] { (void)s.recv(); }); });
    weft::sleep_for(1ms);
    cancelled.cancel();
    EXPECT_THROW(cancelled.join(), weft::task_cancelled);
    s.close();
    s.close();
    EXPECT_EQ(closed.join(), std::errc::operation_canceled);
    EXPECT_EQ(error_of([&] { (void)s.try_recv(); }), std::errc::operation_canceled);
    EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL);
    signals moved = std::move(s);
    EXPECT_THROW((void)s.recv(), weft::usage_error);
  });
}

// req: IO-13
TEST(Signals, some_cannot_be_listened_for) {
  with_sockets([] {
    for (const int number : {SIGKILL, SIGSTOP, SIGSEGV, SIGFPE, 0, -1, 65}) {
      EXPECT_EQ(error_of([&] { const signals s({SIGUSR1, number}); }), std::errc::invalid_argument) << number;
      EXPECT_EQ(handler_of(SIGUSR1), SIG_DFL) << "nothing is left";
    }
    EXPECT_THROW(signals({}), weft::usage_error);
  });
}

// req: IO-11
TEST(Signals, the_child_of_a_fork_has_the_handlers_of_before) {
  with_sockets([] {
    const signals s({SIGUSR1});
    const pid_t child = ::fork();
    if (child == 0) {
      ::raise(SIGUSR1);  // ends it, as without a listener
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1) << status;
    EXPECT_EQ(s.try_recv(), std::nullopt) << "it was not ours";
    send_to_this_process(SIGUSR1);
    EXPECT_EQ(s.recv(), SIGUSR1) << "the parent still listens";
  });
}

TEST(Signals, every_signal_of_a_storm_that_is_waited_for_one_by_one_arrives) {
  with_sockets([] {
    const signals s({SIGUSR1, SIGUSR2});
    for (int i = 0; i < 500; ++i) {
      const int number = i % 2 == 0 ? SIGUSR1 : SIGUSR2;
      auto sender = weft::spawn([=] { send_to_this_process(number); });
      EXPECT_EQ(s.recv(), number);
      sender.join();
    }
    EXPECT_EQ(s.try_recv(), std::nullopt);
  });
}

// A stray write of a handler would be seen in an eventfd that was given the number of a listener that is gone.
TEST(Signals, listeners_come_and_go_while_signals_rain) {
  ::signal(SIGUSR1, SIG_IGN);
  with_sockets([] {
    base::atomic<bool> is_over{false};
    std::thread rain([&] {
      while (!is_over.load()) {
        ::kill(::getpid(), SIGUSR1);
        std::this_thread::yield();
      }
    });
    std::vector<weft::join_handle<void>> all;
    for (int i = 0; i < 4; ++i)
      all.push_back(weft::spawn([] {
        for (int round = 0; round < 50; ++round) {
          {
            const signals s({SIGUSR1});
            if (round % 2 == 0) {
              EXPECT_EQ(s.recv(), SIGUSR1);
            }
          }
          const int stranger = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
          weft::yield();
          pollfd p{stranger, POLLIN, 0};
          int found;
          do found = ::poll(&p, 1, 0);
          while (found < 0 && errno == EINTR);  // by the rain
          EXPECT_EQ(found, 0) << "a handler wrote to a number that is not its own";
          ::close(stranger);
        }
      }));
    for (auto& t : all) t.join();
    is_over = true;
    rain.join();
  });
  ::signal(SIGUSR1, SIG_DFL);
}

TEST(Signals, outside_threads_wait_too) {
  const signals s({SIGUSR1});
  EXPECT_EQ(s.recv_for(1ms), std::nullopt);
  std::thread sender([] { send_to_this_process(SIGUSR1); });
  EXPECT_EQ(s.recv(), SIGUSR1);
  sender.join();
}

}  // namespace
