#include "io/plain_calls.hpp"

#include <limits.h>

#include <algorithm>
#include <source_location>

#include "io/file_calls.hpp"
#include "io/sigpipe.hpp"
#include "io/watched.hpp"

namespace weft::inline v1::io {
namespace {

std::ptrdiff_t read_now(fd_record& r, std::span<const iovec> to, int flags) noexcept {
  return outcome_of(r.calls().preadv2(r.fd(), to.data(), static_cast<int>(to.size()), current_position, flags));
}

std::ptrdiff_t write_now(fd_record& r, std::span<const iovec> from, int flags) noexcept {
  return without_sigpipe([&] {
    return outcome_of(r.calls().pwritev2(r.fd(), from.data(), static_cast<int>(from.size()), current_position, flags));
  });
}

template <class Call>
std::ptrdiff_t off_the_worker(Call call) {
  std::ptrdiff_t n = 0;
  blocking_to_the_end([&] { n = call(); }, std::source_location::current());
  return n;
}

// A pipe and a terminal have room for so much when poll(2) says that they can be written, so a write of no more does
// not block, unless others write too.
iovec first_portion(std::span<const iovec> from) noexcept {
  return {from.front().iov_base, std::min<std::size_t>(from.front().iov_len, PIPE_BUF)};
}

}  // namespace

std::ptrdiff_t read_plain(fd_record& r, std::span<const iovec> to) {
  const fd_kind kind = r.traits().kind;
  if (kind == fd_kind::pipe) return read_now(r, to, 0);
  if (kind == fd_kind::shared_pipe) {
    const std::ptrdiff_t n = read_now(r, to, RWF_NOWAIT);
    if (n != -EOPNOTSUPP) return n;  // pipes know the flag since Linux 6.4
  }
  if (kind != fd_kind::file && ask_kernel(r, side::read) != 0) return -EAGAIN;
  return off_the_worker([&] { return read_now(r, to, 0); });
}

std::ptrdiff_t write_plain(fd_record& r, std::span<const iovec> from) {
  const fd_kind kind = r.traits().kind;
  if (kind == fd_kind::pipe) return write_now(r, from, 0);
  if (kind == fd_kind::shared_pipe) {
    const std::ptrdiff_t n = write_now(r, from, RWF_NOWAIT);
    if (n != -EOPNOTSUPP) return n;
  }
  if (kind == fd_kind::file) return off_the_worker([&] { return write_now(r, from, 0); });
  if (ask_kernel(r, side::write) != 0) return -EAGAIN;
  const iovec part = first_portion(from);
  return off_the_worker([&] { return write_now(r, {&part, 1}, 0); });
}

}  // namespace weft::inline v1::io
