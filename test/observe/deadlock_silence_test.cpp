// What is no deadlock is not reported: something can still wake a task, even if that takes long. Each program is idle for
// longer than a monitor needs to go to rest (100 ms), several times, and then continues by itself.
// ctest: timeout=120
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <thread>

#include <weft/pipe.hpp>
#include <weft/process.hpp>
#include <weft/signals.hpp>

#include "observe/deadlocks.hpp"

namespace {

using namespace deadlocks;

constexpr auto a_while = 600ms;

// In a child process, where a failed expectation would be lost.
void must(bool holds) {
  if (!holds) ::_exit(9);
}
bool eq(const auto& a, const auto& b) { return a == b; }

// Those tests in which a thread outside of Weft is the one that wakes: under TSan `alone` would deny that.
ended run_with_threads(void (*f)()) {
  return in_child([=] { (void)weft::run({.workers = 2}, f); });
}

// req: CC-15
TEST(NoDeadlock, no_report_of_a_sleeper) {
  const ended e = run_in_child([] {
    weft::event later;
    auto waits = weft::spawn([&] { later.wait(); });
    weft::sleep_for(a_while);
    later.set();
    waits.join();
  });
  EXPECT_NO_REPORT(e);
}

TEST(NoDeadlock, no_report_of_a_wait_with_a_limit) {
  const ended e = run_in_child([] {
    auto [out, in] = weft::make_channel<int>();
    must(eq(in.recv_for(a_while).status(), weft::recv_status::timed_out));
    weft::mutex m;
    weft::event taken, never;
    auto holder = weft::spawn([&] {
      std::lock_guard hold(m);
      taken.set();
      (void)never.wait_for(a_while);
    });
    taken.wait();
    std::lock_guard hold(m);
    holder.join();
  });
  EXPECT_NO_REPORT(e);
}

// req: CC-15
TEST(NoDeadlock, no_report_of_a_task_that_waits_for_a_pipe) {
  const ended e = run_in_child([] {
    int both[2];
    ASSERT_EQ(::pipe(both), 0);
    weft::process writes({"sh", "-c", "sleep 0.6; echo"}, {.output = weft::redirect::pipe});
    char byte[1];
    must(eq(writes.output().read_some(std::as_writable_bytes(std::span(byte))), 1u));
    (void)writes.wait();
  });
  EXPECT_NO_REPORT(e);
}

// req: CC-15
TEST(NoDeadlock, no_report_of_a_task_that_waits_for_a_process) {
  const ended e = run_in_child([] {
    weft::process sleeps({"sleep", "0.6"});
    must(sleeps.wait().ok());
  });
  EXPECT_NO_REPORT(e);
}

// TSan keeps a signal back until the thread calls a function that TSan knows, and here all threads sleep.
// req: CC-15
TEST(NoDeadlockNoTsan, no_report_of_a_task_that_waits_for_a_signal) {
  const ended e = run_in_child([] {
    weft::signals come({SIGUSR1});
    weft::process sends({"sh", "-c", "sleep 0.6; kill -USR1 $PPID"});
    must(eq(come.recv(), SIGUSR1));
    (void)sends.wait();
  });
  EXPECT_NO_REPORT(e);
}

// req: CC-15
TEST(NoDeadlock, no_report_while_a_thread_outside_may_act) {
  const ended e = run_with_threads(+[] {
    weft::event come;
    std::thread acceptor([&] {
      std::this_thread::sleep_for(a_while);
      come.set();
    });
    come.wait();
    acceptor.join();
  });
  EXPECT_NO_REPORT(e);
}

// The kernel's threads for io_uring have such names, and anybody can give one to a thread.
TEST(NoDeadlock, no_report_behind_a_thread_that_is_named_like_one_of_the_kernel) {
  const ended e = run_with_threads(+[] {
    weft::event come;
    std::thread reaper([&] {
      (void)::pthread_setname_np(::pthread_self(), "iou-reaper");
      std::this_thread::sleep_for(a_while);
      come.set();
    });
    come.wait();
    reaper.join();
  });
  EXPECT_NO_REPORT(e);
}

// A library may know that its own runtime is alone. It does not know the threads of the program.
TEST(NoDeadlock, no_report_if_one_of_two_runtimes_says_that_it_is_alone) {
  const ended e = in_child([] {
    weft::runtime of_library({.workers = 1, .alone = true});
    weft::event end;
    auto idle = of_library.spawn([&] { end.wait(); });
    (void)weft::run({.workers = 2}, [&] {
      weft::event come;
      std::thread acceptor([&] {
        std::this_thread::sleep_for(a_while);
        come.set();
      });
      come.wait();
      acceptor.join();
      end.set();
    });
    idle.join();
  });
  EXPECT_NO_REPORT(e);
}

// The main thread has waited in Weft before, and goes on to wake a task.
TEST(NoDeadlock, no_report_while_a_thread_that_has_used_weft_computes_though_others_never_wake) {
  const ended e = in_child([] {
    weft::runtime rt({.workers = 2, .alone = true});
    rt.spawn([] {}).join();
    weft::event come;
    auto waits = rt.spawn([&] { come.wait(); });
    std::this_thread::sleep_for(a_while);
    come.set();
    waits.join();
  });
  EXPECT_NO_REPORT(e);
}

TEST(NoDeadlock, no_report_while_a_runtime_has_tasks_that_wants_none) {
  const ended e = in_child([] {
    weft::runtime silent({.workers = 1, .deadlock = weft::deadlock::off, .alone = support::under_tsan});
    weft::event for_ever;
    auto stuck = silent.spawn([&] { for_ever.wait(); });
    (void)::signal(SIGALRM, [](int) { ::_exit(0); });  // not a thread, which would be a reason for silence by itself
    (void)::alarm(1);
    (void)weft::run(usual_options(), [] { weft::event().wait(); });
  });
  EXPECT_NO_REPORT(e);
}

TEST(NoDeadlock, no_report_while_a_thread_outside_waits_with_a_limit) {
  const ended e = in_child([] {
    weft::runtime rt({.workers = 2});
    weft::event come;
    auto waits = rt.spawn([&] { come.wait(); });
    must(!(rt.shutdown_for(a_while)));
    weft::event never;
    must(!(never.wait_for(a_while)));
    come.set();
    waits.join();
  });
  EXPECT_NO_REPORT(e);
}

// req: CC-15
TEST(NoDeadlock, no_report_of_a_blocking_call) {
  const ended e = run_in_child([] {
    weft::blocking([] { std::this_thread::sleep_for(a_while); });
    weft::event come;
    auto waits = weft::spawn([&] { come.wait(); });
    weft::blocking([&] {
      std::this_thread::sleep_for(a_while);
      come.set();
    });
    waits.join();
  });
  EXPECT_NO_REPORT(e);
}

TEST(NoDeadlock, no_report_of_a_runtime_that_waits_for_another_one) {
  const ended e = in_child([] {
    weft::runtime first(usual_options(1)), second(usual_options(1));
    auto slow = second.spawn([] { weft::sleep_for(a_while); });
    first.run([&] { slow.join(); });
  });
  EXPECT_NO_REPORT(e);
}

TEST(NoDeadlock, no_report_of_a_runtime_that_waits_for_a_worker_of_another_one) {
  const ended e = in_child([] {
    weft::runtime first(usual_options(1)), second(usual_options(1));
    auto slow = second.spawn([] { weft::blocking([] { std::this_thread::sleep_for(a_while); }); });
    first.run([&] { slow.join(); });
  });
  EXPECT_NO_REPORT(e);
}

TEST(NoDeadlock, no_report_of_a_runtime_without_tasks) {
  const ended e = in_child([] {
    weft::runtime rt(usual_options());
    std::this_thread::sleep_for(a_while);
    rt.run([] {});
    std::this_thread::sleep_for(a_while);
  });
  EXPECT_NO_REPORT(e);
}

// A child of a fork has no runtime, whatever the parent's tasks were doing.
TEST(NoDeadlockNoTsan, no_report_in_the_child_of_a_fork) {
  const ended e = in_child([] {
    weft::runtime rt(usual_options());
    weft::event come;
    auto waits = rt.spawn([&] { come.wait(); });
    const pid_t child = ::fork();
    if (child == 0) {
      std::this_thread::sleep_for(a_while);
      weft::run(usual_options(), [] { weft::sleep_for(a_while); });  // a runtime of its own
      ::_exit(0);
    }
    std::this_thread::sleep_for(3 * a_while);
    come.set();
    waits.join();
  });
  EXPECT_NO_REPORT(e);
}

// And its own runtime is watched as any other.
TEST(NoDeadlockNoTsan, but_of_a_deadlock_in_the_child_of_a_fork_there_is_one) {
  const ended e = in_child([] {
    weft::run(usual_options(), [] {});
    const pid_t child = ::fork();
    if (child == 0) {
      weft::run(usual_options(), [] {
        weft::event never;
        never.wait();
      });
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ::_exit(WEXITSTATUS(status));
  });
  EXPECT_DEADLOCK(e);
}

// Locks that are always held and always waited for, by tasks that take two of them in the same order, beside tasks that have
// waited for long.
// req: CC-15 OB-3
TEST(NoDeadlock, no_cycle_is_seen_among_locks_that_move) {
  const ended e = run_in_child([] {
    weft::mutex low, high;
    const auto until = std::chrono::steady_clock::now() + 2500ms;
    weft::with_scope([&](weft::scope& s) {
      for (int i = 0; i < 8; ++i)
        s.spawn([&] {
          while (std::chrono::steady_clock::now() < until) {
            std::lock_guard one(low);
            weft::yield();
            std::lock_guard two(high);
            weft::yield();
          }
        });
      s.spawn([&] { s.spawn([&] { weft::sleep_until(until); }).join(); });
    });
  });
  EXPECT_NO_REPORT(e);
}

// Tasks that all wait for each other in turns, with rests in which only a timer is left, spawned from threads that come
// and go. Whatever a monitor sees in between, it is no deadlock.
// req: CC-15
TEST(NoDeadlock, no_report_under_a_mixed_load) {
  const auto length = support::is_soak() ? 600s : 4s;
  const ended e = in_child(
      [=] {
        weft::runtime rt({.workers = 2});
        const auto until = std::chrono::steady_clock::now() + length;
        while (std::chrono::steady_clock::now() < until) {
          std::thread outside([&] {
            auto [out, in] = weft::make_channel<int>();
            auto sum = rt.spawn([from = std::move(in)] {
              int all = 0;
              while (auto v = from.recv()) all += *v;
              return all;
            });
            for (int i = 0; i < 100; ++i) (void)out.send(i);
            out.reset();
            must(eq(sum.join(), 4950));
          });
          rt.run([] {
            weft::mutex m;
            weft::with_scope([&](weft::scope& s) {
              for (int i = 0; i < 10; ++i)
                s.spawn([&] {
                  std::lock_guard hold(m);
                  weft::sleep_for(15ms);
                });
            });
          });
          outside.join();
          rt.run([] { weft::sleep_for(130ms); });  // the monitor rests meanwhile
        }
      },
      length + 20s);
  EXPECT_NO_REPORT(e);
}

}  // namespace
