#include "support/child_process.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>

namespace support {
namespace {

using clock = std::chrono::steady_clock;

// Reads until the other end is closed. False: the time was up before.
bool read_all(int from, std::string& into, clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()).count();
    pollfd one{.fd = from, .events = POLLIN, .revents = 0};
    const int ready = left <= 0 ? 0 : ::poll(&one, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return false;
    char text[4096];
    const ssize_t n = ::read(from, text, sizeof text);
    if (n <= 0) return true;
    into.append(text, static_cast<std::size_t>(n));
  }
}

[[noreturn]] void be_the_child(const std::function<void()>& program, int said) {
  ::dup2(said, STDERR_FILENO);
  try {
    program();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "the program threw: %s\n", e.what());
    ::_exit(3);
  }
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace

ended in_child(const std::function<void()>& program, std::chrono::seconds limit) {
  int both[2];
  if (::pipe(both) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const auto begin = clock::now();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no child");
  if (child == 0) {
    ::close(both[0]);
    be_the_child(program, both[1]);
  }
  ::close(both[1]);
  ended e;
  const bool in_time = read_all(both[0], e.said, begin + limit);
  ::close(both[0]);
  if (!in_time) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  if (in_time) e.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  e.took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - begin);
  return e;
}

}  // namespace support
