// fork, exec, exit and signals with tasks around.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <weft/weft.hpp>

#include "sched/scheduler.hpp"
#include "support/death_test.hpp"
#include "support/usual.hpp"

namespace {

using namespace support::usual;
using testing::AllOf;
using testing::HasSubstr;

// What a child said on a pipe, and how it ended. `in_child` gets the pipe's end; after it the child leaves with 0.
struct child_report {
  std::string said;
  int status = 0;
  [[nodiscard]] bool exited_with(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
};

void say(int fd, const std::string& text) { (void)!::write(fd, text.data(), text.size()); }

child_report collect(pid_t child, int fd) {
  child_report r;
  char buffer[512];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR);)
    if (n > 0) r.said.append(buffer, static_cast<std::size_t>(n));
  ::close(fd);
  while (::waitpid(child, &r.status, 0) < 0 && errno == EINTR) {}
  return r;
}

template <class InChild>
child_report fork_and(InChild&& in_child) {
  int fds[2];
  if (::pipe(fds) != 0) std::abort();
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(fds[0]);
    ::alarm(10);  // a child that hangs fails the test instead of stopping it
    in_child(fds[1]);
    ::_exit(0);
  }
  ::close(fds[1]);
  return collect(child, fds[0]);
}

// A child inherits the locks of AddressSanitizer's allocator as they are, unlike those of the C library. So a test whose
// child allocates forks only while no other thread does, neither one that is just starting nor one that runs tasks.
void until_others_allocate_nothing() { until(support::others_sleep); }

// Keeps a worker, whose thread sleeps meanwhile.
void asleep_in_its_task(const base::atomic<bool>& until_set) {
  while (!until_set.load()) std::this_thread::sleep_for(5ms);
}

// What f complained of.
template <class F>
std::string complaint(F&& f) {
  try {
    f();
  } catch (const weft::usage_error& e) {
    return e.what();
  } catch (const std::exception& e) {
    return std::string("another exception: ") + e.what();
  }
  return "no exception";
}

// req: W-8
TEST(Process, a_fork_in_a_task_followed_by_exec_works) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  for (int i = 0; i < 10; ++i) {
    const child_report r = rt->run([] {
      return fork_and([](int fd) {
        ::dup2(fd, 1);
        ::execl("/bin/echo", "echo", "from the child", nullptr);
      });
    });
    EXPECT_TRUE(r.exited_with(0));
    EXPECT_EQ(r.said, "from the child\n");
  }
  EXPECT_EQ(rt->run([] { return 1; }), 1) << "the parent goes on";
}

// req: W-8
TEST(Process, a_forked_child_that_spawns_or_joins_is_refused_with_words) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  base::atomic<bool> go{false};
  auto running = rt->spawn([&] {
    asleep_in_its_task(go);
    return 1;
  });
  const auto in_child = [&](int fd) {
    say(fd, complaint([&] { (void)rt->spawn([] {}); }));
    say(fd, "|" + complaint([&] { (void)running.join(); }));
  };
  const auto words = AllOf(HasSubstr("forked"), HasSubstr("exec or _exit"), HasSubstr("|weft: this process was forked"),
                           testing::Not(HasSubstr("no exception")));
  until_others_allocate_nothing();
  const child_report from_outside = fork_and(in_child);
  EXPECT_TRUE(from_outside.exited_with(0)) << from_outside.status;
  EXPECT_THAT(from_outside.said, words);
  const child_report from_task = rt->run([&] { return fork_and(in_child); });
  EXPECT_TRUE(from_task.exited_with(0)) << from_task.status;
  EXPECT_THAT(from_task.said, words);
  go = true;
  EXPECT_EQ(running.join(), 1);
}

// req: W-8 UX-5
TEST(Process, a_forked_child_cannot_join_a_task_group_and_leaves_it_without_waiting_for_anybody) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  base::atomic<bool> go{false};
  std::optional<weft::task_group> group;
  const auto in_child = [&](int fd) {
    say(fd, complaint([&] { group->join(); }));
    group.reset();
  };
  group.emplace(*rt);
  group->spawn([&] { asleep_in_its_task(go); });
  until_others_allocate_nothing();
  const child_report from_outside = fork_and(in_child);
  EXPECT_TRUE(from_outside.exited_with(0)) << from_outside.status;
  EXPECT_THAT(from_outside.said, HasSubstr("fork"));
  go = true;
  EXPECT_TRUE(group->join());
  group.reset();
}

