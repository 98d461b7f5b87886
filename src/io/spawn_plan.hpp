// What posix_spawn is to do in the child before it runs the program: where the standard streams lead, the directory, the
// signals, the process group; and the lists of arguments and of the environment.
#pragma once

#include <spawn.h>

#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "io/kernel.hpp"
#include <weft/detail/fd_handle.hpp>
#include <weft/process_options.hpp>

namespace weft::inline v1::io {

// A number that is closed with this object.
class closing_fd {
 public:
  closing_fd() noexcept = default;
  closing_fd(int fd, const kernel_calls& calls) noexcept : fd_(fd), calls_(&calls) {}
  closing_fd(closing_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)), calls_(other.calls_) {}
  closing_fd& operator=(closing_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(calls_, other.calls_);
    return *this;
  }
  ~closing_fd() {
    if (fd_ >= 0) calls_->close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
  const kernel_calls* calls_ = nullptr;
};

// The standard streams of a child, and its directory.
//
// Everything that becomes one of the numbers 0, 1 and 2 has a larger number before. So no step of the child overwrites
// what a later one needs, also when the streams of the parent are exchanged.
class stream_plan {
 public:
  explicit stream_plan(const kernel_calls& calls);
  ~stream_plan();
  stream_plan(const stream_plan&) = delete;
  stream_plan& operator=(const stream_plan&) = delete;

  // Leads the stream with this number there. `other_end` is the parent's end if that is a pipe. To be called in the order
  // of the numbers.
  [[nodiscard]] std::error_code lead(int number, redirect where, fd_handle& other_end);
  [[nodiscard]] std::error_code go_to(const std::string& directory);
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const noexcept { return &actions_; }

 private:
  [[nodiscard]] std::error_code lead_to(int number, closing_fd from);
  [[nodiscard]] std::error_code lead_to_pipe(int number, fd_handle& other_end);

  const kernel_calls& calls_;
  posix_spawn_file_actions_t actions_;
  closing_fd childs_[3];
};

// An empty signal mask, and the default action for SIGPIPE, which a parent that ignores it would hand down.
class start_attributes {
 public:
  explicit start_attributes(bool own_group);
  ~start_attributes() { ::posix_spawnattr_destroy(&attributes_); }
  start_attributes(const start_attributes&) = delete;
  start_attributes& operator=(const start_attributes&) = delete;
  [[nodiscard]] const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

// Strings as exec wants them.
class string_list {
 public:
  explicit string_list(std::vector<std::string> strings);
  [[nodiscard]] char* const* get() const noexcept { return pointers_.data(); }

 private:
  std::vector<std::string> strings_;
  std::vector<char*> pointers_;
};

// The environment of the child. Throws usage_error for an entry that is not "NAME=value".
[[nodiscard]] std::vector<std::string> environment_for(const process_options& o);

}  // namespace weft::inline v1::io
