// A PostgreSQL server for the tests of one process, which ends with the process, however that ends.
#pragma once

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace support {

class postgres_server {
 public:
  // The command beside the server tells where it is and waits until its input ends.
  postgres_server() {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    input_ = in[1];
    posix_spawn_file_actions_t ends;
    ::posix_spawn_file_actions_init(&ends);
    ::posix_spawn_file_actions_adddup2(&ends, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&ends, out[1], STDOUT_FILENO);
    std::string words[] = {WITH_POSTGRES, "sh", "-c", "echo \"$PGHOST\"; exec cat >/dev/null"};
    char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
    const int failure = ::posix_spawn(&process_, arguments[0], &ends, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&ends);
    ::close(in[0]);
    ::close(out[1]);
    for (char c = 0; failure == 0 && ::read(out[0], &c, 1) == 1 && c != '\n';) directory_ += c;
    ::close(out[0]);
    if (directory_.empty()) throw std::runtime_error("the PostgreSQL server did not start");
  }
  ~postgres_server() {
    ::close(input_);
    int status = 0;
    ::waitpid(process_, &status, 0);
  }
  postgres_server(const postgres_server&) = delete;
  postgres_server& operator=(const postgres_server&) = delete;

  [[nodiscard]] const std::string& directory() const noexcept { return directory_; }
  // For libpq.
  [[nodiscard]] std::string where() const { return "user=weft dbname=postgres host=" + directory_; }

 private:
  int input_ = -1;
  pid_t process_ = -1;
  std::string directory_;
};

}  // namespace support
