// Reading and writing what is not a socket (fd_kind): pipes, terminals, files. Others may share such a descriptor, and
// O_NONBLOCK belongs to what is shared. So it is never set on a descriptor that was inherited or borrowed, and
// whatever could block is done off the worker.
//
// io.PC1. The flags of a shared descriptor are never changed.                     test io/flags_of_a_shared_*
// io.PC2. A call that may block is made off the worker, and only after poll(2) has said that it is ready.
//     test io/a_terminal_*, io/a_regular_file_*
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "io/fd_record.hpp"

namespace weft::inline v1::io {

// Each returns a count, or an error as a number below zero: -EAGAIN if the call would block. Called during a use. Never
// cancellation points, but the task may go on on another thread.
[[nodiscard]] std::ptrdiff_t read_plain(fd_record& r, std::span<const iovec> to);
[[nodiscard]] std::ptrdiff_t write_plain(fd_record& r, std::span<const iovec> from);

}  // namespace weft::inline v1::io
