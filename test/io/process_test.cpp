// Child processes: how they are started, what they get, and how their end is told.
#include <weft/process.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "io/net.hpp"
#include "io/spawn.hpp"
#include <weft/signals.hpp>

namespace {

using namespace support::usual;
using namespace support;
using weft::exit_status;
using weft::process;
using weft::redirect;

[[nodiscard]] bool has_no_children() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

// Sees that neither descriptors nor zombies are left.
template <class Body>
void with_processes(Body body) {
  with_sockets([&] {
    body();
    EXPECT_TRUE(has_no_children());
  });
}

// 'S', 'T', 'Z', …; '-' if there is none.
char state_of(pid_t id) {
  const std::string text = file_text("/proc/" + std::to_string(id) + "/stat");
  const std::size_t name_end = text.rfind(')');
  return name_end == std::string::npos ? '-' : text[name_end + 2];
}

process shell(const std::string& command, const weft::process_options& o = {}) {
  return process({"sh", "-c", command}, o);
}
process endless() { return process({"sleep", "1000"}); }

// req: IO-11
TEST(Process, a_wait_tells_how_it_has_ended) {
  with_processes([] {
    EXPECT_TRUE(process({"true"}).wait().ok());
    const process p = shell("exit 7");
    EXPECT_EQ(p.wait(), exit_status::exited(7));
    EXPECT_EQ(p.wait(), exit_status::exited(7)) << "it stays known";
    EXPECT_EQ(p.try_wait(), exit_status::exited(7));
    EXPECT_FALSE(p.kill()) << "it has ended";
    EXPECT_EQ(p.wait().to_string(), "exited with code 7");
    const process killed = shell("kill -TERM $$");
    EXPECT_EQ(killed.wait(), exit_status::signalled(SIGTERM));
    EXPECT_EQ(killed.wait().to_string(), "ended by signal 15 (Terminated)");
    EXPECT_EQ(killed.wait().code(), std::nullopt);
  });
}

// req: IO-11
TEST(Process, several_tasks_wait_for_one_child_and_get_the_same) {
  with_processes([] {
    const process p = endless();
    std::vector<weft::join_handle<exit_status>> all;
    for (int i = 0; i < 5; ++i) all.push_back(weft::spawn([&] { return p.wait(); }));
    weft::sleep_for(1ms);
    EXPECT_TRUE(p.kill(SIGTERM));
    for (auto& t : all) EXPECT_EQ(t.join(), exit_status::signalled(SIGTERM));
  });
}

// req: IO-11
TEST(Process, a_stopped_child_has_not_ended) {
  with_processes([] {
    const process p = endless();
    auto waiter = weft::spawn([&] { return p.wait(); });
    p.kill(SIGSTOP);
    until([&] { return state_of(p.id()) == 'T'; });
    EXPECT_EQ(p.wait_for(2ms), std::nullopt);
    EXPECT_EQ(p.try_wait(), std::nullopt);
    p.kill(SIGCONT);
    until([&] { return state_of(p.id()) == 'S'; });
    EXPECT_EQ(p.wait_for(2ms), std::nullopt);
    p.kill();
    EXPECT_EQ(waiter.join(), exit_status::signalled(SIGKILL));
  });
}

// req: IO-11
TEST(Process, a_child_that_somebody_else_has_reaped_has_an_unknown_status) {
  with_processes([] {
    const process p = shell("exit 3");
    int status = 0;
    ASSERT_EQ(::waitpid(p.id(), &status, 0), p.id());
    EXPECT_TRUE(p.wait().is_unknown());
    EXPECT_TRUE(p.wait().is_unknown());
    EXPECT_FALSE(p.kill());
    EXPECT_NE(p.wait().to_string().find("somebody else"), std::string::npos);

    const process unseen = shell("exit 3");
    ASSERT_EQ(::waitpid(unseen.id(), &status, 0), unseen.id());
    EXPECT_FALSE(unseen.kill()) << "nobody is hit";
    EXPECT_EQ(weft::prialt(unseen.exited(), weft::otherwise).index(), 0u);
  });
}

TEST(Process, a_child_that_nobody_can_wait_for_has_an_unknown_status) {
  ::signal(SIGCHLD, SIG_IGN);  // the kernel reaps
  with_processes([] {
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(process({"true"}).wait().is_unknown());
    const process p = endless();
    p.kill();
    EXPECT_TRUE(p.wait().is_unknown());
  });
  ::signal(SIGCHLD, SIG_DFL);
}

// The kernel has reaped it before it could be looked at.
TEST(Process, a_child_that_is_gone_before_it_is_looked_at_has_an_unknown_status) {
  static weft::io::kernel_calls late = weft::io::real_kernel();
  late.pidfd_open = [](pid_t id) noexcept -> int {
    int status = 0;
    ::waitpid(id, &status, 0);
    return errno = ESRCH, -1;
  };
  with_processes([] {
    std::error_code why;
    const auto started = weft::io::start_process(late, {"true"}, {}, why);
    ASSERT_FALSE(why) << why.message();
    EXPECT_EQ(started.who->wait({}, why), exit_status());
    EXPECT_EQ(weft::prialt(weft::exit_arm(*started.who), weft::otherwise).index(), 0u);
  });
}

TEST(Process, a_child_that_cannot_be_watched_is_taken_back) {
  static weft::io::kernel_calls poor = weft::io::real_kernel();
  poor.pidfd_open = [](pid_t) noexcept -> int { return errno = EMFILE, -1; };
  static weft::io::kernel_calls old = weft::io::real_kernel();  // Linux 5.3 has pidfds, but no wait for them
  old.wait_pidfd = [](int, siginfo_t*, int) noexcept -> int { return errno = EINVAL, -1; };
  with_processes([] {
    std::error_code why;
    EXPECT_EQ(weft::io::start_process(poor, {"sleep", "1000"}, {.output = redirect::pipe}, why).who, nullptr);
    EXPECT_EQ(why, std::errc::too_many_files_open);
    EXPECT_EQ(weft::io::start_process(old, {"sleep", "1000"}, {.output = redirect::pipe}, why).who, nullptr);
    EXPECT_EQ(why, std::errc::invalid_argument);
  });
}

// req: IO-11
TEST(Process, its_end_is_an_arm) {
  with_processes([] {
    const process p = endless();
    auto soon = weft::after(1ms);
    EXPECT_EQ(weft::select(p.exited(), soon).index(), 1u);
    auto killer = weft::spawn([&] { p.kill(); });
    auto late = weft::after(60s);
    exit_status how;
    EXPECT_EQ(weft::select(late, p.on_exit([&](exit_status s) { how = s; })).index(), 1u);
    EXPECT_EQ(how, exit_status::signalled(SIGKILL));
    EXPECT_EQ(weft::select(late, p.exited()).index(), 1u) << "it stays so";
    killer.join();
  });
}

// req: IO-2 IO-11
TEST(Process, a_cancelled_wait_leaves_the_child_alone) {
  with_processes([] {
    const process p = endless();
    auto waiter = weft::spawn([&] { return p.wait(); });
    weft::sleep_for(1ms);
    waiter.cancel();
    EXPECT_THROW(waiter.join(), weft::task_cancelled);
    EXPECT_EQ(p.try_wait(), std::nullopt);
  });
}

// req: IO-11
TEST(Process, no_zombie_and_no_survivor_is_left_by_a_handle_that_goes) {
  const auto check = [] {
    pid_t id = 0;
    {
      const process p = endless();
      id = p.id();
    }
    EXPECT_TRUE(has_no_children());
    EXPECT_EQ(state_of(id), '-');
    { const process ended = shell("exit 0"); }
    EXPECT_TRUE(has_no_children());
  };
  with_processes([&] {
    check();
    process assigned = endless();
    assigned = process({"true"});
    assigned.wait();
    auto cancelled = weft::spawn([] {
      const process p = endless();
      weft::sleep_for(60s);
    });
    weft::sleep_for(1ms);
    cancelled.cancel();
    EXPECT_THROW(cancelled.join(), weft::task_cancelled);
  });
  check();  // on a thread
}

TEST(Process, a_detached_child_goes_on_and_is_reaped_later) {
  with_sockets([] {
    process p = shell("read line", {.input = redirect::pipe});
    const pid_t id = p.id();
    const int keeps_it_alive = p.input().release();
    p.detach();
    EXPECT_THROW((void)p.wait(), weft::usage_error);
    EXPECT_NE(state_of(id), '-');
    ::close(keeps_it_alive);
    until([&] { return state_of(id) == 'Z'; });
    process({"true"}).wait();
    EXPECT_TRUE(has_no_children());
  });
}

// req: IO-11 IO-13
TEST(Process, a_program_that_cannot_be_started_is_an_error_that_names_it) {
  with_processes([] {
    const auto message = [](const std::vector<std::string>& arguments, std::errc expected,
                            const weft::process_options& o = {}) {
      try {
        const process p(arguments, o);
      } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), expected) << e.what();
        return std::string(e.what());
      }
      return std::string("no error");
    };
    EXPECT_NE(message({"no-such-program"}, std::errc::no_such_file_or_directory).find("start no-such-program"),
              std::string::npos);
    message({"/etc/passwd"}, std::errc::permission_denied);
    EXPECT_NE(message({"true"}, std::errc::no_such_file_or_directory, {.directory = "/no/such/place"}).find("/no/such"),
              std::string::npos);
    message({"true"}, std::errc::bad_file_descriptor, {.output = redirect::to(100'000)});
    std::error_code why;
    const process none({"no-such-program"}, {.input = redirect::pipe, .output = redirect::pipe}, why);
    EXPECT_EQ(why, std::errc::no_such_file_or_directory);
    EXPECT_THROW((void)none.wait(), weft::usage_error);
    EXPECT_THROW(process(std::vector<std::string>()), weft::usage_error);
    EXPECT_THROW(process({"true"}, {.environment = {"no value"}}), weft::usage_error);
    EXPECT_THROW(process({"true"}, {.output = redirect::to_output}), weft::usage_error);
    EXPECT_THROW(process({std::string("true\0x", 6)}), weft::usage_error);
    process p({"true"});
    EXPECT_THROW((void)p.output(), weft::usage_error);
    p.wait();
    EXPECT_EQ(error_of([&] {
                process q = endless();
                q.kill(1000);
              }),
              std::errc::invalid_argument);
  });
}

// req: IO-1 IO-11
TEST(Process, its_streams_are_pipes) {
  with_processes([] {
    process cat({"cat"}, {.input = redirect::pipe, .output = redirect::pipe});
    cat.input().write_all("one");
    char room[8];
    EXPECT_EQ(cat.output().read_some(room), 3u);
    EXPECT_EQ(cat.output().native_handle() < 0, false);
    EXPECT_EQ(::fcntl(cat.output().native_handle(), F_GETFD), FD_CLOEXEC);
    cat.input().close();
    EXPECT_EQ(read_to_end(cat.output()), "");
    EXPECT_TRUE(cat.wait().ok());
  });
}

TEST(Process, its_streams_lead_where_they_are_sent) {
  with_processes([] {
    auto [from, to] = weft::make_pipe();
    EXPECT_TRUE(
        shell("echo out; echo err >&2", {.output = redirect::to(to.native_handle()), .error = redirect::to_output})
            .wait()
            .ok());
    to.close();
    EXPECT_EQ(read_to_end(from), "out\nerr\n");
    EXPECT_TRUE(
        shell("read x; test -z \"$x\" && echo lost", {.input = redirect::null, .output = redirect::null}).wait().ok());

    // Exchanged: the standard error goes where the output of this process goes, and the other way round.
    auto [one, to_one] = weft::make_pipe();
    auto [two, to_two] = weft::make_pipe();
    std::fflush(nullptr);
    const int saved[] = {::fcntl(1, F_DUPFD_CLOEXEC, 10), ::fcntl(2, F_DUPFD_CLOEXEC, 10)};
    ::dup2(to_one.native_handle(), 1);
    ::dup2(to_two.native_handle(), 2);
    const bool is_ok =
        shell("echo out; echo err >&2", {.output = redirect::to(2), .error = redirect::to(1)}).wait().ok();
    for (int i = 0; i < 2; ++i) {
      ::dup2(saved[i], i + 1);
      ::close(saved[i]);
    }
    to_one.close();
    to_two.close();
    EXPECT_TRUE(is_ok);
    EXPECT_EQ(read_to_end(one), "err\n");
    EXPECT_EQ(read_to_end(two), "out\n");
  });
}

TEST(Process, it_gets_an_environment_a_directory_and_a_group) {
  with_processes([] {
    const support::environment set("WEFT_TEST_KEPT", "kept");
    const weft::process_options o{
        .output = redirect::pipe, .directory = "/usr", .environment = {"WEFT_TEST_A=1", "WEFT_TEST_A=2"}};
    EXPECT_EQ(weft::run_process({"sh", "-c", "pwd; echo $WEFT_TEST_A $WEFT_TEST_KEPT"}, {}, o).output,
              "/usr\n2 kept\n");
    EXPECT_EQ(weft::run_process({"/usr/bin/env"}, {},
                                {.output = redirect::pipe, .environment = {"A=b"}, .only_this_environment = true})
                  .output,
              "A=b\n");
    const process leader({"sleep", "1000"}, {.own_group = true});
    EXPECT_EQ(::getpgid(leader.id()), leader.id());
    const process follower = endless();
    EXPECT_EQ(::getpgid(follower.id()), ::getpgid(0));
  });
}

// The parent ignores SIGPIPE and blocks signals in this thread; the child must not know.
// req: IO-11
TEST(Process, it_gets_a_clean_signal_mask_and_no_descriptors) {
  const auto lines = [] { return weft::output_of({"grep", "-E", "SigBlk|SigIgn", "/proc/self/status"}); };
  const auto descriptors = [] { return weft::output_of({"ls", "/proc/self/fd"}); };
  const std::size_t before = open_descriptors();
  {
    const std::string usual_lines = lines(), usual_descriptors = descriptors();
    EXPECT_NE(usual_lines.find("SigBlk:\t0000000000000000"), std::string::npos) << usual_lines;
    ::signal(SIGPIPE, SIG_IGN);
    sigset_t all, old;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &old);
    const weft::signals listener({SIGUSR1});
    const auto ends = weft::make_pipe();
    EXPECT_EQ(lines(), usual_lines);
    EXPECT_EQ(descriptors(), usual_descriptors);
    ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
    ::signal(SIGPIPE, SIG_DFL);
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(has_no_children());
}

// req: IO-11
TEST(Process, much_output_on_both_streams_is_collected) {
  with_processes([] {
    constexpr std::size_t much = 10 << 20;
    const std::string n = std::to_string(much);
    const auto r = weft::run_process({"sh", "-c", "head -c " + n + " /dev/zero >&2; head -c " + n + " /dev/zero"});
    EXPECT_TRUE(r.status.ok());
    EXPECT_EQ(r.output.size(), much);
    EXPECT_EQ(r.error.size(), much);
  });
}

// req: IO-11
TEST(Process, a_program_is_run_with_an_input) {
  const auto check = [] {
    const std::string text = pattern(1 << 20);
    const auto r = weft::run_process({"cat"}, text);
    EXPECT_EQ(r.output, text);
    EXPECT_TRUE(weft::run_process({"true"}, text).status.ok()) << "it need not read its input";
    EXPECT_EQ(weft::output_of({"cat"}), "");
    try {
      (void)weft::output_of({"sh", "-c", "echo reason >&2; exit 4"});
      ADD_FAILURE() << "it fails";
    } catch (const weft::process_failed& e) {
      EXPECT_EQ(e.result().status, exit_status::exited(4));
      EXPECT_STREQ(e.what(), "sh exited with code 4: reason\n");
    }
  };
  with_processes(check);
  check();  // on a thread
  EXPECT_TRUE(has_no_children());
}

// req: IO-11
TEST(Process, a_time_limit_kills_what_is_run) {
  with_processes([] {
    const auto text = weft::with_timeout(5ms, [] { return weft::output_of({"sleep", "1000"}); });
    EXPECT_EQ(text, std::nullopt);
  });
}

// req: IO-11
TEST(Process, two_hundred_children_at_once) {
  with_processes([] {
    constexpr int n = 200;
    std::vector<process> all;
    for (int i = 0; i < n; ++i) all.push_back(shell("read line; exit " + std::to_string(i), {.input = redirect::pipe}));
    std::vector<weft::join_handle<exit_status>> waiters;
    for (process& p : all) waiters.push_back(weft::spawn([&p] { return p.wait(); }));
    for (process& p : all) p.input().close();
    for (int i = 0; i < n; ++i) EXPECT_EQ(waiters[static_cast<std::size_t>(i)].join(), exit_status::exited(i));
  });
}

// req: IO-11
TEST(Process, a_fork_beside_it_disturbs_nobody) {
  with_processes([] {
    process p = shell("read line", {.input = redirect::pipe});
    const weft::signals s({SIGUSR1});
    until(others_sleep);  // the child inherits the locks of a sanitizer's allocator as they are
    const pid_t forked = ::fork();
    if (forked == 0) {
      p = process();  // its handle is a copy: the child is the parent's
      ::execlp("true", "true", nullptr);
      ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(forked, &status, 0), forked);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(p.try_wait(), std::nullopt) << "it was not killed";
    p.input().write_all("\n");
    EXPECT_TRUE(p.wait().ok());
  });
}

}  // namespace
