// What can be wrong with one file. The others go on.
#pragma once

#include <stdexcept>
#include <string>
#include <system_error>

namespace weftgz {

// The input is at fault. The message is in gzip's words; the name of the file is added by who reports it.
struct bad_input : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] inline void throw_unexpected_end() { throw bad_input("unexpected end of file"); }
[[noreturn]] inline void throw_bad_format() { throw bad_input("invalid compressed data--format violated"); }
[[noreturn]] inline void throw_bad_crc() { throw bad_input("invalid compressed data--crc error"); }
[[noreturn]] inline void throw_bad_length() { throw bad_input("invalid compressed data--length error"); }

// The first bytes are those of no gzip file. Apart, because -dcf copies such input.
struct not_gzip : bad_input {
  not_gzip() : bad_input("not in gzip format") {}
};

// Writing failed, or reading did. It carries the name, because the output has another one than the input.
struct io_failure : std::runtime_error {
  io_failure(std::string of, std::error_code why) : std::runtime_error(why.message()), name(std::move(of)), code(why) {}
  std::string name;
  std::error_code code;
};

}  // namespace weftgz
