#include "io/spawn.hpp"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "io/spawn_plan.hpp"

namespace weft::inline v1::io {
namespace {

// Whether waitid knows the pidfd as that of a child of ours. If somebody else has reaped the child already, its number, by
// which the pidfd was opened, may be a stranger's: then this is errc::no_child_process.
std::error_code look_without_reaping(const kernel_calls& calls, int pidfd) noexcept {
  siginfo_t about{};
  return calls.wait_pidfd(pidfd, &about, WEXITED | WNOHANG | WNOWAIT) == 0 ? std::error_code() : last_error();
}

// For a child that nobody could wait for: there is no memory or no descriptor for that.
void undo_start(const kernel_calls& calls, pid_t id) noexcept {
  calls.kill(id, SIGKILL);
  while (calls.waitpid(id, nullptr, 0) < 0 && last_error_number() == EINTR) {}
}

// A child that somebody else has reaped before it could be looked at. An eventfd that is readable for ever takes the place
// of its pidfd.
std::unique_ptr<child> gone_already(const kernel_calls& calls, pid_t id, std::error_code& why) {
  const int always_readable = calls.eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
  if (always_readable < 0) {
    why = last_error();
    return nullptr;
  }
  return std::make_unique<child>(id, fd_handle(fd_record::take_over(always_readable, calls, {})), exit_status());
}

std::unique_ptr<child> watch_child(const kernel_calls& calls, pid_t id, std::error_code& why) {
  closing_fd pidfd(calls.pidfd_open(id), calls);
  why = pidfd.get() < 0 ? last_error() : look_without_reaping(calls, pidfd.get());
  if (why == std::errc::no_such_process || why == std::errc::no_child_process) {
    why.clear();
    return gone_already(calls, id, why);
  }
  if (why) {
    undo_start(calls, id);
    return nullptr;
  }
  try {
    return std::make_unique<child>(id, fd_handle(fd_record::take_over(pidfd.release(), calls, {})), std::nullopt);
  } catch (...) {
    undo_start(calls, id);
    throw;
  }
}

}  // namespace

started_process start_process(const kernel_calls& calls, const std::vector<std::string>& arguments,
                              const process_options& o, std::error_code& why) {
  started_process started;
  stream_plan streams(calls);
  const redirect wanted[] = {o.input, o.output, o.error};
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if ((why = streams.lead(number, wanted[number], started.pipes[number]))) return {};
  if ((why = streams.go_to(o.directory.string()))) return {};
  const start_attributes attributes(o.own_group);
  const string_list words(arguments);
  const string_list environment(environment_for(o));
  pid_t id = -1;
  why = std::error_code(
      calls.spawn(&id, arguments.front().c_str(), streams.actions(), attributes.get(), words.get(), environment.get()),
      std::generic_category());
  if (!why) started.who = watch_child(calls, id, why);
  if (why) return {};
  return started;
}

}  // namespace weft::inline v1::io
