#include <weft/pipe.hpp>

#include <fcntl.h>

#include <string>

#include "io/pipe_end.hpp"

namespace weft::inline v1::io {

pipe_numbers open_pipe(const kernel_calls& calls, std::error_code& why) noexcept {
  int both[2];
  why.clear();
  if (calls.pipe2(both, O_CLOEXEC) == 0) return {both[0], both[1]};
  why = last_error();
  return {};
}

fd_handle own_end(int fd, const kernel_calls& calls, std::error_code& why) {
  why.clear();
  if (calls.set_nonblocking(fd) == 0) return fd_handle(fd_record::take_over(fd, calls, own_pipe));
  why = last_error();
  return {};
}

namespace {

fd_handle adopt_end(int fd) {
  std::error_code why;
  fd_handle h = own_end(fd, kernel_of_caller(), why);
  if (why) throw std::system_error(why, "adopt descriptor " + std::to_string(fd));
  return h;
}

}  // namespace

}  // namespace weft::inline v1::io

namespace weft::inline v1 {

pipe_reader pipe_reader::adopt(int fd) { return pipe_reader(io::adopt_end(fd)); }
pipe_writer pipe_writer::adopt(int fd) { return pipe_writer(io::adopt_end(fd)); }

pipe_ends make_pipe(std::error_code& why) {
  const io::kernel_calls& calls = io::kernel_of_caller();
  const io::pipe_numbers both = io::open_pipe(calls, why);
  if (why) return {};
  const auto close_both = [&] {
    calls.close(both.reader);
    calls.close(both.writer);
  };
  // Before anything owns the numbers, so that an error needs no bookkeeping.
  if (calls.set_nonblocking(both.reader) != 0 || calls.set_nonblocking(both.writer) != 0) {
    why = io::last_error();
    close_both();
    return {};
  }
  pipe_ends ends;
  try {
    ends.reader = pipe_reader(io::fd_handle(io::fd_record::take_over(both.reader, calls, io::own_pipe)));
  } catch (...) {
    calls.close(both.writer);
    throw;
  }
  ends.writer = pipe_writer(io::fd_handle(io::fd_record::take_over(both.writer, calls, io::own_pipe)));
  return ends;
}

pipe_ends make_pipe() {
  std::error_code why;
  pipe_ends ends = make_pipe(why);
  if (why) throw std::system_error(why, "make a pipe");
  return ends;
}

}  // namespace weft::inline v1
