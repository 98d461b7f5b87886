#include "io/file_calls.hpp"

#include <fcntl.h>

namespace weft::inline v1::io {
namespace {

// Copying so much takes a worker about 25 µs. Beside that a hand-over, below 0.1 µs, does not count, so larger reads are
// made where nobody waits for the worker.
constexpr std::size_t most_on_worker = std::size_t{256} << 10;

bool fits_worker(std::span<const mutable_buffer> buffers) noexcept {
  std::size_t left = most_on_worker;
  for (const mutable_buffer& b : buffers) {
    if (b.size() > left) return false;
    left -= b.size();
  }
  return true;
}

}  // namespace

transferred read(open_file& f, std::span<const mutable_buffer> to, off_t offset, amount much,
                 std::source_location where) {
  file_read t(to, offset);
  if (t.is_complete()) return {};
  if (this_task::running() && fits_worker(to)) {
    (void)go_on(t, amount::some, f.calls(), f.fd(), RWF_NOWAIT);  // io.FC2
    if (t.is_complete() || (much == amount::some && t.count() > 0)) return {t.count(), {}};
  }
  const std::error_code why = blocking([&] { return go_on(t, much, f.calls(), f.fd(), 0); }, where);
  return {t.count(), why};
}

transferred write(open_file& f, std::span<const const_buffer> from, off_t offset, amount much,
                  std::source_location where) {
  file_write t(from, offset);
  if (t.is_complete()) return {};
  const std::error_code why = blocking([&] { return go_on(t, much, f.calls(), f.fd()); }, where);
  return {t.count(), why};
}

std::error_code open_here(open_file& f, const std::string& path, int flags, mode_t permissions) noexcept {
  // The kernel would take what stands before a zero for the path.
  if (path.find('\0') != std::string::npos) return std::make_error_code(std::errc::invalid_argument);
  int fd = -1;
  const std::error_code why =
      uninterrupted([&] { return fd = f.calls().open(path.c_str(), flags | O_CLOEXEC, permissions); });
  if (!why) f.adopt(fd);
  return why;
}

// The way back from blocking() is no cancellation point: what was opened reaches the caller, who owns `f`.
std::error_code open(open_file& f, const std::string& path, int flags, mode_t permissions, std::source_location where) {
  return blocking([&] { return open_here(f, path, flags, permissions); }, where);
}

}  // namespace weft::inline v1::io
