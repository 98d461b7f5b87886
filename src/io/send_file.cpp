// weft::net::send_file: sendfile(2) off the worker, and waits for room in the socket on it.
//
// sendfile reads the pages of the file. A page that is not cached comes from the disk, and the call waits for it although
// the socket is non-blocking. So every call is made as blocking() makes it. That costs below 0.1 µs when there is no need
// to wait, beside many µs for the call. Rejected: a first attempt on the worker, as reads of files have one (io.FC1),
// because sendfile has no flag that keeps it from waiting for the disk. Rejected: readahead(2) before a call on the
// worker: it may block as well, and does not say when the pages are there.
#include <weft/net/send_file.hpp>

#include <algorithm>
#include <cstddef>
#include <string>

#include "io/file_calls.hpp"
#include "io/sigpipe.hpp"
#include "io/transfer.hpp"
#include <weft/detail/task_core.hpp>

namespace weft::inline v1 {
namespace {

constexpr waits::wait_kind send_file_kind{"send file", waits::kind_number::write};

// Of one call. Between two calls others get their turn, and a cancelled task leaves.
constexpr std::uint64_t most_per_call = std::uint64_t{1} << 20;

// A call that has sent less than it was asked for says nothing about the room in the socket, because the file may be the
// reason. So the transfer is told that no bytes were asked for, and the next call finds out.
io::transferred send_some(io::fd_record& to, io::open_file& from, off_t offset, std::size_t most, const io::limit& l) {
  std::error_code why;
  const std::ptrdiff_t n = io::transfer(to, io::side::write, 0, {send_file_kind, l}, why, [&](int fd) {
    std::ptrdiff_t sent = 0;
    // No cancellation point: a transfer that has begun a call also ends it (io.D2).
    const auto call_once = [&] { return io::outcome_of(to.calls().sendfile(fd, from.fd(), &offset, most)); };
    io::blocking_to_the_end([&] { sent = io::without_sigpipe(call_once); }, l.where);
    return sent;
  });
  if (why) return {0, why};
  const auto count = static_cast<std::size_t>(n);
  if (count >= io::one_operation) io::spend_budget_on(count);
  return {count, {}};
}

}  // namespace

std::uint64_t net::detail::send_file(io::fd_record& to, const fs::file& from, std::uint64_t offset,
                                     std::uint64_t length, const io::limit& l, std::error_code* why) {
  io::open_file* file = io::file_access::core_of(from);
  if (file == nullptr)
    weft::detail::throw_usage("a fs::file is sent that is empty: it was never opened, or moved from", l.where);
  io::begin_operation(l.where);
  std::uint64_t done = 0;
  std::error_code reason = std::make_error_code(std::errc::bad_file_descriptor);
  if (const io::file_use held(file); offset > INT64_MAX) {
    reason = std::make_error_code(std::errc::invalid_argument);
  } else if (held) {
    reason.clear();
    length = std::min(length, INT64_MAX - offset);
    for (std::size_t last = 1; done < length && last != 0 && !reason; done += last) {
      const io::transferred sent = send_some(to, *file, static_cast<off_t>(offset + done),
                                             static_cast<std::size_t>(std::min(length - done, most_per_call)), l);
      last = sent.count;
      reason = sent.why;
    }
  }
  if (why != nullptr)
    *why = reason;
  else if (reason)
    throw std::system_error(reason, "send " + file->name() + " to " + io::text_of_remote(to));
  return done;
}

}  // namespace weft::inline v1
