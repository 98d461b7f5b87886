// The core of an open file: its descriptor, the kernel that opened it, its name for messages, and who uses it.
//
// io.OF1. The descriptor is closed once: by whoever ends the last use after close(), or by close() itself if nobody uses
//     the file. After close() no use begins.
//     follows from io.R1, test io/a_close_*
#pragma once

#include <string>
#include <system_error>
#include <utility>

#include "io/fd_life.hpp"
#include "io/kernel.hpp"

namespace weft::inline v1::io {

class open_file {
 public:
  // Closed, until adopt().
  open_file(const kernel_calls& calls, std::string name) noexcept : calls_(calls), name_(std::move(name)) {}
  ~open_file();
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  // Takes over a descriptor. Called once, before others know of this object.
  void adopt(int fd) noexcept;

  [[nodiscard]] const kernel_calls& calls() const noexcept { return calls_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int fd() const noexcept { return fd_; }  // for those who use it
  [[nodiscard]] bool is_closed() const noexcept { return life_.is_closed(); }

  // Returns false if the file is closed.
  [[nodiscard]] bool begin_use() noexcept { return life_.begin_use(); }
  // Returns an error if this was the last use of a closed file, and the kernel has something to say.
  std::error_code end_use() noexcept;

  // Does nothing if the file is closed already. Returns the error of the kernel, unless another task closes the
  // descriptor later.
  std::error_code close() noexcept;
  // Closes the file, but not the descriptor. Returns false if the file is closed already or somebody uses it.
  [[nodiscard]] bool release() noexcept;

 private:
  const kernel_calls& calls_;
  const std::string name_;
  int fd_ = -1;
  fd_life life_;  // its one owner is this object
};

// The descriptor stays open while this lives, if there is a file and it is open.
class file_use {
 public:
  explicit file_use(open_file* f) noexcept : file_(f != nullptr && f->begin_use() ? f : nullptr) {}
  ~file_use() {
    if (file_ != nullptr) (void)file_->end_use();
  }
  file_use(const file_use&) = delete;
  file_use& operator=(const file_use&) = delete;
  [[nodiscard]] explicit operator bool() const noexcept { return file_ != nullptr; }

 private:
  open_file* file_;
};

}  // namespace weft::inline v1::io