// req: W-8
TEST(Process, weft_spawn_in_a_child_forked_by_a_task_says_that_it_was_forked) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  until_others_allocate_nothing();
  const child_report r =
      rt->run([] { return fork_and([](int fd) { say(fd, complaint([] { (void)weft::spawn([] {}); })); }); });
  EXPECT_TRUE(r.exited_with(0));
  EXPECT_THAT(r.said, HasSubstr("fork"));
}

// req: W-8
TEST(Process, a_forked_child_can_read_what_had_ended_before) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  auto ended = rt->spawn([] { return 77; });
  ended.wait();
  const child_report r = fork_and([&](int fd) { say(fd, std::to_string(ended.join())); });
  EXPECT_EQ(r.said, "77");
  EXPECT_EQ(ended.join(), 77);
}

// req: W-8
TEST(ProcessNoTsan, a_forked_child_may_make_a_runtime_of_its_own) {
  support::watchdog guard(60s);
  watched_runtime rt(2);
  until_others_allocate_nothing();
  const auto in_child = [](int fd) {
    weft::runtime mine({.workers = 2});
    say(fd, std::to_string(mine.run([] {
          weft::sleep_for(1ms);
          return weft::spawn([] { return 9; }).join();
        })));
  };
  EXPECT_EQ(fork_and(in_child).said, "9");
  EXPECT_EQ(rt->run([&] { return fork_and(in_child); }).said, "9");
}

// req: W-8
TEST(ProcessNoTsan, a_forked_child_lets_go_of_the_parents_runtime_without_waiting_for_anybody) {
  support::watchdog guard(60s);
  auto rt = std::make_unique<weft::runtime>(weft::runtime_options{.workers = 2});
  base::atomic<bool> go{false};
  auto running = rt->spawn([&] { asleep_in_its_task(go); });
  until_others_allocate_nothing();
  const child_report r = fork_and([&](int fd) {
    rt.reset();
    say(fd, "gone");
  });
  EXPECT_TRUE(r.exited_with(0)) << r.status;
  EXPECT_EQ(r.said, "gone");
  go = true;
  running.join();
}

