// The whole contents of a file, read and replaced. fs.hpp says what holds for both. Unlike the operations on an open file
// these have cancellation points in between, before each step and before each 8 MiB.
#pragma once

#include <filesystem>
#include <source_location>
#include <string>
#include <system_error>

#include <weft/buffer.hpp>
#include <weft/detail/config.hpp>

namespace weft::inline v1::fs {

// Reads to the end, whatever size the file says it has: files of /proc say 0, pipes say nothing.
[[nodiscard]] WEFT_API std::string read_file(const std::filesystem::path& path,
                                             std::source_location where = std::source_location::current());
// Returns what was read before the error.
[[nodiscard]] WEFT_API std::string read_file(const std::filesystem::path& path, std::error_code& why,
                                             std::source_location where = std::source_location::current());

struct write_options {
  // Returns only when the disk has the new contents and the new name. Without it a power failure may bring back the old
  // contents or, on some file systems, leave an empty file.
  bool sync = true;
  unsigned permissions = 0666;  // of a new file, less the umask; a file that is replaced hands on its own
};

// Replaces the contents as a whole: whoever opens the path finds the old contents or the new ones, never a part. For
// that it writes another file in the same directory, which is given the name at the end. If it fails or is cancelled,
// nothing has changed and nothing is left behind, with one exception: if only the last step fails, the sync of the
// directory, the new contents are in place.
//
// It needs the right to write to the directory. A symbolic link is followed. The owner, other hard links and extended
// attributes stay with the old file. What is no regular file, such as a device or a pipe, is written to as it is, and a
// directory is errc::is_a_directory.
WEFT_API void write_file(const std::filesystem::path& path, const_buffer contents, const write_options& how = {},
                         std::source_location where = std::source_location::current());
WEFT_API void write_file(const std::filesystem::path& path, const_buffer contents, const write_options& how,
                         std::error_code& why, std::source_location where = std::source_location::current());

}  // namespace weft::inline v1::fs
