// Dumps that the environment asks for, and a program without symbols.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "observe/looks.hpp"

namespace {

using namespace support::usual;
using namespace looks;

// What is written to stderr while this lives.
class captured_stderr {
 public:
  captured_stderr()
      : path_(::testing::TempDir() + "weft_stderr_" + std::to_string(::getpid())),
        before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
    const int file = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(file, STDERR_FILENO);
    ::close(file);
  }
  ~captured_stderr() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::unlink(path_.c_str());
  }
  captured_stderr(const captured_stderr&) = delete;
  captured_stderr& operator=(const captured_stderr&) = delete;
  [[nodiscard]] std::string text() const { return support::file_text(path_); }

 private:
  const std::string path_;
  const int before_;
};

// observe.B1
// req: KC-8 OB-2
TEST(DumpSignal, a_signal_makes_a_dump_on_stderr_each_time_it_comes) {
  const support::watchdog guard(110s);
  const support::environment by("WEFT_DUMP_SIGNAL", "USR1");
  const captured_stderr errors;
  {
    watched_runtime rt(2), other(1);
    weft::event stop;
    auto task = rt->spawn({.name = "waiter"}, [&] { stop.wait(); });
    until_parked(task);
    for (std::size_t n = 1; n <= 3; ++n) {
      ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
      // One for each of the two runtimes.
      until([&] { return count_of(errors.text(), "weft dump: ") == 2 * n; });
      EXPECT_EQ(count_of(errors.text(), "\"waiter\" waits "), n) << errors.text();
    }
    stop.set();
    task.join();
  }
  EXPECT_EQ(::kill(::getpid(), SIGUSR1), 0) << "without a runtime the signal does nothing";
}

TEST(DumpSignal, calls_the_handler_that_was_there_before) {
  const support::watchdog guard(110s);
  static base::atomic<int> calls{0};
  struct sigaction own{};
  own.sa_handler = [](int) { calls.fetch_add(1, base::relaxed); };
  static const int set =
      ::sigaction(SIGUSR2, &own, nullptr);  // once, also if the test is repeated: ours is on top then
  ASSERT_EQ(set, 0);
  calls.store(0, base::relaxed);
  const support::environment by("WEFT_DUMP_SIGNAL", "SIGUSR2");
  const captured_stderr errors;
  watched_runtime rt(1);
  ASSERT_EQ(::kill(::getpid(), SIGUSR2), 0);
  until([&] { return contains(errors.text(), "weft dump: 0 tasks") && calls.load(base::relaxed) == 1; });
}

// As observe.R2: the second runtime does not put our handler on top of one that calls it.
TEST(DumpSignal, leaves_a_handler_in_place_that_was_set_later_and_calls_ours) {
  const support::watchdog guard(110s);
  static base::atomic<int> calls{0};
  static struct sigaction ours{};
  const support::environment by("WEFT_DUMP_SIGNAL", "USR1");
  const captured_stderr errors;
  watched_runtime rt(1);
  struct sigaction later{};
  later.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  later.sa_sigaction = [](int number, siginfo_t* info, void* context) {
    calls.fetch_add(1, base::relaxed);
    ours.sa_sigaction(number, info, context);
  };
  ASSERT_EQ(::sigaction(SIGUSR1, nullptr, &ours), 0);
  ASSERT_EQ(::sigaction(SIGUSR1, &later, nullptr), 0);
  calls.store(0, base::relaxed);
  {
    watched_runtime other(1);
    ASSERT_EQ(::kill(::getpid(), SIGUSR1), 0);
    until([&] { return count_of(errors.text(), "weft dump: ") == 2; });
  }
  EXPECT_EQ(calls.load(base::relaxed), 1);
  ASSERT_EQ(::sigaction(SIGUSR1, &ours, nullptr), 0);
}

TEST(DumpSignal, that_there_is_not_is_reported_and_ignored) {
  const support::environment by("WEFT_DUMP_SIGNAL", "LUNCH");
  const captured_stderr errors;
  {
    watched_runtime rt(1);
    rt->run([] {});
  }
  EXPECT_TRUE(contains(errors.text(), "WEFT_DUMP_SIGNAL=LUNCH is no signal")) << errors.text();
}

// req: OB-9
TEST(DumpIfStuck, tells_once_of_tasks_that_wait_while_nothing_runs) {
  const support::watchdog guard(110s);
  const support::environment after("WEFT_DUMP_IF_STUCK", "100ms");
  const captured_stderr errors;
  watched_runtime rt(2);
  weft::event stop;
  auto task = rt->spawn({.name = "waiter"}, [&] { stop.wait(); });
  until([&] { return contains(errors.text(), "\"waiter\" waits "); });
  EXPECT_TRUE(contains(errors.text(), "weft: no task was dispatched for ")) << errors.text();
  std::this_thread::sleep_for(500ms);  // time for a second dump, which would be wrong
  EXPECT_EQ(count_of(errors.text(), "weft dump: "), 1) << errors.text();
  // Something moves, and then nothing does again.
  rt->spawn([] {}).join();
  until([&] { return count_of(errors.text(), "weft dump: ") >= 2; });
  stop.set();
  task.join();
}

TEST(DumpIfStuck, is_silent_while_no_task_lives) {
  const support::watchdog guard(110s);
  const support::environment after("WEFT_DUMP_IF_STUCK", "20ms");
  const captured_stderr errors;
  watched_runtime rt(2);
  rt->run([] {});
  std::this_thread::sleep_for(300ms);  // time for a dump, which would be wrong
  EXPECT_EQ(errors.text(), "");
}

TEST(DumpIfStuck, refuses_what_is_no_time) {
  const support::environment after("WEFT_DUMP_IF_STUCK", "soon");
  const captured_stderr errors;
  {
    watched_runtime rt(1);
    rt->run([] {});
  }
  EXPECT_TRUE(contains(errors.text(), "WEFT_DUMP_IF_STUCK=soon is no time")) << errors.text();
}

// Run by the next test, in a copy of this program without symbols.
TEST(Stripped, DISABLED_prints_a_dump) {
  watched_runtime rt(2);
  rt->run([&] {
    weft::mutex m;
    m.lock();
    auto task = weft::spawn({.name = "waiter"}, [&] {
      m.lock();
      m.unlock();
    });
    until_parked(task);
    std::printf("%s", dump_of(rt).c_str());
    m.unlock();
    task.join();
  });
}

// req: OB-2
TEST(Stripped, a_program_without_symbols_still_dumps) {
  const support::watchdog guard(110s);
  const std::string copy = ::testing::TempDir() + "weft_stripped_" + std::to_string(::getpid());
  if (std::system(("strip -s -o " + copy + " /proc/" + std::to_string(::getpid()) + "/exe 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "there is no strip";
  std::FILE* run =
      ::popen((copy + " --gtest_also_run_disabled_tests --gtest_filter=Stripped.DISABLED_* 2>&1").c_str(), "r");
  std::string text;
  for (int c = std::fgetc(run); c != EOF; c = std::fgetc(run)) text += static_cast<char>(c);
  EXPECT_EQ(::pclose(run), 0) << text;
  ::unlink(copy.c_str());
  EXPECT_TRUE(contains(text, "\"waiter\" waits ")) << text;
  EXPECT_TRUE(contains(text, "for mutex M1 (held by #")) << text;
  EXPECT_TRUE(contains(text, "+0x")) << text;  // frames as addr2line understands them
}

}  // namespace
