#include "base/check.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace weft::inline v1::base {

void fail(const char* what, std::source_location where) noexcept {
  std::fprintf(stderr, "weft: %s\n  at %s:%u in %s\n", what, where.file_name(), where.line(), where.function_name());
  std::abort();
}

void failf(const char* format, ...) noexcept {
  std::va_list args;
  va_start(args, format);
  std::fputs("weft: ", stderr);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
  std::abort();
}

}  // namespace weft::inline v1::base
