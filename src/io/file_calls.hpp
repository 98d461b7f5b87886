// Where the kernel calls on files are made: reads of what is cached on the worker, everything else off it.
//
// io.FC1. A read of what is in the page cache is made on the worker, without a hand-over.
//     test io/a_cached_read_*
// io.FC2. What an attempt on the worker did not transfer is asked for again off the worker, where the kernel may wait.
//     Neither an error nor the count 0 of the attempt is believed: Linux 5.9 and 5.10 return 0 for what is not cached
//     (preadv2(2), BUGS), and some file systems return EIO.
//     test io/a_read_that_is_not_cached_*
#pragma once

#include <cstddef>
#include <source_location>
#include <span>
#include <string>

#include "io/begin_operation.hpp"
#include "io/file_transfer.hpp"
#include "io/open_file.hpp"
#include <weft/dispatcher.hpp>
#include <weft/fs/file.hpp>
#include <weft/this_task.hpp>

namespace weft::inline v1::io {

// blocking(), but never a cancellation point.
template <class F>
void blocking_to_the_end(F&& f, std::source_location where) {
  if (!this_task::running()) return f();
  const this_task::shield held;
  blocking(f, where);
}

// Whole files are read and written in pieces of this size, with a cancellation point before each.
inline constexpr std::size_t bytes_per_turn = std::size_t{8} << 20;

struct transferred {
  std::size_t count = 0;
  std::error_code why;
};

// The caller has begun a use of the file.
[[nodiscard]] transferred read(open_file& f, std::span<const mutable_buffer> to, off_t offset, amount much,
                               std::source_location where);
[[nodiscard]] transferred write(open_file& f, std::span<const const_buffer> from, off_t offset, amount much,
                                std::source_location where);

// Opens a file, off the worker. `f` is closed before, and open if there is no error. A cancelled call has opened nothing.
[[nodiscard]] std::error_code open(open_file& f, const std::string& path, int flags, mode_t permissions,
                                   std::source_location where);
// The same for callers that are off the worker.
[[nodiscard]] std::error_code open_here(open_file& f, const std::string& path, int flags, mode_t permissions) noexcept;

// How public handles are made of a core, and the core of a handle; nullptr if the handle is empty.
struct file_access {
  [[nodiscard]] static open_file* core_of(const fs::file& f) noexcept { return f.core_.get(); }
  [[nodiscard]] static fs::file open(const kernel_calls& calls, const std::filesystem::path& path,
                                     const fs::open_options& how, std::error_code* why, std::source_location where);
};

}  // namespace weft::inline v1::io
