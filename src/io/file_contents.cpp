// Whole files, read and replaced.
#include <fcntl.h>

#include <algorithm>

#include "io/file_calls.hpp"
#include "io/replace_file.hpp"
#include <weft/fs/contents.hpp>

namespace weft::inline v1 {
namespace io {
namespace {

// Reads until the file ends. The size that the file says it has is only a hint.
std::error_code read_to_end(open_file& f, std::string& text, std::source_location where) {
  struct stat about{};
  const std::error_code unknown =
      blocking([&] { return uninterrupted([&] { return f.calls().fstat(f.fd(), &about); }); }, where);
  if (unknown) return unknown;
  constexpr std::size_t least = 4096;
  // One byte more than there should be: a read that does not fill the room has found the end.
  std::size_t room = std::max(static_cast<std::size_t>(about.st_size) + 1, least);
  for (std::size_t end = 0;;) {
    if (end == text.size()) {
      if (room > text.max_size() - end) return std::make_error_code(std::errc::file_too_large);
      text.resize(end + room);
      room = text.size();  // the next time as much again
    }
    const mutable_buffer next(text.data() + end, std::min(text.size() - end, bytes_per_turn));
    const transferred done = read(f, {&next, 1}, current_position, amount::all, where);
    end += done.count;
    if (!done.why && done.count == next.size()) continue;
    text.resize(end);
    return done.why;
  }
}

std::string read_file(const std::filesystem::path& path, std::error_code* why, std::source_location where) {
  begin_operation(where);
  std::string text;
  open_file f(kernel_of_caller(), path.native());
  file_failure how{open(f, path.native(), O_RDONLY, 0, where), "open"};
  if (!how) how = {read_to_end(f, text, where), "read"};
  tell(how, path.native(), why);
  return text;
}

void write_file(const std::filesystem::path& path, const_buffer contents, const fs::write_options& how,
                std::error_code* why, std::source_location where) {
  begin_operation(where);
  tell(replace_file(kernel_of_caller(), path, contents, how, where), path.native(), why);
}

}  // namespace
}  // namespace io

namespace fs {

std::string read_file(const std::filesystem::path& path, std::source_location where) {
  return io::read_file(path, nullptr, where);
}
std::string read_file(const std::filesystem::path& path, std::error_code& why, std::source_location where) {
  return io::read_file(path, &why, where);
}

void write_file(const std::filesystem::path& path, const_buffer contents, const write_options& how,
                std::source_location where) {
  io::write_file(path, contents, how, nullptr, where);
}
void write_file(const std::filesystem::path& path, const_buffer contents, const write_options& how,
                std::error_code& why, std::source_location where) {
  io::write_file(path, contents, how, &why, where);
}

}  // namespace fs
}  // namespace weft::inline v1
