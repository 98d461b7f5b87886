#include <weft/stdio.hpp>

#include <unistd.h>

#include <string>

#include "io/plain_calls.hpp"
#include "io/socket.hpp"

namespace weft::inline v1 {
namespace {

io::fd_kind kind_of(const struct stat& about) noexcept {
  switch (about.st_mode & S_IFMT) {
    case S_IFSOCK: return io::fd_kind::socket;
    case S_IFIFO: return io::fd_kind::shared_pipe;
    case S_IFREG:
    case S_IFBLK:
    case S_IFDIR: return io::fd_kind::file;
    default: return io::fd_kind::device;  // also anonymous ones, such as eventfd
  }
}

io::fd_handle borrow_shared(int fd) {
  const io::kernel_calls& calls = io::kernel_of_caller();
  struct stat about{};
  if (calls.fstat(fd, &about) != 0) throw std::system_error(io::last_error(), "use " + io::text_of_number(fd));
  return io::fd_handle(io::fd_record::take_over(fd, calls, {.kind = kind_of(about), .borrowed = true}));
}

}  // namespace

input_stream input_stream::borrow(int fd) { return input_stream(borrow_shared(fd)); }
output_stream output_stream::borrow(int fd) { return output_stream(borrow_shared(fd)); }

input_stream stdin_stream() { return input_stream::borrow(STDIN_FILENO); }
output_stream stdout_stream() { return output_stream::borrow(STDOUT_FILENO); }
output_stream stderr_stream() { return output_stream::borrow(STDERR_FILENO); }

}  // namespace weft::inline v1
