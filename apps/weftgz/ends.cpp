#include <weftgz/ends.hpp>

#include <weftgz/failure.hpp>

namespace weftgz {

std::size_t file_source::read_some(room to) {
  std::error_code why;
  const std::size_t n = reader_.read_some(to, why);
  if (why) throw io_failure(name_, why);
  counters_.read(n);
  return n;
}

std::size_t standard_input::read_some(room to) {
  std::error_code why;
  const std::size_t n = in_.read_some(to, why);
  if (why) throw io_failure("stdin", why);
  counters_.read(n);
  return n;
}

void file_sink::write(bytes from) {
  std::error_code why;
  writer_.write_all(from, why);
  if (why) throw io_failure(name_, why);
  counters_.wrote(from.size());
}

void standard_output::write(bytes from) {
  std::error_code why;
  out_.write_all(from, why);
  if (why) throw io_failure("stdout", why);
  counters_.wrote(from.size());
}

}  // namespace weftgz
