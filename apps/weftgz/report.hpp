// Messages on stderr, and the exit code that they lead to: 1 after an error, 2 after a warning, as gzip has it.
#pragma once

#include <atomic>
#include <string>

namespace weftgz {

class report {
 public:
  explicit report(bool quiet) noexcept : quiet_(quiet) {}

  // Not printed with -q. The exit code is the same.
  void warning(const std::string& name, const std::string& what) {
    int none = 0;
    code_.compare_exchange_strong(none, 2);
    if (!quiet_) print("weftgz: " + name + what + "\n");
  }
  void error(const std::string& name, const std::string& what) {
    code_ = 1;
    print("weftgz: " + name + ": " + what + "\n");
  }
  void note(const std::string& line) { print(line + "\n"); }

  // Nobody reads our output any more. There is nothing to say about it, and the process ends as SIGPIPE would end it.
  void pipe_is_closed() noexcept { pipe_is_closed_ = true; }
  [[nodiscard]] bool is_pipe_closed() const noexcept { return pipe_is_closed_; }
  [[nodiscard]] int exit_code() const noexcept { return code_; }

 private:
  void print(const std::string& line);
  bool quiet_;
  std::atomic<int> code_{0};
  std::atomic<bool> pipe_is_closed_{false};
};

}  // namespace weftgz