// Another thread is in the middle of dropping handles of tasks, whatever lock that takes. The child has only its own
// thread.
TEST(ProcessNoTsan, a_child_forked_while_another_thread_drops_handles_can_drop_its_own) {
  support::watchdog guard(100s);
  watched_runtime rt(1);
  base::atomic<bool> stop{false};
  base::atomic<bool> dropping{false};
  std::thread other([&] {
    std::vector<weft::join_handle<void>> some;
    while (!stop.load()) {
      for (int k = 0; k < 5'000; ++k) some.push_back(rt->spawn([] {}));
      for (auto& h : some) h.wait();
      dropping = true;
      some.clear();
      dropping = false;
    }
  });
  for (std::size_t round = 0; round < scaled(200); ++round) {
    auto mine = rt->spawn([] {});
    mine.wait();
    until([&] { return dropping.load(); });
    const child_report r = fork_and([&](int fd) {
      mine.detach();
      say(fd, "dropped");
    });
    EXPECT_EQ(r.said, "dropped") << "round " << round << ", status " << r.status;
    if (!r.exited_with(0)) break;
  }
  stop = true;
  other.join();
}

// req: W-8
TEST(Process, a_child_forked_under_a_shield_may_leave_its_scope) {
  support::watchdog guard(60s);
  watched_runtime rt(1);
  const child_report r = rt->run([] {
    auto s = std::make_unique<weft::this_task::shield>();
    return fork_and([&](int fd) {
      s.reset();
      say(fd, "left");
    });
  });
  EXPECT_TRUE(r.exited_with(0)) << "status " << r.status;
  EXPECT_EQ(r.said, "left");
}

using ProcessDeathTest = support::threadsafe_death_test;

// req: W-8
TEST_F(ProcessDeathTest, a_forked_child_that_returns_from_its_task_is_stopped_with_words) {
  EXPECT_EXIT(
      {
        int status = 0;
        weft::run({.workers = 1}, [&] {
          const pid_t child = ::fork();
          if (child != 0) ::waitpid(child, &status, 0);
        });
        _exit(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? 17 : 1);
      },
      testing::ExitedWithCode(17), "forked child returned from the task(.|\n)*exec or _exit");
}

// req: W-8
TEST_F(ProcessDeathTest, exit_in_a_task_ends_the_process_with_its_code) {
  for (const std::size_t workers : support::worker_counts)
    EXPECT_EXIT(
        {
          ::alarm(10);
          weft::run({.workers = workers}, [] {
            for (int i = 0; i < 10; ++i) weft::spawn([] { weft::sleep_for(1h); }).detach();
            weft::yield();
            std::exit(5);
          });
        },
        testing::ExitedWithCode(5), "");
}

// req: W-8
TEST_F(ProcessDeathTest, exit_in_a_task_of_a_runtime_with_static_lifetime_is_reported_instead_of_waiting_for_ever) {
  EXPECT_EXIT(
      {
        ::alarm(10);
        static weft::runtime rt({.workers = 2});
        auto h = rt.spawn([] { std::exit(6); });
        h.join();
      },
      testing::KilledBySignal(SIGABRT), "destroyed by one of its own tasks");
}

// req: W-8
TEST_F(ProcessDeathTest, a_runtime_destroyed_by_one_of_its_own_tasks_is_reported) {
  EXPECT_EXIT(
      {
        ::alarm(10);
        static weft::runtime* rt = new weft::runtime({.workers = 2});
        auto h = rt->spawn([] { delete rt; });
        h.join();
        _exit(0);
      },
      testing::KilledBySignal(SIGABRT), "own tasks");
}

// req: W-8
TEST(Process, signals_handled_while_tasks_run_disturb_nobody) {
  support::watchdog guard(60s);
  static base::atomic<std::size_t> handled{0};
  struct sigaction ours{};
  ours.sa_handler = [](int) { handled.fetch_add(1, base::relaxed); };  // no SA_RESTART: system calls return EINTR
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGUSR1, &ours, &before), 0);
  support::at_worker_counts([](std::size_t workers) {
    watched_runtime rt(workers);
    base::atomic<bool> stop{false};
    const std::size_t at_start = handled.load();
    std::thread sender([&] {
      while (!stop.load()) {
        ::kill(::getpid(), SIGUSR1);  // to whichever thread takes it
        std::this_thread::sleep_for(50us);
      }
    });
    std::size_t sum = 0;
    const auto from = std::chrono::steady_clock::now();
    const std::size_t n = scaled(2'000);
    rt->run([&] {
      std::vector<weft::join_handle<std::size_t>> all;
      for (std::size_t i = 0; i < n; ++i)
        all.push_back(weft::spawn([i] {
          const auto until_then = std::chrono::steady_clock::now() + std::chrono::microseconds(i % 3'000);
          weft::sleep_until(until_then);
          for (int k = 0; k < 20; ++k) weft::yield();
          return std::chrono::steady_clock::now() >= until_then ? std::size_t{1} : std::size_t{0};
        }));
      for (auto& h : all) sum += h.join();
    });
    until([&] { return handled.load() > at_start + 10; });
    stop = true;
    sender.join();
    EXPECT_EQ(sum, n);
    (void)from;
  });
  ::sigaction(SIGUSR1, &before, nullptr);
}

// A worker takes the mask of the thread that makes it; a signal handler that unparks nobody needs no more of Weft.
// req: W-8
TEST(Process, a_signal_sent_to_a_worker_runs_its_handler_on_the_stack_of_the_task_and_goes_on) {
  support::watchdog guard(60s);
  static base::atomic<int> handled{0};
  struct sigaction ours{};
  ours.sa_handler = [](int) {
    volatile char scratch[2'000];
    std::memset(const_cast<char*>(scratch), 1, sizeof scratch);
    ++handled;
  };
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGUSR2, &ours, &before), 0);
  weft::run({.workers = 1}, [] {
    for (int i = 1; i <= 100; ++i) {
      ::pthread_kill(::pthread_self(), SIGUSR2);
      EXPECT_EQ(handled.load(), i);
      weft::yield();
    }
  });
  ::sigaction(SIGUSR2, &before, nullptr);
}

}  // namespace
