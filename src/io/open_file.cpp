#include "io/open_file.hpp"

#include "io/file_error.hpp"

namespace weft::inline v1::io {

open_file::~open_file() { (void)close(); }

void open_file::adopt(int fd) noexcept {
  fd_ = fd;
  life_.begin();
}

std::error_code open_file::end_use() noexcept {
  if (!life_.end_use().number || calls_.close(fd_) == 0) return {};
  const std::error_code why = error_of_last_call();
  // The number is free again whatever close(2) returns, so there is no second attempt.
  return why == std::errc::interrupted ? std::error_code() : why;
}

std::error_code open_file::close() noexcept { return life_.begin_close() ? end_use() : std::error_code(); }

bool open_file::release() noexcept {
  if (!life_.begin_release()) return false;
  (void)end_use();
  return true;
}

}  // namespace weft::inline v1::io
